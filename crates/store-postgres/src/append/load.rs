//! The first exchange of a batch: begin, name the tenants, take the locks, read what the rules ask about.
//!
//! Locks come in one order everywhere: the authority's, then runs and requests by number, then rows. They are advisory,
//! because a row lock would give the transaction its id before it holds all of them; the id must be younger than that
//! of any transaction it waited for, or a reader would see a run's events in the wrong order.

use std::collections::{BTreeSet, HashMap};

use servo_canon::Digest;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{EventOutcome, QueueChange};
use servo_store::{Append, DispatchChange, Expected, Result, StreamAppend};

use super::judge::{RunView, World};
use crate::pipeline::{Answer, Pipeline, params};
use crate::rows;
use crate::sql::{self, lease, lock};
use crate::store::Core;

/// Runs as they are, with the last sequence that each was ever given.
const RUNS: &str = "SELECT r.run_id, r.tenant_id, r.plan_id, r.visible, r.invocation, GREATEST(r.head_floor, COALESCE(
        (SELECT e.run_seq FROM events e WHERE e.run_id = r.run_id ORDER BY e.run_seq DESC LIMIT 1), 0)) AS head
    FROM runs r WHERE r.run_id = ANY ($1)";

/// Events by key. The inner limit keeps it a look-up per key, whatever the planner thinks of the table.
const KEYS: &str = "SELECT k.ord, e.run_seq, e.event_id, e.emitted_at
    FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (run_id, key, ord)
    CROSS JOIN LATERAL (SELECT run_seq, event_id, emitted_at FROM events
        WHERE run_id = k.run_id AND idempotency_key = k.key LIMIT 1) e";

const REQUESTS: &str = "SELECT k.ord, r.run_id
    FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (tenant_id, key, ord)
    CROSS JOIN LATERAL (SELECT run_id FROM runs WHERE tenant_id = k.tenant_id AND request_key = k.key LIMIT 1) r";

const QUEUE: &str = "SELECT run_id, leased_by FROM queue WHERE run_id = ANY ($1) ORDER BY run_id FOR UPDATE";

const DISPATCHES: &str = "SELECT * FROM dispatches WHERE request_id = ANY ($1) ORDER BY request_id FOR UPDATE";

/// What to ask for, in the order in which the answers name it.
struct Wanted<'a> {
    runs: Vec<&'a str>,
    keys: Vec<(&'a RunId, Digest)>,
    requests: Vec<(&'a TenantId, Digest)>,
    queue: Vec<&'a str>,
    dispatches: Vec<&'a str>,
}

/// Where the answers stand in the pipeline.
struct Steps {
    clock: Option<usize>,
    runs: usize,
    keys: Option<usize>,
    requests: Option<usize>,
    queue: Option<usize>,
    dispatches: Option<usize>,
}

/// Adds the statements and gives back how to read their answers.
pub(super) fn ask<'a>(
    core: &'a Core,
    appends: &[&'a Append],
    pipeline: &mut Pipeline<'a>,
) -> impl FnOnce(Vec<Answer>) -> Result<World> + use<'a> {
    let wanted = Wanted::of(appends);
    pipeline.plain("BEGIN");
    pipeline.query(sql::SET_TENANTS, params![tenants(appends)]);
    let is_change = appends.iter().any(|append| append.authority.is_some());
    let is_fenced = appends.iter().any(|append| append.fence.is_some());
    if is_change {
        pipeline.query(lock::AUTHORITY, params![]);
    } else if is_fenced {
        pipeline.query(lock::AUTHORITY_SHARED, params![]);
    }
    pipeline.query(lock::RUNS, params![locks(appends)]);
    // An injected time is known without asking.
    let injected = core.injected_now();
    let asks_clock = injected.is_none() || is_change || is_fenced;
    let some = |wanted: bool, step: &mut dyn FnMut() -> usize| if wanted { Some(step()) } else { None };
    let steps = Steps {
        clock: some(asks_clock, &mut || pipeline.query(lease::CLOCK_AND_AUTHORITY, params![injected])),
        runs: pipeline.query(RUNS, params![wanted.runs.clone()]),
        keys: some(!wanted.keys.is_empty(), &mut || {
            let runs: Vec<&str> = wanted.keys.iter().map(|(run, _)| run.as_str()).collect();
            let keys: Vec<Vec<u8>> = wanted.keys.iter().map(|(_, key)| key.as_bytes().to_vec()).collect();
            pipeline.query(KEYS, params![runs, keys])
        }),
        requests: some(!wanted.requests.is_empty(), &mut || {
            let tenants: Vec<&str> = wanted.requests.iter().map(|(tenant, _)| tenant.as_str()).collect();
            let keys: Vec<Vec<u8>> = wanted.requests.iter().map(|(_, key)| key.as_bytes().to_vec()).collect();
            pipeline.query(REQUESTS, params![tenants, keys])
        }),
        queue: some(!wanted.queue.is_empty(), &mut || pipeline.query(QUEUE, params![wanted.queue.clone()])),
        dispatches: some(!wanted.dispatches.is_empty(), &mut || {
            pipeline.query(DISPATCHES, params![wanted.dispatches.clone()])
        }),
    };
    let events_max = core.limits.events_per_run_max;
    move |answers| {
        let mut world = steps.world(&wanted, &answers)?;
        world.events_max = events_max;
        if let Some(now) = injected {
            world.now = Timestamp::from_millis(now);
        }
        Ok(world)
    }
}

