//! The call that writes appends whose runs must be as their writers expect. What it does is in the migration that made it.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::contract::DispatchState;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::{DispatchRow, Result, RunRow};

use super::counts::Counts;
use super::runs;
use super::timer::{self, Timers};
use crate::append::{EventWrite, NewRun};
use crate::pipeline::{Param, Pipeline, params};
use crate::rows;

/// One array of each kind of thing after another, in the order of the function's parameters.
const APPEND: &str = "SELECT append_expected($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45,
    $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69,
    $70, $71, $72, $73) AS now";

/// The same with what the roots of new runs are.
const APPEND_BELOW: &str = "SELECT note_roots(append_expected($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
    $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41,
    $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66,
    $67, $68, $69, $70, $71, $72, $73), $74, $75) AS now";

/// The same for events alone.
const APPEND_EVENTS: &str =
    "SELECT append_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS now";

/// What must hold before anything is written.
#[derive(Debug)]
pub(crate) struct Conditions<'a> {
    pub(crate) tenants: String,
    pub(crate) locks: Vec<i64>,
    pub(crate) fence: Option<u64>,
    /// The sequence at which each run must be.
    pub(crate) heads: BTreeMap<&'a RunId, (&'a TenantId, u64)>,
}

/// What is written then.
#[derive(Debug)]
pub(crate) struct Changes<'w, 'a> {
    pub(crate) new_runs: &'w [NewRun<'a>],
    pub(crate) events: &'w [EventWrite<'a>],
    /// Whether they are written with checksums.
    pub(crate) seals: bool,
    pub(crate) rows: &'w BTreeMap<&'a RunId, &'a RunRow>,
    pub(crate) timers: &'w Timers<'a>,
    /// Dispatches by their ids, each with its tenant.
    pub(crate) withdrawn: &'w BTreeMap<&'a str, &'a TenantId>,
    pub(crate) added: Vec<&'w DispatchRow>,
    /// With the state in which each must be.
    pub(crate) moved: Vec<(DispatchState, &'w DispatchRow)>,
    pub(crate) counts: &'w Counts,
}

impl Changes<'_, '_> {
    /// Nothing but events.
    fn are_events(&self, conditions: &Conditions<'_>) -> bool {
        let Self { new_runs, events, rows, timers, withdrawn, added, moved, counts, .. } = self;
        let runs: BTreeSet<&RunId> = events.iter().map(|write| write.run_id).collect();
        conditions.fence.is_none()
            && !events.is_empty()
            // A run that is only expected to be at a sequence is not among the events.
            && conditions.heads.keys().all(|run| runs.contains(run))
            && new_runs.is_empty()
            && rows.is_empty()
            && timers.is_empty()
            && withdrawn.is_empty()
            && added.is_empty()
            && moved.is_empty()
            && counts.is_empty()
    }
}

/// Adds the statement. `injected` is the time, where it is not the server's.
pub(crate) fn append<'a>(
    pipeline: &mut Pipeline<'a>,
    conditions: Conditions<'a>,
    injected: Option<i64>,
    changes: &Changes<'_, 'a>,
) -> Result<usize> {
    if changes.are_events(&conditions) {
        return append_events(pipeline, conditions, injected, changes);
    }
    let Conditions { tenants, locks, fence, heads } = conditions;
    let mut all = params![
        tenants,
        locks,
        injected,
        fence.map(rows::bound),
        heads.keys().map(|run| run.as_str()).collect::<Vec<&'a str>>(),
        heads.values().map(|(tenant, _)| tenant.as_str()).collect::<Vec<&'a str>>(),
        heads.values().map(|(_, head)| rows::bound(*head)).collect::<Vec<_>>(),
    ];
    all.extend(runs::new_columns(changes.new_runs)?);
    all.extend(event_columns(changes)?);
    all.extend(runs::changed_columns(changes.rows)?);
    all.extend(timer::set_columns(changes.timers));
    all.extend(params![
        timer::cleared(changes.timers),
        changes.withdrawn.keys().copied().collect::<Vec<&'a str>>(),
        changes.withdrawn.values().map(|tenant| tenant.as_str()).collect::<Vec<&'a str>>(),
    ]);
    all.extend(added_columns(&changes.added)?);
    all.extend(moved_columns(&changes.moved)?);
    all.extend(changes.counts.columns());
    let below: Vec<_> = changes.new_runs.iter().filter_map(|run| Some((run.run_id, run.row.root.as_ref()?))).collect();
    if below.is_empty() {
        return Ok(pipeline.query(APPEND, all));
    }
    all.extend(params![
        below.iter().map(|(run, _)| run.as_str()).collect::<Vec<&'a str>>(),
        below.iter().map(|(_, root)| root.as_str()).collect::<Vec<&'a str>>(),
    ]);
    Ok(pipeline.query(APPEND_BELOW, all))
}

