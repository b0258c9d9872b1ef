//! Append, by the rules written at `LogStore`.

use servo_model::Timestamp;
use servo_model::event::FORMAT;

use super::{Inner, MemStore, Queue, Run};
use crate::dispatch::{Changed, DispatchChange, DispatchRow};
use crate::error::{Error, Result};
use crate::lease::AuthorityRow;
use crate::log::{
    Append, Appended, EventOutcome, Expected, KeyMode, NewEvent, QueueChange, StoredEvent, StreamAppend, StreamOutcome,
    TimerChange,
};
use crate::position::Position;

impl MemStore {
    pub(super) fn append_now(&self, append: Append) -> Result<Appended> {
        append.check(&self.limits)?;
        let now = (self.time)();
        let mut inner = self.lock()?;
        // All or nothing: work on a copy of what may change, and swap it in at the end.
        let mut draft = Draft { inner: &mut inner, undo: Vec::new(), now, events_max: self.limits.events_per_run_max };
        match draft.run(append) {
            Ok(appended) => Ok(appended),
            Err(error) => {
                draft.roll_back();
                Err(error)
            }
        }
    }
}

/// The open transaction: changes are made in place and undone in reverse.
struct Draft<'a> {
    inner: &'a mut Inner,
    undo: Vec<Undo>,
    now: Timestamp,
    events_max: u64,
}

enum Undo {
    Run(servo_model::RunId, Option<Box<RunHead>>),
    Snapshot(servo_model::RunId, u64, Option<String>),
    Dispatch(String, Option<DispatchRow>),
    Authority(Option<AuthorityRow>),
    Log(u64),
    Request(servo_model::TenantId, servo_canon::Digest),
}

/// What an append changes of a run, besides adding events at the end.
struct RunHead {
    row: crate::RunRow,
    timer: Option<Timestamp>,
    queue: Option<Queue>,
    head: u64,
}

