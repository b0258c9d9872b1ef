//! Operations on the registry and on log lines, over two functions, two aliases and few documents.

use servo_model::{AliasName, FunctionName, RunId, TenantId};

use super::apply::Answer;
use crate::Store;
use crate::lines::{LineSource, LogLine};
use crate::runs::Scope;

/// Spellings that sort one way by byte and another way by language.
pub(super) const FUNCTIONS: [&str; 2] = ["a_b", "B-a"];
pub(super) const ALIASES: [&str; 2] = ["live", "Live"];

#[derive(Debug, Clone)]
pub(super) enum FunctionOp {
    Put { tenant: TenantId, name: FunctionName, document: String },
    Get { tenant: TenantId, name: FunctionName, version: Option<u64> },
    List { scope: Scope, after: Option<(TenantId, FunctionName)>, limit: u32 },
    Versions { tenant: TenantId, name: FunctionName, before: Option<u64>, limit: u32 },
    Remove { tenant: TenantId, name: FunctionName },
    PutAlias { tenant: TenantId, name: FunctionName, alias: AliasName, version: u64 },
    GetAlias { tenant: TenantId, name: FunctionName, alias: AliasName },
    Aliases { tenant: TenantId, name: FunctionName },
    RemoveAlias { tenant: TenantId, name: FunctionName, alias: AliasName },
    PutLines { run_id: RunId, tenant: TenantId, lines: Vec<LogLine> },
    ReadLines { scope: Scope, run_id: RunId, after: u64, limit: u32 },
}

impl FunctionOp {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            FunctionOp::Put { .. } => "put_function",
            FunctionOp::Get { .. } => "get_function",
            FunctionOp::List { .. } => "list_functions",
            FunctionOp::Versions { .. } => "list_versions",
            FunctionOp::Remove { .. } => "remove_function",
            FunctionOp::PutAlias { .. } => "put_alias",
            FunctionOp::GetAlias { .. } => "get_alias",
            FunctionOp::Aliases { .. } => "list_aliases",
            FunctionOp::RemoveAlias { .. } => "remove_alias",
            FunctionOp::PutLines { .. } => "put_lines",
            FunctionOp::ReadLines { .. } => "read_lines",
        }
    }

    pub(super) async fn apply(&self, store: &dyn Store) -> Answer {
        match self {
            FunctionOp::Put { tenant, name, document } => Answer::of(store.put_function(tenant, name, document).await),
            FunctionOp::Get { tenant, name, version } => Answer::of(store.get_function(tenant, name, *version).await),
            FunctionOp::List { scope, after, limit } => {
                Answer::of(store.list_functions(scope, after.clone(), *limit).await)
            }
            FunctionOp::Versions { tenant, name, before, limit } => {
                Answer::of(store.list_versions(tenant, name, *before, *limit).await)
            }
            FunctionOp::Remove { tenant, name } => Answer::of(store.remove_function(tenant, name).await),
            FunctionOp::PutAlias { tenant, name, alias, version } => {
                Answer::of(store.put_alias(tenant, name, alias, *version).await)
            }
            FunctionOp::GetAlias { tenant, name, alias } => Answer::of(store.get_alias(tenant, name, alias).await),
            FunctionOp::Aliases { tenant, name } => Answer::of(store.list_aliases(tenant, name).await),
            FunctionOp::RemoveAlias { tenant, name, alias } => {
                Answer::of(store.remove_alias(tenant, name, alias).await)
            }
            FunctionOp::PutLines { run_id, tenant, lines } => {
                Answer::of(store.put_lines(run_id, tenant, lines.clone()).await)
            }
            FunctionOp::ReadLines { scope, run_id, after, limit } => {
                Answer::of(store.read_lines(scope, run_id, *after, *limit).await)
            }
        }
    }
}

pub(super) fn function(name: &str) -> FunctionName {
    FunctionName::parse(name).unwrap()
}

pub(super) fn alias(name: &str) -> AliasName {
    AliasName::parse(name).unwrap()
}

pub(super) fn line(at: servo_model::Timestamp, source: LineSource, text: String) -> LogLine {
    LogLine { at, request_id: "request".to_owned(), source, text }
}
