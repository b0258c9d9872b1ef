//! The rules of `LogStore` on what was loaded. Pure: it decides and collects, and sends nothing.

use std::collections::HashMap;
use std::sync::Arc;

use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{EventOutcome, KeyMode, QueueChange, StreamOutcome};
use servo_store::{Append, Appended, AuthorityRow, DispatchChange, DispatchRow, Error, Expected, Result, StreamAppend};

use super::writes::{EventWrite, NewRun, QueueWrite, Writes};

/// What the appends of a batch touch, as it stands under their locks, and as they change it one after another.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) events_max: u64,
    pub(super) authority: Option<AuthorityRow>,
    pub(super) runs: HashMap<RunId, RunView>,
    pub(super) requests: HashMap<(TenantId, Digest), RunId>,
    pub(super) dispatches: HashMap<String, DispatchRow>,
}

#[derive(Debug, Clone)]
pub(super) struct RunView {
    pub(super) tenant: TenantId,
    pub(super) head: u64,
    /// Events of the run, of those whose keys the batch asks for.
    pub(super) keys: HashMap<Digest, EventOutcome>,
    pub(super) queue_owner: Option<String>,
    /// Under which plan and status an invocation is counted; `None` for other runs.
    pub(super) counted: Option<(Arc<str>, InvocationStatus)>,
}

/// What an append may have changed, to be put back if it is refused.
struct Before {
    authority: Option<AuthorityRow>,
    runs: Vec<(RunId, Option<RunView>)>,
    dispatches: Vec<(String, Option<DispatchRow>)>,
    requests: Vec<(TenantId, Digest)>,
}