impl Draft<'_> {
    fn run(&mut self, append: Append) -> Result<Appended> {
        if let Some(fence) = append.fence {
            fence.check(self.inner.authority.as_ref(), self.now)?;
        }
        let mut epoch = None;
        if let Some(change) = &append.authority {
            let row = AuthorityRow::change(self.inner.authority.as_ref(), change, self.now)?;
            epoch = Some(row.epoch);
            let before = self.inner.authority.replace(row);
            self.undo.push(Undo::Authority(before));
        }
        let expectations = append.expectations();
        let mut streams = Vec::with_capacity(append.streams.len());
        for stream in append.streams {
            streams.push(self.stream(stream)?);
        }
        let appended = Appended { streams, epoch };
        appended.check_overtaken(&expectations)?;
        for cursor in append.cursors {
            self.inner.cursors.insert(cursor.name.clone(), cursor);
        }
        Ok(appended)
    }

    fn stream(&mut self, stream: StreamAppend) -> Result<StreamOutcome> {
        let run = match self.inner.runs.get(&stream.run_id) {
            None if stream.expected == Expected::New => {
                self.create(&stream)?;
                return self.write(stream);
            }
            Some(run) if run.row.tenant == stream.tenant => run,
            Some(_) if stream.expected == Expected::New => return Err(Error::RunExists { run_id: stream.run_id }),
            Some(_) | None => return Err(Error::NotFound),
        };
        let existing: Vec<_> = stream.events.iter().map(|event| existing(run, event)).collect();
        let all_exist = !existing.is_empty() && existing.iter().all(Option::is_some);
        if stream.key_mode == KeyMode::Strict
            && let Some((event, found)) =
                stream.events.iter().zip(&existing).find_map(|(event, found)| Some((event, found.as_ref()?)))
            && (all_exist || self.sequence(&stream, run.head).is_ok())
        {
            return Err(Error::KeyExists {
                run_id: stream.run_id.clone(),
                key: event.idempotency_key,
                run_seq: found.run_seq,
                event_id: found.event_id,
            });
        }
        if all_exist {
            return Ok(StreamOutcome { events: existing.into_iter().flatten().collect() });
        }
        self.sequence(&stream, run.head)?;
        if existing.iter().any(Option::is_some) && stream.expected != Expected::Any {
            let head = run.head;
            return Err(Error::Conflict { run_id: stream.run_id.clone(), expected: head, actual: head });
        }
        let head = RunHead { row: run.row.clone(), timer: run.timer, queue: run.queue.clone(), head: run.head };
        self.undo.push(Undo::Run(stream.run_id.clone(), Some(Box::new(head))));
        self.write(stream)
    }

    fn sequence(&self, stream: &StreamAppend, head: u64) -> Result<()> {
        match stream.expected {
            Expected::New => Err(Error::RunExists { run_id: stream.run_id.clone() }),
            Expected::Seq(expected) if expected != head => {
                Err(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: head })
            }
            Expected::Seq(_) | Expected::Any => Ok(()),
        }
    }

    fn create(&mut self, stream: &StreamAppend) -> Result<()> {
        let row = stream
            .row
            .clone()
            .ok_or_else(|| Error::Invalid { field: "row".to_owned(), reason: "a new run brings its row".to_owned() })?;
        if let Some(key) = row.request_key {
            let slot = (stream.tenant.clone(), key);
            if let Some(earlier) = self.inner.requests.get(&slot) {
                return Err(Error::RequestExists { run_id: earlier.clone() });
            }
            self.inner.requests.insert(slot, stream.run_id.clone());
            self.undo.push(Undo::Request(stream.tenant.clone(), key));
        }
        self.inner.runs.insert(stream.run_id.clone(), Run::new(row));
        self.undo.push(Undo::Run(stream.run_id.clone(), None));
        Ok(())
    }

    fn write(&mut self, stream: StreamAppend) -> Result<StreamOutcome> {
        let now = self.now;
        let mut outcomes = Vec::with_capacity(stream.events.len());
        for event in stream.events {
            let run = self.inner.runs.get_mut(&stream.run_id).ok_or(Error::NotFound)?;
            if let Some(found) = existing(run, &event) {
                outcomes.push(found);
                continue;
            }
            if run.head >= self.events_max && !stream.run_id.is_system() {
                return Err(Error::Limit { what: "the events of one run", limit: self.events_max });
            }
            run.head += 1;
            let seq = run.head;
            self.inner.next_id += 1;
            let id = self.inner.next_id;
            outcomes.push(EventOutcome { run_seq: seq, event_id: event.event_id, emitted_at: now, inserted: true });
            run.keep(StoredEvent {
                position: Position::of_id(id),
                format: FORMAT,
                run_id: stream.run_id.clone(),
                tenant: stream.tenant.clone(),
                run_seq: seq,
                event_id: event.event_id,
                event_type: event.event_type,
                idempotency_key: event.idempotency_key,
                emitted_at: now,
                emitted_by: event.emitted_by,
                occurred_at: event.occurred_at,
                payload: event.payload,
            });
            self.inner.log.insert(id, (stream.run_id.clone(), seq));
            self.undo.push(Undo::Log(id));
        }
        let run = self.inner.runs.get_mut(&stream.run_id).ok_or(Error::NotFound)?;
        if let Some(row) = stream.row {
            run.row = if stream.expected == Expected::New { row } else { row.keeping(&run.row) };
        }
        match stream.timer {
            TimerChange::Keep => {}
            TimerChange::Set(at) => run.timer = Some(at),
            TimerChange::Clear => run.timer = None,
        }
        match stream.queue {
            QueueChange::Keep => {}
            QueueChange::Put { not_before } => run.queue = Some(Queue { not_before, queued_at: now, lease: None }),
            QueueChange::Remove { leased_by } => {
                let holder = run.queue.as_ref().and_then(|queue| queue.lease.as_ref()).map(|(owner, _)| owner);
                if leased_by.is_some() && leased_by.as_ref() != holder {
                    return Err(Error::LeaseLost { run_id: stream.run_id });
                }
                run.queue = None;
            }
        }
        if let Some(snapshot) = stream.snapshot {
            let before = run.snapshots.insert(snapshot.run_seq, snapshot.state);
            self.undo.push(Undo::Snapshot(stream.run_id.clone(), snapshot.run_seq, before));
        }
        for change in stream.dispatches {
            self.dispatch(&stream.run_id, &stream.tenant, change)?;
        }
        Ok(StreamOutcome { events: outcomes })
    }

    fn dispatch(
        &mut self,
        run_id: &servo_model::RunId,
        tenant: &servo_model::TenantId,
        change: DispatchChange,
    ) -> Result<()> {
        let id = change.request_id().to_owned();
        let before = self.inner.dispatches.get(&id).cloned();
        let after = match change.change(before.as_ref(), (run_id, tenant), self.now)? {
            Changed::Nothing => return Ok(()),
            Changed::Row(row) => Some(row),
            Changed::Gone => None,
        };
        self.undo.push(Undo::Dispatch(id.clone(), before));
        match after {
            Some(row) => self.inner.dispatches.insert(id, row),
            None => self.inner.dispatches.remove(&id),
        };
        Ok(())
    }

    fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Run(id, None) => {
                    self.inner.runs.remove(&id);
                }
                Undo::Run(id, Some(head)) => {
                    if let Some(run) = self.inner.runs.get_mut(&id) {
                        for (_, event) in run.events.split_off(&(head.head + 1)) {
                            run.keys.remove(&event.idempotency_key);
                        }
                        (run.row, run.timer, run.queue, run.head) = (head.row, head.timer, head.queue, head.head);
                    }
                }
                Undo::Snapshot(id, seq, before) => {
                    if let Some(run) = self.inner.runs.get_mut(&id) {
                        match before {
                            Some(state) => run.snapshots.insert(seq, state),
                            None => run.snapshots.remove(&seq),
                        };
                    }
                }
                Undo::Dispatch(id, Some(row)) => {
                    self.inner.dispatches.insert(id, row);
                }
                Undo::Dispatch(id, None) => {
                    self.inner.dispatches.remove(&id);
                }
                Undo::Authority(before) => self.inner.authority = before,
                Undo::Log(id) => {
                    self.inner.log.remove(&id);
                }
                Undo::Request(tenant, key) => {
                    self.inner.requests.remove(&(tenant, key));
                }
            }
        }
    }
}

fn existing(run: &Run, event: &NewEvent) -> Option<EventOutcome> {
    let seq = run.keys.get(&event.idempotency_key)?;
    let found = run.events.get(seq)?;
    Some(EventOutcome { run_seq: *seq, event_id: found.event_id, emitted_at: found.emitted_at, inserted: false })
}
