//! Moving and removing single runs: export, import, forced end, deletion.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_machine::Command;
use servo_model::event::{self, EventBody, RunCancelled, RunImported, idempotency_key};
use servo_model::invocation::InvocationStatus;
use servo_model::{Event, Invalid, RunId, RunState, RunStatus, TenantId};
use servo_store::log::{QueueChange, TimerChange};
use servo_store::{Append, Expected, NewEvent, Position, RunRow, Scope, StoredEvent, StreamAppend};

use crate::engine::{Engine, Error, Order};

/// The name and version of the file format.
const FORMAT: &str = "servo.run/1";

/// One run as a file: everything needed to read it elsewhere.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunFile {
    pub format: String,
    pub run_id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key: Option<Digest>,
    pub created_at: servo_model::Timestamp,
    /// Public documents, in order.
    pub events: Vec<Box<RawValue>>,
    /// Digest over the events as they stand in the file, so that a cut or edited file is noticed.
    pub sha256: Digest,
}

/// Who imports, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    pub tenant: &'a TenantId,
    pub by: &'a str,
    pub id: ImportedId,
}

/// What an imported run is called (ADR 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedId {
    /// As in the file. That it is taken says that somebody has it: for those who reach every tenant.
    Kept,
    /// By an id that only this tenant's imports of that run have: nothing is learnt about others'.
    New,
}

/// The same for the same file, so that a run that was imported once is known.
fn own_id(tenant: &TenantId, file: &RunFile) -> RunId {
    let digest = Digest::of_parts(&["import", tenant.as_str(), file.run_id.as_str()], '|');
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    RunId::new(file.run_id.created_at().unwrap_or(file.created_at), random)
}

impl RunFile {
    fn digest(events: &[Box<RawValue>]) -> Digest {
        let lines: Vec<&str> = events.iter().map(|event| event.get()).collect();
        Digest::of_parts(&lines, '\n')
    }
}