impl World {
    /// One append: all of it is in `writes` then, or none.
    pub(super) fn judge<'a>(&mut self, append: &'a Append, writes: &mut Writes<'a>) -> Result<Appended> {
        let before = self.before(append);
        let mut own = Writes::default();
        match self.append(append, &mut own) {
            Ok(appended) => {
                writes.merge(own);
                Ok(appended)
            }
            Err(error) => {
                self.put_back(before);
                Err(error)
            }
        }
    }

    fn append<'a>(&mut self, append: &'a Append, writes: &mut Writes<'a>) -> Result<Appended> {
        if let Some(fence) = append.fence {
            fence.check(self.authority.as_ref(), self.now)?;
        }
        let mut epoch = None;
        if let Some(change) = &append.authority {
            let row = AuthorityRow::change(self.authority.as_ref(), change, self.now)?;
            epoch = Some(row.epoch);
            writes.authority = Some(row.clone());
            self.authority = Some(row);
        }
        let mut streams = Vec::with_capacity(append.streams.len());
        for stream in &append.streams {
            streams.push(self.stream(stream, writes)?);
        }
        let appended = Appended { streams, epoch };
        appended.check_overtaken(&append.expectations())?;
        for cursor in &append.cursors {
            writes.cursors.insert(&cursor.name, cursor);
        }
        Ok(appended)
    }

    fn stream<'a>(&mut self, stream: &'a StreamAppend, writes: &mut Writes<'a>) -> Result<StreamOutcome> {
        let is_new = stream.expected == Expected::New;
        match self.runs.get(&stream.run_id) {
            None if is_new => self.create(stream, writes)?,
            Some(run) if run.tenant == stream.tenant => {
                if let Some(adopted) = adopt(stream, run)? {
                    return Ok(adopted);
                }
            }
            Some(_) if is_new => return Err(Error::RunExists { run_id: stream.run_id.clone() }),
            Some(_) | None => return Err(Error::NotFound),
        }
        self.write(stream, writes)
    }

    fn create<'a>(&mut self, stream: &'a StreamAppend, writes: &mut Writes<'a>) -> Result<()> {
        let row = stream
            .row
            .as_ref()
            .ok_or_else(|| Error::Invalid { field: "row".to_owned(), reason: "a new run brings its row".to_owned() })?;
        if let Some(key) = row.request_key {
            let slot = (stream.tenant.clone(), key);
            if let Some(earlier) = self.requests.get(&slot) {
                return Err(Error::RequestExists { run_id: earlier.clone() });
            }
            self.requests.insert(slot, stream.run_id.clone());
        }
        let counted = row.invocation.then(|| (row.plan_id.clone(), row.visible));
        if row.invocation {
            writes.counts.add(&stream.tenant, &row.plan_id, row.visible, 1);
        }
        let view = RunView { tenant: stream.tenant.clone(), head: 0, keys: HashMap::new(), queue_owner: None, counted };
        self.runs.insert(stream.run_id.clone(), view);
        writes.new_runs.push(NewRun { run_id: &stream.run_id, tenant: &stream.tenant, row });
        Ok(())
    }

    fn write<'a>(&mut self, stream: &'a StreamAppend, writes: &mut Writes<'a>) -> Result<StreamOutcome> {
        let run = self.runs.get_mut(&stream.run_id).ok_or(Error::NotFound)?;
        let mut outcomes = Vec::with_capacity(stream.events.len());
        for event in &stream.events {
            if let Some(found) = run.keys.get(&event.idempotency_key) {
                outcomes.push(found.clone());
                continue;
            }
            if run.head >= self.events_max && !stream.run_id.is_system() {
                return Err(Error::Limit { what: "the events of one run", limit: self.events_max });
            }
            run.head += 1;
            let written =
                EventOutcome { run_seq: run.head, event_id: event.event_id, emitted_at: self.now, inserted: true };
            run.keys.insert(event.idempotency_key, EventOutcome { inserted: false, ..written.clone() });
            outcomes.push(written);
            let (run_id, tenant) = (&stream.run_id, &stream.tenant);
            writes.events.push(EventWrite { run_id, tenant, run_seq: run.head, event });
        }
        if let Some(row) = stream.row.as_ref().filter(|_| stream.expected != Expected::New) {
            writes.rows.insert(&stream.run_id, row);
            if let Some((plan_id, visible)) = &mut run.counted
                && (*plan_id != row.plan_id || *visible != row.visible)
            {
                writes.counts.add(&stream.tenant, plan_id, *visible, -1);
                writes.counts.add(&stream.tenant, &row.plan_id, row.visible, 1);
                (*plan_id, *visible) = (row.plan_id.clone(), row.visible);
            }
        }
        writes.timer(stream);
        match &stream.queue {
            QueueChange::Keep => {}
            QueueChange::Put { not_before } => {
                run.queue_owner = None;
                let put = QueueWrite::Put { tenant: &stream.tenant, not_before: *not_before };
                writes.queue.insert(&stream.run_id, put);
            }
            QueueChange::Remove { leased_by } => {
                if leased_by.is_some() && *leased_by != run.queue_owner {
                    return Err(Error::LeaseLost { run_id: stream.run_id.clone() });
                }
                run.queue_owner = None;
                writes.queue.insert(&stream.run_id, QueueWrite::Remove);
            }
        }
        if let Some(snapshot) = &stream.snapshot {
            writes.snapshots.insert((&stream.run_id, snapshot.run_seq), (&stream.tenant, &snapshot.state));
        }
        for change in &stream.dispatches {
            self.dispatch(stream, change, writes)?;
        }
        Ok(StreamOutcome { events: outcomes })
    }

    fn dispatch<'a>(
        &mut self,
        stream: &'a StreamAppend,
        change: &'a DispatchChange,
        writes: &mut Writes<'a>,
    ) -> Result<()> {
        let id = change.request_id();
        let known = self.dispatches.get(id);
        // Another tenant's dispatch is not there to be moved; the system stream carries the operator's word on any.
        let row = known.filter(|row| row.tenant == stream.tenant || stream.run_id.is_system());
        let after = match change {
            DispatchChange::Queue { request_id, target, step } => match known {
                Some(_) => return Ok(()),
                None => Some(DispatchRow {
                    request_id: request_id.clone(),
                    run_id: stream.run_id.clone(),
                    tenant: stream.tenant.clone(),
                    target: target.clone(),
                    step: step.clone(),
                    state: DispatchState::Pending,
                    channel: None,
                    reason: None,
                    epoch: 0,
                    queued_at: self.now,
                    changed_at: self.now,
                }),
            },
            DispatchChange::Notify { channel, epoch, .. } => {
                let moved = moved(row, id, DispatchState::Notified, self.now)?;
                Some(DispatchRow { channel: Some(channel.clone()), epoch: *epoch, ..moved })
            }
            DispatchChange::Deliver { .. } => Some(moved(row, id, DispatchState::Delivered, self.now)?),
            DispatchChange::Fail { reason, .. } => {
                let moved = moved(row, id, DispatchState::Failed, self.now)?;
                Some(DispatchRow { reason: Some(reason.clone()), ..moved })
            }
            DispatchChange::Adopt { epoch, .. } => {
                let row = row.ok_or_else(|| Error::DispatchNotFound { request_id: id.to_owned() })?;
                if row.state != DispatchState::Notified || row.epoch >= *epoch {
                    let (request_id, to) = (id.to_owned(), DispatchState::Notified);
                    return Err(Error::DispatchMove { request_id, from: row.state, to });
                }
                Some(DispatchRow { epoch: *epoch, changed_at: self.now, ..row.clone() })
            }
            DispatchChange::Withdraw { .. } => match row {
                Some(row) if row.state == DispatchState::Pending => None,
                _ => return Ok(()),
            },
        };
        match after {
            Some(row) => {
                self.dispatches.insert(id.to_owned(), row.clone());
                writes.dispatches.insert(id, row);
            }
            None => {
                self.dispatches.remove(id);
                writes.dispatches.remove(id);
                writes.withdrawn.insert(id);
            }
        }
        Ok(())
    }

    fn before(&self, append: &Append) -> Before {
        let runs = append.streams.iter().map(|stream| &stream.run_id);
        let ids = append.streams.iter().flat_map(|stream| &stream.dispatches).map(DispatchChange::request_id);
        let new = append.streams.iter().filter(|stream| stream.expected == Expected::New);
        let slots = new.filter_map(|stream| Some((stream.tenant.clone(), stream.row.as_ref()?.request_key?)));
        Before {
            authority: self.authority.clone(),
            runs: runs.map(|id| (id.clone(), self.runs.get(id).cloned())).collect(),
            dispatches: ids.map(|id| (id.to_owned(), self.dispatches.get(id).cloned())).collect(),
            requests: slots.filter(|slot| !self.requests.contains_key(slot)).collect(),
        }
    }

    fn put_back(&mut self, before: Before) {
        self.authority = before.authority;
        for (id, run) in before.runs {
            match run {
                Some(run) => self.runs.insert(id, run),
                None => self.runs.remove(&id),
            };
        }
        for (id, row) in before.dispatches {
            match row {
                Some(row) => self.dispatches.insert(id, row),
                None => self.dispatches.remove(&id),
            };
        }
        for slot in before.requests {
            self.requests.remove(&slot);
        }
    }
}

