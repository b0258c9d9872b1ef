//! Dispatches, and the `WorkStore` made of them, the queue, the timers and the authority.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::dispatch::{DispatchHeads, DueTimers, QueueClaim, QueuedRun};
use servo_store::{AuthorityRow, DispatchRow, Result, WorkStore};

use crate::error::corrupt;
use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

/// All columns of a dispatch from parallel arrays.
macro_rules! given {
    () => {
        "(request_id, run_id, tenant_id, target, step_id, logical_attempt, state, channel, reason, epoch, queued_at,
            changed_at)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
            $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[])"
    };
}

/// A known request id in any state changes nothing, also one that is hidden or was made a moment ago.
const ADD: &str = concat!("INSERT INTO dispatches ", given!(), " ON CONFLICT (request_id) DO NOTHING");

/// Moved since it was loaded and locked, or added and moved at once.
const PUT: &str = concat!(
    "INSERT INTO dispatches ",
    given!(),
    " ON CONFLICT (request_id) DO UPDATE SET state = EXCLUDED.state, channel = EXCLUDED.channel,
        reason = EXCLUDED.reason, epoch = EXCLUDED.epoch, changed_at = EXCLUDED.changed_at"
);

const REMOVE: &str = "DELETE FROM dispatches WHERE request_id = ANY ($1)";

/// The condition of the index, and what of it is open under the epoch `$1`.
macro_rules! open {
    () => {
        "step_id IS NOT NULL AND state IN ('pending', 'notified') AND (state = 'pending' OR epoch < $1)"
    };
}

const OPEN: &str = concat!(
    "SELECT * FROM dispatches WHERE ",
    open!(),
    " AND tenant_id = $5 AND (queued_at, request_id) > ($2, $3) ORDER BY queued_at, request_id LIMIT $4"
);

/// The index is entered once for each tenant and once for its first rows, and never walked. The two subqueries of `tenants`
/// are the same question: the first tenant after this one.
const HEADS: &str = concat!(
    "WITH RECURSIVE tenants AS (
        (SELECT tenant_id FROM dispatches WHERE ",
    open!(),
    "   AND tenant_id > $2 ORDER BY tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT d.tenant_id FROM dispatches d WHERE ",
    open!(),
    "   AND d.tenant_id > t.tenant_id ORDER BY d.tenant_id LIMIT 1) FROM tenants t WHERE t.tenant_id IS NOT NULL)
     SELECT head.* FROM (SELECT tenant_id FROM tenants WHERE tenant_id IS NOT NULL LIMIT $3) chosen
        CROSS JOIN LATERAL (SELECT * FROM dispatches d WHERE ",
    open!(),
    "   AND d.tenant_id = chosen.tenant_id ORDER BY queued_at, request_id LIMIT $4) head
     ORDER BY head.tenant_id, head.queued_at, head.request_id"
);

const GET: &str = "SELECT * FROM dispatches WHERE request_id = $1";

const COUNT: &str = "SELECT state, count(*) AS count FROM dispatches GROUP BY state";

pub(crate) fn change<'a>(
    pipeline: &mut Pipeline<'a>,
    withdrawn: &BTreeSet<&'a str>,
    changed: &BTreeMap<&'a str, DispatchRow>,
) -> Result<()> {
    if !withdrawn.is_empty() {
        pipeline.query(REMOVE, params![withdrawn.iter().copied().collect::<Vec<_>>()]);
    }
    let (added, moved): (Vec<_>, Vec<_>) = changed.values().partition(|row| row.state == DispatchState::Pending);
    push(pipeline, ADD, &added)?;
    push(pipeline, PUT, &moved)
}

fn push(pipeline: &mut Pipeline<'_>, sql: &'static str, rows: &[&DispatchRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let epochs = rows.iter().map(|row| rows::exact("epoch", row.epoch)).collect::<Result<Vec<_>>>()?;
    let column = |of: fn(&DispatchRow) -> String| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let optional = |of: fn(&DispatchRow) -> Option<String>| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let time = |of: fn(&DispatchRow) -> Timestamp| rows.iter().map(|row| of(row).as_millis()).collect::<Vec<_>>();
    let attempts: Vec<_> =
        rows.iter().map(|row| row.step.as_ref().map(|step| i64::from(step.logical_attempt))).collect();
    let params = params![
        column(|row| row.request_id.clone()),
        column(|row| row.run_id.as_str().to_owned()),
        column(|row| row.tenant.as_str().to_owned()),
        column(|row| row.target.clone()),
        optional(|row| row.step.as_ref().map(|step| step.step_id.as_str().to_owned())),
        attempts,
        column(|row| row.state.as_str().to_owned()),
        optional(|row| row.channel.clone()),
        optional(|row| row.reason.clone()),
        epochs,
        time(|row| row.queued_at),
        time(|row| row.changed_at),
    ];
    pipeline.query(sql, params);
    Ok(())
}

#[async_trait]
impl WorkStore for PostgresStore {
    async fn claim_queue(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>> {
        self.claim(claim).await
    }

    async fn release_queue(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()> {
        self.release(run_id, owner, not_before).await
    }

    async fn dispatch_heads(&self, heads: &DispatchHeads) -> Result<Vec<DispatchRow>> {
        let after = heads.after.as_ref().map_or("", |after| after.as_str());
        let (tenants, each) = (i64::from(heads.tenants), i64::from(heads.each));
        let rows = self.engine_read(HEADS, params![rows::bound(heads.epoch), after, tenants, each]).await?;
        rows.iter().map(rows::dispatch).collect()
    }

    async fn open_dispatches(
        &self,
        epoch: u64,
        tenant: &TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>> {
        let (at, id) = after.map_or((i64::MIN, String::new()), |(at, id)| (at.as_millis(), id));
        let params = params![rows::bound(epoch), at, id, i64::from(limit), tenant.as_str()];
        let rows = self.engine_read(OPEN, params).await?;
        rows.iter().map(rows::dispatch).collect()
    }

    async fn get_dispatch(&self, request_id: &str) -> Result<Option<DispatchRow>> {
        let rows = self.engine_read(GET, params![request_id]).await?;
        rows.first().map(rows::dispatch).transpose()
    }

    async fn backlog(&self) -> Result<Backlog> {
        let mut backlog = Backlog::default();
        for row in &self.engine_read(COUNT, params![]).await? {
            let count = rows::number(row, "count")?;
            match DispatchState::parse(rows::get(row, "state")?) {
                Some(DispatchState::Pending) => backlog.pending = count,
                Some(DispatchState::Notified) => backlog.notified = count,
                Some(DispatchState::Delivered) => backlog.delivered = count,
                Some(DispatchState::Failed) => backlog.failed = count,
                None => return Err(corrupt("a dispatch has an unknown state")),
            }
        }
        Ok(backlog)
    }

    async fn due_timers(&self, limit: u32) -> Result<DueTimers> {
        self.read_due_timers(limit).await
    }

    async fn get_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>> {
        self.read_timer(run_id).await
    }

    async fn authority(&self) -> Result<Option<AuthorityRow>> {
        self.read_authority().await
    }

    async fn break_leases(&self) -> Result<()> {
        self.break_all_leases().await
    }
}
