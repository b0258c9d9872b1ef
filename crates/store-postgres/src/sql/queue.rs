//! Runs that wait to be started, leased to whoever claims them.

use std::collections::BTreeMap;

use servo_model::{RunId, Timestamp};
use servo_store::dispatch::{QueueClaim, QueuedRun, in_turns};
use servo_store::{Error, Result};

use super::now;
use crate::append::QueueWrite;
use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

const PUT: &str = "INSERT INTO queue (run_id, tenant_id, not_before, queued_at)
    SELECT u.run_id, u.tenant_id, u.not_before, $4 FROM unnest($1::text[], $2::text[], $3::bigint[])
        AS u (run_id, tenant_id, not_before)
    ON CONFLICT (run_id) DO UPDATE SET not_before = EXCLUDED.not_before, queued_at = EXCLUDED.queued_at,
        leased_by = NULL, leased_until = NULL";

const REMOVE: &str = "DELETE FROM queue WHERE run_id = ANY ($1)";

/// What can be claimed now.
macro_rules! free {
    () => {
        concat!("q.not_before <= ", now!(), " AND (q.leased_until IS NULL OR q.leased_until <= ", now!(), ")")
    };
}

/// `QueueClaim::choose`. The index is entered once for each tenant and once for its first rows. Rows that somebody else is
/// claiming at this moment are passed over, not waited for, and the next ones are taken in their place.
const CLAIM: &str = concat!(
    "WITH RECURSIVE tenants AS (
        (SELECT tenant_id FROM queue WHERE tenant_id > $6 ORDER BY tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT q.tenant_id FROM queue q WHERE q.tenant_id > t.tenant_id ORDER BY q.tenant_id LIMIT 1)
            FROM tenants t WHERE t.tenant_id IS NOT NULL),
     chosen AS MATERIALIZED (
        SELECT t.tenant_id FROM tenants t WHERE t.tenant_id IS NOT NULL
            AND EXISTS (SELECT 1 FROM queue q WHERE q.tenant_id = t.tenant_id AND ",
    free!(),
    "   ) ORDER BY t.tenant_id LIMIT $4::bigint),
     free AS (
        SELECT head.run_id FROM chosen CROSS JOIN LATERAL (SELECT q.run_id FROM queue q
            WHERE q.tenant_id = chosen.tenant_id AND ",
    free!(),
    "       ORDER BY q.queued_at, q.run_id LIMIT (SELECT $4::bigint / greatest(count(*), 1) FROM chosen)
            FOR UPDATE OF q SKIP LOCKED) head)
     UPDATE queue q SET leased_by = $2, leased_until = LEAST(",
    now!(),
    " + $3::bigint, $5::bigint)
     FROM free WHERE q.run_id = free.run_id
     RETURNING q.run_id, q.tenant_id, q.not_before, q.queued_at"
);

const RELEASE: &str = "UPDATE queue SET leased_by = NULL, leased_until = NULL, not_before = $3
    WHERE run_id = $1 AND leased_by = $2";

const BREAK: &str = "UPDATE queue SET leased_by = NULL, leased_until = NULL WHERE leased_by IS NOT NULL";

pub(crate) fn change<'a>(
    pipeline: &mut Pipeline<'a>,
    queue: &BTreeMap<&'a RunId, QueueWrite<'a>>,
    queued_at: Timestamp,
) {
    let (mut runs, mut tenants, mut times, mut removed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (run, change) in queue {
        match change {
            QueueWrite::Put { tenant, not_before } => {
                runs.push(run.as_str());
                tenants.push(tenant.as_str());
                times.push(not_before.as_millis());
            }
            QueueWrite::Remove => removed.push(run.as_str()),
        }
    }
    if !runs.is_empty() {
        pipeline.query(PUT, params![runs, tenants, times, queued_at.as_millis()]);
    }
    if !removed.is_empty() {
        pipeline.query(REMOVE, params![removed]);
    }
}

impl PostgresStore {
    pub(crate) async fn claim(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>> {
        let last = Timestamp::MAX.as_millis();
        let lease = rows::bound(claim.lease_ms).min(last);
        let after = claim.after.as_ref().map_or("", |after| after.as_str());
        let limit = i64::from(claim.limit);
        let params = params![self.core.injected_now(), claim.owner.as_str(), lease, limit, last, after];
        let rows = self.engine_write(CLAIM, params).await?.rows;
        let mut claimed = Vec::with_capacity(rows.len());
        for row in &rows {
            claimed.push(QueuedRun {
                run_id: rows::run_id(row, "run_id")?,
                tenant: rows::tenant(row)?,
                not_before: rows::time(row, "not_before")?,
                queued_at: rows::time(row, "queued_at")?,
            });
        }
        Ok(in_turns(claimed))
    }

    pub(crate) async fn release(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()> {
        let released = self.engine_write(RELEASE, params![run_id.as_str(), owner, not_before.as_millis()]).await?;
        if released.affected == 0 { Err(Error::LeaseLost { run_id: run_id.clone() }) } else { Ok(()) }
    }

    pub(crate) async fn break_all_leases(&self) -> Result<()> {
        self.engine_write(BREAK, params![]).await.map(|_| ())
    }
}