impl<'a> Wanted<'a> {
    fn of(appends: &[&'a Append]) -> Self {
        let streams = || appends.iter().flat_map(|append| &append.streams);
        let new = || streams().filter(|stream| stream.expected == Expected::New);
        let unique = |ids: BTreeSet<&'a str>| ids.into_iter().collect();
        Self {
            runs: unique(streams().map(|stream| stream.run_id.as_str()).collect()),
            keys: streams()
                .flat_map(|stream| stream.events.iter().map(|event| (&stream.run_id, event.idempotency_key)))
                .collect(),
            requests: new().filter_map(|stream| Some((&stream.tenant, stream.row.as_ref()?.request_key?))).collect(),
            queue: unique(streams().filter(|stream| asks_lease(stream)).map(|stream| stream.run_id.as_str()).collect()),
            dispatches: unique(
                streams().flat_map(|stream| &stream.dispatches).map(DispatchChange::request_id).collect(),
            ),
        }
    }
}

impl Steps {
    fn world(&self, wanted: &Wanted<'_>, answers: &[Answer]) -> Result<World> {
        let answer = |step: Option<usize>| step.map_or(&[][..], |step| &answers[step].rows);
        let mut world = World {
            now: Timestamp::EPOCH,
            events_max: 0,
            authority: None,
            runs: HashMap::new(),
            requests: HashMap::new(),
            dispatches: HashMap::new(),
        };
        for row in answer(self.clock) {
            world.now = rows::time(row, "now")?;
            world.authority = rows::authority(row)?;
        }
        for row in answer(Some(self.runs)) {
            let (tenant, head) = (rows::tenant(row)?, rows::number(row, "head")?);
            let counted = if rows::get(row, "invocation")? {
                Some((rows::get::<&str>(row, "plan_id")?.into(), rows::visible(row)?))
            } else {
                None
            };
            let view = RunView { tenant, head, keys: HashMap::new(), queue_owner: None, counted };
            world.runs.insert(rows::run_id(row, "run_id")?, view);
        }
        for row in answer(self.keys) {
            let (run, key) = wanted.keys[ordinal(row)?];
            let found = EventOutcome {
                run_seq: rows::number(row, "run_seq")?,
                event_id: rows::get(row, "event_id")?,
                emitted_at: rows::time(row, "emitted_at")?,
                inserted: false,
            };
            if let Some(view) = world.runs.get_mut(run) {
                view.keys.insert(key, found);
            }
        }
        for row in answer(self.requests) {
            let (tenant, key) = wanted.requests[ordinal(row)?];
            world.requests.insert((tenant.clone(), key), rows::run_id(row, "run_id")?);
        }
        for row in answer(self.queue) {
            if let Some(view) = world.runs.get_mut(rows::get::<&str>(row, "run_id")?) {
                view.queue_owner = rows::get(row, "leased_by")?;
            }
        }
        for row in answer(self.dispatches) {
            let dispatch = rows::dispatch(row)?;
            world.dispatches.insert(dispatch.request_id.clone(), dispatch);
        }
        Ok(world)
    }
}

/// `WITH ORDINALITY` counts from one.
fn ordinal(row: &tokio_postgres::Row) -> Result<usize> {
    let ord = rows::number(row, "ord")?;
    usize::try_from(ord)
        .ok()
        .and_then(|ord| ord.checked_sub(1))
        .ok_or_else(|| crate::error::corrupt("an answer has no place"))
}

fn asks_lease(stream: &StreamAppend) -> bool {
    matches!(&stream.queue, QueueChange::Remove { leased_by: Some(_) })
}

/// The tenants whose rows the transaction may see. An id has no comma.
pub(super) fn tenants(appends: &[&Append]) -> String {
    let tenants: BTreeSet<&str> =
        appends.iter().flat_map(|append| &append.streams).map(|stream| stream.tenant.as_str()).collect();
    tenants.into_iter().collect::<Vec<_>>().join(",")
}

/// Runs, and the requests of new ones: two starts of the same request wait for each other.
pub(super) fn locks(appends: &[&Append]) -> Vec<i64> {
    let mut locks = BTreeSet::new();
    for stream in appends.iter().flat_map(|append| &append.streams) {
        locks.insert(lock::run(&stream.run_id));
        if let Some(key) =
            stream.row.as_ref().filter(|_| stream.expected == Expected::New).and_then(|row| row.request_key)
        {
            locks.insert(lock::request(&stream.tenant, key));
        }
    }
    locks.into_iter().collect()
}