impl Engine {
    pub async fn export(&self, scope: &Scope, run_id: &RunId) -> Result<RunFile, Error> {
        let row = self.store().get_run(scope, run_id).await?.ok_or(servo_store::Error::NotFound)?;
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.read_events(scope, run_id, after, 1_000).await?;
            for stored in &page.events {
                let document = RawValue::from_string(stored.doc().to_json());
                events.push(document.map_err(|error| Invalid::new("events", error.to_string()))?);
            }
            match page.events.last() {
                Some(last) if last.run_seq < page.head_seq => after = last.run_seq,
                _ => break,
            }
        }
        let sha256 = RunFile::digest(&events);
        let (request_key, created_at) = (row.request_key, row.created_at);
        Ok(RunFile { format: FORMAT.to_owned(), run_id: run_id.clone(), request_key, created_at, events, sha256 })
    }

    /// Puts an exported run into this store, under the tenant of whoever imports it. The run is history: it is read and
    /// shown, and goes on only if somebody signals it. Its last event says that it was imported, and by whom: the file's digest
    /// shows that it was cut, not who has made it.
    pub async fn import(&self, import: Import<'_>, file: RunFile) -> Result<RunId, Error> {
        let tenant = import.tenant;
        if file.format != FORMAT {
            return Err(Invalid::new("format", format!("is `{FORMAT}`")).into());
        }
        if RunFile::digest(&file.events) != file.sha256 {
            return Err(Invalid::new("sha256", "does not match the events: the file was cut or changed").into());
        }
        if self.store().get_run(&Scope::Tenant(tenant.clone()), &file.run_id).await?.is_some() {
            return Err(servo_store::Error::RunExists { run_id: file.run_id }.into());
        }
        let run_id = match import.id {
            ImportedId::Kept => file.run_id.clone(),
            ImportedId::New => own_id(tenant, &file),
        };
        let mut state = RunState::new(run_id.clone());
        let mut stored = Vec::with_capacity(file.events.len() + 1);
        for (index, document) in file.events.iter().enumerate() {
            let mut event = Event::from_json(document.get()).map_err(|e| e.inside(&format!("events/{index}")))?;
            if event.run_id != file.run_id {
                return Err(Invalid::new(format!("events/{index}/runId"), "is another run's").into());
            }
            event.run_id = run_id.clone();
            stored.push(stored_event(&event, tenant));
            state.advance(&event);
        }
        if !stored.is_empty() {
            let mark = self.mark(&import, &file, &state)?;
            stored.push(stored_event(&mark, tenant));
            state.advance(&mark);
        }
        let mut row = RunRow::of(&state, file.request_key, file.created_at);
        row.tenant = tenant.clone();
        self.store().import_run(row, stored).await?;
        self.wake().log_grew();
        Ok(run_id)
    }

    /// What says that all before it came out of a file. Behind the last of its events, so that nothing in the file can take it back.
    fn mark(&self, import: &Import<'_>, file: &RunFile, state: &RunState) -> Result<Event, Error> {
        let now = self.now();
        let no_room = || Invalid::new("events", "the sequence of the last one leaves no room for another");
        let run_seq =
            state.last_event_seq.checked_add(1).filter(|seq| i64::try_from(*seq).is_ok()).ok_or_else(no_room)?;
        let imports = state.imported.as_ref().map_or(0, |imported| imported.times);
        let body = EventBody::RunImported(RunImported {
            logical_attempt_id: imports.saturating_add(1),
            imported_by: import.by.to_owned(),
            original_run_id: (state.run_id != file.run_id).then(|| file.run_id.clone()),
        });
        let (step, number) = body.key_parts();
        let key = idempotency_key(&state.run_id, step, number, body.event_type(), state.plan_version());
        Ok(Event {
            event_id: self.ids().event_id(now),
            run_id: state.run_id.clone(),
            run_seq,
            idempotency_key: key,
            emitted_at: now,
            emitted_by: "import".into(),
            occurred_at: None,
            body,
        })
    }

    /// Ends a run whatever it does. A run that cannot be read is ended without reading it.
    pub async fn terminate(&self, scope: &Scope, run_id: &RunId, by: &str, reason: &str) -> Result<(), Error> {
        let command = Command::Terminate { by: by.to_owned(), reason: reason.to_owned() };
        match self.execute(Order::new(scope.clone(), run_id.clone(), command, by)).await {
            Ok(_) => Ok(()),
            Err(Error::Quarantined(_)) => self.terminate_unread(scope, run_id, by, reason).await,
            Err(error) => Err(error),
        }
    }

    async fn terminate_unread(&self, scope: &Scope, run_id: &RunId, by: &str, reason: &str) -> Result<(), Error> {
        let row = self.store().get_run(scope, run_id).await?.ok_or(servo_store::Error::NotFound)?;
        if row.status.is_terminal() {
            return Err(servo_machine::Refusal::Closed(row.status).into());
        }
        let now = self.now();
        let event_id = self.ids().event_id(now);
        let body = EventBody::RunCancelled(RunCancelled {
            status: RunStatus::Cancelled,
            logical_attempt_id: 1,
            reason: Some(servo_model::limits::clip(reason).to_owned()),
            cancelled_by: Some(by.to_owned()),
        });
        let mut stream = StreamAppend::new(run_id.clone(), row.tenant.clone(), Expected::Any);
        stream.events.push(NewEvent {
            event_id,
            event_type: body.stored_type(),
            // Not the usual key: what the unreadable log holds is unknown, and this end must not collide with it.
            idempotency_key: idempotency_key(run_id, &event_id.to_string(), 1, body.event_type(), &row.plan_version),
            emitted_by: by.into(),
            occurred_at: Some(now),
            payload: body.encode(),
        });
        stream.row = Some(RunRow {
            status: RunStatus::Cancelled,
            visible: InvocationStatus::Canceled,
            finished_at: Some(now),
            ..row
        });
        stream.timer = TimerChange::Clear;
        stream.queue = QueueChange::Remove { leased_by: None };
        self.store().append(Append::one(stream)).await?;
        self.forget(run_id);
        self.wake().log_grew();
        Ok(())
    }

    /// Removes a run with everything it has. A run that is active is ended first, so that running code is told.
    pub async fn delete(&self, scope: &Scope, run_id: &RunId, by: &str) -> Result<(), Error> {
        match self.terminate(scope, run_id, by, "deleted").await {
            // Of one that cannot be read, what does not let it end does not keep it either.
            Ok(()) | Err(Error::Refused(_) | Error::Store(servo_store::Error::Corrupt { .. })) => {}
            Err(error) => return Err(error),
        }
        self.store().delete_run(scope, run_id).await?;
        self.forget(run_id);
        Ok(())
    }
}

fn stored_event(event: &Event, tenant: &TenantId) -> StoredEvent {
    StoredEvent {
        position: Position::START,
        format: event::FORMAT,
        run_id: event.run_id.clone(),
        tenant: tenant.clone(),
        run_seq: event.run_seq,
        event_id: event.event_id,
        event_type: event.body.stored_type(),
        idempotency_key: event.idempotency_key,
        emitted_at: event.emitted_at,
        emitted_by: event.emitted_by.as_str().into(),
        occurred_at: event.occurred_at,
        payload: event.body.encode(),
    }
}
