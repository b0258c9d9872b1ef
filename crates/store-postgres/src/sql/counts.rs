//! How many invocations are in each status. Changed with the rows they count, in the same transaction, and added up when
//! somebody asks.

use std::collections::BTreeMap;

use servo_model::TenantId;
use servo_model::invocation::InvocationStatus;
use servo_store::Result;
use tokio_postgres::Row;

use crate::pipeline::{Param, Pipeline, params};
use crate::rows;

/// Counts all plans of a tenant. No plan is called so: a list of many would take long to add up.
pub(crate) const ALL_PLANS: &str = "*";

/// A connection's own shard; more connections than shards share some.
macro_rules! shard {
    () => {
        "(pg_backend_pid() % 16)::smallint"
    };
}

/// In the order of the keys, so that no two writers wait for each other.
macro_rules! add {
    ($from:literal) => {
        concat!(
            "INSERT INTO invocation_counts (tenant_id, plan_id, visible, shard, count) ",
            "SELECT u.tenant_id, u.plan_id, u.visible, ",
            shard!(),
            ", u.count FROM ",
            $from,
            " ORDER BY u.tenant_id, u.plan_id, u.visible
             ON CONFLICT (tenant_id, plan_id, visible, shard)
             DO UPDATE SET count = invocation_counts.count + EXCLUDED.count"
        )
    };
}

const ADD: &str = add!(
    "(SELECT tenant_id COLLATE \"C\" AS tenant_id, plan_id COLLATE \"C\" AS plan_id, visible COLLATE \"C\" AS visible, count
      FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS c (tenant_id, plan_id, visible, count)) u"
);

/// Runs that are about to be removed.
pub(crate) const REMOVE: &str = add!(
    "(SELECT r.tenant_id, p.plan_id COLLATE \"C\" AS plan_id, r.visible, -count(*) AS count
      FROM runs r CROSS JOIN LATERAL (VALUES (r.plan_id), ('*')) AS p (plan_id)
      WHERE r.run_id = ANY ($1) AND r.invocation GROUP BY 1, 2, 3) u"
);

pub(crate) const BY_VISIBLE: &str = "SELECT visible, sum(count)::bigint AS count FROM invocation_counts
    WHERE tenant_id = $1 AND plan_id = $2 GROUP BY visible";

/// Changes of the numbers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    changes: BTreeMap<(TenantId, String, &'static str), i64>,
}

impl Counts {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn add(&mut self, tenant: &TenantId, plan_id: &str, visible: InvocationStatus, change: i64) {
        for plan in [plan_id, ALL_PLANS] {
            *self.changes.entry((tenant.clone(), plan.to_owned(), visible.as_str())).or_default() += change;
        }
    }

    pub(crate) fn merge(&mut self, later: Counts) {
        for (key, change) in later.changes {
            *self.changes.entry(key).or_default() += change;
        }
    }

    /// Adds the statement. The last of a transaction: others that count in the same shard wait from here on.
    pub(crate) fn send(&self, pipeline: &mut Pipeline<'_>) {
        if self.changes.values().any(|change| *change != 0) {
            pipeline.query(ADD, self.columns());
        }
    }

    /// The changes as parallel arrays.
    pub(crate) fn columns<'a>(&self) -> Vec<Param<'a>> {
        let changed = || self.changes.iter().filter(|(_, change)| **change != 0);
        params![
            changed().map(|((tenant, ..), _)| tenant.as_str().to_owned()).collect::<Vec<_>>(),
            changed().map(|((_, plan, _), _)| plan.clone()).collect::<Vec<_>>(),
            changed().map(|((.., visible), _)| *visible).collect::<Vec<_>>(),
            changed().map(|(_, change)| *change).collect::<Vec<_>>(),
        ]
    }
}

/// The numbers in the order of the statuses, without those that are zero.
pub(crate) fn read(found: &[Row]) -> Result<Vec<(InvocationStatus, u64)>> {
    let mut counts = Vec::new();
    for row in found {
        let count = rows::number(row, "count")?;
        if count > 0 {
            counts.push((rows::visible(row)?, count));
        }
    }
    counts.sort_unstable();
    Ok(counts)
}
