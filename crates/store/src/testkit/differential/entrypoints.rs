//! Operations on entrypoints, over three ids and three addresses.

use servo_model::TenantId;

use super::apply::Answer;
use crate::Store;
use crate::entrypoints::{EntrypointQuery, EntrypointRow};
use crate::runs::Scope;

#[derive(Debug, Clone)]
pub(super) enum EntrypointOp {
    Put { row: EntrypointRow },
    Get { scope: Scope, id: String },
    Find { tenant: TenantId, address: String },
    Update { row: EntrypointRow },
    Remove { tenant: TenantId, id: String, revision: u64 },
    List { scope: Scope, query: EntrypointQuery },
    Count { tenant: TenantId },
}

impl EntrypointOp {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            EntrypointOp::Put { .. } => "put_entrypoint",
            EntrypointOp::Get { .. } => "get_entrypoint",
            EntrypointOp::Find { .. } => "find_entrypoint",
            EntrypointOp::Update { .. } => "update_entrypoint",
            EntrypointOp::Remove { .. } => "remove_entrypoint",
            EntrypointOp::List { .. } => "list_entrypoints",
            EntrypointOp::Count { .. } => "count_entrypoints",
        }
    }

    pub(super) async fn apply(&self, store: &dyn Store) -> Answer {
        match self {
            EntrypointOp::Put { row } => Answer::of(store.put_entrypoint(row.clone()).await),
            EntrypointOp::Get { scope, id } => Answer::of(store.get_entrypoint(scope, id).await),
            EntrypointOp::Find { tenant, address } => Answer::of(store.find_entrypoint(tenant, address).await),
            EntrypointOp::Update { row } => Answer::of(store.update_entrypoint(row.clone()).await),
            EntrypointOp::Remove { tenant, id, revision } => {
                Answer::of(store.remove_entrypoint(tenant, id, *revision).await)
            }
            EntrypointOp::List { scope, query } => {
                // By name: an empty list of tags would look like an empty answer.
                let rows = store.list_entrypoints(scope, query).await;
                Answer::of(
                    rows.map(|rows| rows.iter().map(|row| format!("{row:?}").replace("[]", "-")).collect::<Vec<_>>()),
                )
            }
            EntrypointOp::Count { tenant } => Answer::of(store.count_entrypoints(tenant).await),
        }
    }
}