/// Rules 2 to 4: the outcome if every event is there already, an error if the run is not as expected, or `None` if the
/// stream is to be written.
fn adopt(stream: &StreamAppend, run: &RunView) -> Result<Option<StreamOutcome>> {
    let existing: Vec<_> = stream.events.iter().map(|event| run.keys.get(&event.idempotency_key)).collect();
    let all_exist = !existing.is_empty() && existing.iter().all(Option::is_some);
    let in_sequence = match stream.expected {
        Expected::New => Err(Error::RunExists { run_id: stream.run_id.clone() }),
        Expected::Seq(expected) if expected != run.head => {
            Err(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: run.head })
        }
        Expected::Seq(_) | Expected::Any => Ok(()),
    };
    let first = stream.events.iter().zip(&existing).find_map(|(event, found)| Some((event, (*found)?)));
    if let Some((event, found)) = first
        && stream.key_mode == KeyMode::Strict
        && (all_exist || in_sequence.is_ok())
    {
        return Err(Error::KeyExists {
            run_id: stream.run_id.clone(),
            key: event.idempotency_key,
            run_seq: found.run_seq,
            event_id: found.event_id,
        });
    }
    if all_exist {
        return Ok(Some(StreamOutcome { events: existing.into_iter().flatten().cloned().collect() }));
    }
    in_sequence?;
    if first.is_some() && stream.expected != Expected::Any {
        return Err(Error::Conflict { run_id: stream.run_id.clone(), expected: run.head, actual: run.head });
    }
    Ok(None)
}

fn moved(row: Option<&DispatchRow>, id: &str, to: DispatchState, now: Timestamp) -> Result<DispatchRow> {
    let row = row.ok_or_else(|| Error::DispatchNotFound { request_id: id.to_owned() })?;
    if !row.state.can_become(to) {
        return Err(Error::DispatchMove { request_id: id.to_owned(), from: row.state, to });
    }
    Ok(DispatchRow { state: to, changed_at: now, ..row.clone() })
}
