//! One timer row per run: the earliest time at which something happens by itself.

use std::collections::BTreeMap;

use servo_model::{RunId, TenantId, Timestamp};
use servo_store::Result;
use servo_store::dispatch::{DueTimer, DueTimers};

use super::now;
use crate::pipeline::{Param, Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

/// Runs whose timers change, each with its tenant and when it is due; `None` clears it.
pub(crate) type Timers<'a> = BTreeMap<&'a RunId, (&'a TenantId, Option<Timestamp>)>;

const SET: &str = "INSERT INTO timers (run_id, tenant_id, due_at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
    ON CONFLICT (run_id) DO UPDATE SET due_at = EXCLUDED.due_at";

const CLEAR: &str = "DELETE FROM timers WHERE run_id = ANY ($1)";

/// The due ones, and after them the next one's time with an empty run id.
const DUE: &str = concat!(
    "(SELECT run_id, tenant_id, due_at FROM timers WHERE due_at <= ",
    now!(),
    " ORDER BY due_at, run_id LIMIT $2)
     UNION ALL
     (SELECT '', '', due_at FROM timers WHERE due_at > ",
    now!(),
    " ORDER BY due_at LIMIT 1)"
);

const GET: &str = "SELECT due_at FROM timers WHERE run_id = $1";

pub(crate) fn change<'a>(pipeline: &mut Pipeline<'a>, timers: &Timers<'a>) {
    if timers.values().any(|(_, due)| due.is_some()) {
        pipeline.query(SET, set_columns(timers));
    }
    if timers.values().any(|(_, due)| due.is_none()) {
        pipeline.query(CLEAR, params![cleared(timers)]);
    }
}

/// Timers that are set as parallel arrays.
pub(crate) fn set_columns<'a>(timers: &Timers<'a>) -> Vec<Param<'a>> {
    let set: Vec<_> = timers.iter().filter_map(|(run, (tenant, due))| Some((run, tenant, (*due)?))).collect();
    params![
        set.iter().map(|(run, ..)| run.as_str()).collect::<Vec<&'a str>>(),
        set.iter().map(|(_, tenant, _)| tenant.as_str()).collect::<Vec<&'a str>>(),
        set.iter().map(|(.., due)| due.as_millis()).collect::<Vec<_>>(),
    ]
}

pub(crate) fn cleared<'a>(timers: &Timers<'a>) -> Vec<&'a str> {
    timers.iter().filter(|(_, (_, due))| due.is_none()).map(|(run, _)| run.as_str()).collect()
}

impl PostgresStore {
    pub(crate) async fn read_due_timers(&self, limit: u32) -> Result<DueTimers> {
        let rows = self.engine_read(DUE, params![self.core.injected_now(), i64::from(limit)]).await?;
        let mut timers = DueTimers::default();
        for row in &rows {
            let due_at = rows::time(row, "due_at")?;
            if rows::get::<&str>(row, "run_id")?.is_empty() {
                timers.next_at = Some(due_at);
            } else {
                let (run_id, tenant) = (rows::run_id(row, "run_id")?, rows::tenant(row)?);
                timers.due.push(DueTimer { run_id, tenant, due_at });
            }
        }
        // The union keeps no order that anybody promises.
        timers.due.sort_by(|a, b| (a.due_at, &a.run_id).cmp(&(b.due_at, &b.run_id)));
        Ok(timers)
    }

    pub(crate) async fn read_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>> {
        let rows = self.engine_read(GET, params![run_id.as_str()]).await?;
        rows.first().map(|row| rows::time(row, "due_at")).transpose()
    }
}