fn append_events<'a>(
    pipeline: &mut Pipeline<'a>,
    conditions: Conditions<'a>,
    injected: Option<i64>,
    changes: &Changes<'_, 'a>,
) -> Result<usize> {
    let Conditions { tenants, locks, heads, .. } = conditions;
    let head = |write: &EventWrite<'_>| heads.get(write.run_id).map(|(_, head)| rows::bound(*head));
    let heads: Vec<_> = changes.events.iter().map(head).collect();
    let mut all = params![tenants, locks, injected, heads];
    all.extend(event_columns(changes)?);
    Ok(pipeline.query(APPEND_EVENTS, all))
}

fn event_columns<'a>(changes: &Changes<'_, 'a>) -> Result<Vec<Param<'a>>> {
    let events = changes.events;
    let text = |of: fn(&EventWrite<'a>) -> &'a str| events.iter().map(of).collect::<Vec<&'a str>>();
    let seqs = events.iter().map(|write| rows::exact("run_seq", write.run_seq)).collect::<Result<Vec<_>>>()?;
    Ok(params![
        seqs,
        events.iter().map(|write| write.event.occurred_at.map(Timestamp::as_millis)).collect::<Vec<_>>(),
        events.iter().map(|write| write.event.event_id).collect::<Vec<_>>(),
        text(|write| write.run_id.as_str()),
        text(|write| write.tenant.as_str()),
        text(|write| &write.event.event_type),
        events.iter().map(|write| write.event.idempotency_key.as_bytes().as_slice()).collect::<Vec<&'a [u8]>>(),
        text(|write| &write.event.emitted_by),
        text(|write| &write.event.payload),
        rows::FORMAT_WRITTEN,
        events.iter().map(|write| changes.seals.then(|| write.checksum())).collect::<Vec<_>>(),
    ])
}

fn added_columns<'a>(rows: &[&DispatchRow]) -> Result<Vec<Param<'a>>> {
    let text = |of: fn(&DispatchRow) -> &str| rows.iter().map(|row| of(row).to_owned()).collect::<Vec<_>>();
    let epochs = rows.iter().map(|row| rows::exact("epoch", row.epoch)).collect::<Result<Vec<_>>>()?;
    let step = |row: &DispatchRow| row.step.as_ref().map(|step| step.step_id.as_str().to_owned());
    let attempt = |row: &DispatchRow| row.step.as_ref().map(|step| i64::from(step.logical_attempt));
    Ok(params![
        text(|row| &row.request_id),
        text(|row| row.run_id.as_str()),
        text(|row| row.tenant.as_str()),
        text(|row| &row.target),
        rows.iter().map(|row| step(row)).collect::<Vec<_>>(),
        rows.iter().map(|row| attempt(row)).collect::<Vec<_>>(),
        text(|row| row.state.as_str()),
        rows.iter().map(|row| row.channel.clone()).collect::<Vec<_>>(),
        epochs,
    ])
}

/// What a move does not say stays as it is. Only who takes a dispatch names an epoch.
fn moved_columns<'a>(rows: &[(DispatchState, &DispatchRow)]) -> Result<Vec<Param<'a>>> {
    let text = |of: fn(&DispatchRow) -> &str| rows.iter().map(|(_, row)| of(row).to_owned()).collect::<Vec<_>>();
    let epoch = |row: &DispatchRow| match row.state {
        DispatchState::Notified => rows::exact("epoch", row.epoch).map(Some),
        _ => Ok(None),
    };
    Ok(params![
        text(|row| &row.request_id),
        text(|row| row.tenant.as_str()),
        rows.iter().map(|(before, _)| before.as_str()).collect::<Vec<_>>(),
        text(|row| row.state.as_str()),
        rows.iter().map(|(_, row)| row.channel.clone()).collect::<Vec<_>>(),
        rows.iter().map(|(_, row)| row.reason.clone()).collect::<Vec<_>>(),
        rows.iter().map(|(_, row)| epoch(row)).collect::<Result<Vec<_>>>()?,
    ])
}
