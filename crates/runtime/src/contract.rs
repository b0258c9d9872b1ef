//! The runtime contract over a store: the same commands, events and snapshot whether a server is running or not.

mod view;

use std::sync::Arc;

use servo_model::contract::{
    AuthorityView, Readiness, ReplayView, RuntimeCommand, RuntimeEvent, RuntimeSnapshot, SNAPSHOT_SCHEMA_VERSION,
};
use servo_model::event::{EventBody, idempotency_key};
use servo_model::{Invalid, RunId, TenantId, Timestamp};
use servo_store::relay::CursorRow;
use servo_store::{
    Append, AuthorityChange, AuthorityRow, DispatchChange, Expected, Fence, NewEvent, Position, Scope, Store,
    StreamAppend,
};

use crate::engine::Error;
use crate::ids::Ids;
use crate::loops::replay;

pub use view::view;

/// Events counted as pending in a snapshot, at most: the count is for people, and counting on would take time.
const PENDING_MAX: u64 = 1_000_000;

/// Tries when the store's answer is lost.
const TRIES: u32 = 3;

/// Commands and snapshot of the contract.
#[derive(Clone)]
pub struct Contract {
    store: Arc<dyn Store>,
    ids: Arc<Ids>,
    wake: Option<Arc<crate::wake::Wake>>,
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contract").finish_non_exhaustive()
    }
}

/// What a command led to. The snapshot is there for `CaptureSnapshot` only.
#[derive(Debug, Clone)]
pub struct Executed {
    pub events: Vec<RuntimeEvent>,
    pub snapshot: Option<RuntimeSnapshot>,
}

impl Contract {
    pub fn new(store: Arc<dyn Store>, ids: Arc<Ids>) -> Self {
        Self { store, ids, wake: None }
    }

    pub(crate) fn with_wake(mut self, wake: Arc<crate::wake::Wake>) -> Self {
        self.wake = Some(wake);
        self
    }

    /// Executes a command. Its events are in the log before this returns. `fence` is the authority that the caller acts
    /// under, where it has one.
    pub async fn execute(&self, command: RuntimeCommand, fence: Option<Fence>) -> Result<Executed, Error> {
        let now = self.store.now().await?;
        let mut append = Append { fence, ..Append::default() };
        let event = match command {
            RuntimeCommand::AcquireAuthority { owner, lease_id, leased_until } => {
                append.authority = Some(AuthorityChange::Acquire {
                    owner: owner.clone(),
                    lease_id: lease_id.clone(),
                    leased_until: leased_until.clone(),
                });
                RuntimeEvent::AuthorityAcquired { owner, lease_id, leased_until }
            }
            RuntimeCommand::RenewAuthority { owner, lease_id, leased_until } => {
                append.authority = Some(AuthorityChange::Renew {
                    owner: owner.clone(),
                    epoch: fence.map(|fence| fence.epoch),
                    lease_id: lease_id.clone(),
                    leased_until: leased_until.clone(),
                });
                RuntimeEvent::AuthorityRenewed { owner, lease_id, leased_until }
            }
            RuntimeCommand::QueueDispatch { request_id, target } => {
                return self.queue_dispatch(append, request_id, target, now).await;
            }
            RuntimeCommand::MarkNotified { request_id, channel } => {
                let epoch = fence.map_or(0, |fence| fence.epoch);
                let change = DispatchChange::Notify { request_id: request_id.clone(), channel: channel.clone(), epoch };
                return self.mark(append, change, RuntimeEvent::DispatchNotified { request_id, channel }, now).await;
            }
            RuntimeCommand::MarkDelivered { request_id } => {
                let change = DispatchChange::Deliver { request_id: request_id.clone() };
                return self.mark(append, change, RuntimeEvent::DispatchDelivered { request_id }, now).await;
            }
            RuntimeCommand::MarkFailed { request_id, reason } => {
                let change = DispatchChange::Fail { request_id: request_id.clone(), reason: reason.clone() };
                return self.mark(append, change, RuntimeEvent::DispatchFailed { request_id, reason }, now).await;
            }
            RuntimeCommand::RequestReplay { cursor } => {
                let position = Position::parse(&cursor)?;
                let head = self.store.log_head().await?;
                let fresh = self.store.authority().await?.is_some_and(|row| row.is_fresh(now));
                append.cursors.push(CursorRow {
                    target: Some(head.max(position)),
                    deferred: !fresh,
                    ..CursorRow::at(replay::CURSOR, position)
                });
                RuntimeEvent::ReplayRequested { cursor }
            }
            RuntimeCommand::CaptureSnapshot => RuntimeEvent::SnapshotCaptured,
        };
        append.streams.push(system_stream(&self.ids, now, std::slice::from_ref(&event)));
        self.record(append).await?;
        let snapshot = match event {
            RuntimeEvent::SnapshotCaptured => Some(self.snapshot(&[]).await?),
            _ => None,
        };
        Ok(Executed { events: vec![event], snapshot })
    }

    /// A repeated request id changes nothing and is answered like the first.
    async fn queue_dispatch(
        &self,
        mut append: Append,
        request_id: String,
        target: String,
        now: Timestamp,
    ) -> Result<Executed, Error> {
        let event = RuntimeEvent::DispatchQueued { request_id: request_id.clone(), target: target.clone() };
        self.check_not_a_runs(&request_id).await?;
        if self.store.get_dispatch(&request_id).await?.is_some() {
            return Ok(Executed { events: vec![event], snapshot: None });
        }
        let mut stream = system_stream(&self.ids, now, std::slice::from_ref(&event));
        // The key names the request, so that two racing commands record one event.
        if let Some(first) = stream.events.first_mut() {
            first.idempotency_key = idempotency_key(&RunId::system(), &request_id, 1, "DispatchQueued", "");
        }
        stream.dispatches.push(DispatchChange::Queue { request_id, target, step: None });
        append.streams.push(stream);
        self.record(append).await?;
        Ok(Executed { events: vec![event], snapshot: None })
    }

    /// Dispatches of runs move with their run's events. One that is moved without them would leave its step waiting for
    /// ever.
    async fn check_not_a_runs(&self, request_id: &str) -> Result<(), Error> {
        let Some(run_id) = request_id.split_once('/').and_then(|(run, _)| RunId::parse(run).ok()) else {
            return Ok(());
        };
        match self.store.get_run(&Scope::System, &run_id).await? {
            Some(row) if !row.run_id.is_system() => {
                Err(Invalid::new("request_id", format!("is a dispatch of run {run_id} and moves with the run")).into())
            }
            _ => Ok(()),
        }
    }

    async fn mark(
        &self,
        mut append: Append,
        change: DispatchChange,
        event: RuntimeEvent,
        now: Timestamp,
    ) -> Result<Executed, Error> {
        if let RuntimeEvent::DispatchNotified { request_id, .. }
        | RuntimeEvent::DispatchDelivered { request_id }
        | RuntimeEvent::DispatchFailed { request_id, .. } = &event
        {
            self.check_not_a_runs(request_id).await?;
        }
        let mut stream = system_stream(&self.ids, now, std::slice::from_ref(&event));
        stream.dispatches.push(change);
        append.streams.push(stream);
        self.record(append).await?;
        Ok(Executed { events: vec![event], snapshot: None })
    }

    /// Appends, and finds out what became of it when the answer is lost. Asking again with the same events is safe: what
    /// is recorded already is the answer. Only a change of the authority would happen twice, so that one is looked up.
    async fn record(&self, append: Append) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.append(append.clone()).await {
                Ok(_) => break,
                Err(error) if error.may_have_happened() && tries < TRIES => {
                    if let Some(change) = &append.authority {
                        if self.store.authority().await?.is_some_and(|row| is_result_of(&row, change)) {
                            break;
                        }
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.woke();
        Ok(())
    }

    fn woke(&self) {
        if let Some(wake) = &self.wake {
            wake.replay.notify_one();
            wake.log_grew();
        }
    }

    /// The runtime as the store knows it, plus what else blocks the caller.
    pub async fn snapshot(&self, blockers: &[String]) -> Result<RuntimeSnapshot, Error> {
        let now = self.store.now().await?;
        let authority = self.authority(now).await?;
        let mut reasons = Vec::new();
        match (&authority.owner, &authority.stale_reason) {
            (None, _) => reasons.push("no authority is held".to_owned()),
            (Some(_), Some(reason)) => reasons.push(format!("the authority is stale: {reason}")),
            (Some(_), None) => {}
        }
        reasons.extend_from_slice(blockers);
        Ok(RuntimeSnapshot {
            schema_version: SNAPSHOT_SCHEMA_VERSION,
            authority,
            backlog: self.store.backlog().await?,
            replay: self.replay().await?,
            readiness: Readiness { ready: reasons.is_empty(), reasons },
        })
    }

    async fn authority(&self, now: Timestamp) -> Result<AuthorityView, Error> {
        let Some(row) = self.store.authority().await? else { return Ok(AuthorityView::default()) };
        let stale_reason = if row.resigned {
            Some("its holder has resigned".to_owned())
        } else if row.is_fresh(now) {
            None
        } else {
            Some(format!("the lease expired at {}", row.leased_until))
        };
        Ok(AuthorityView {
            owner: Some(row.owner),
            lease_id: Some(row.lease_id),
            leased_until: Some(row.leased_until),
            stale: stale_reason.is_some(),
            stale_reason,
        })
    }

    async fn replay(&self) -> Result<ReplayView, Error> {
        let Some(row) = self.store.cursor(replay::CURSOR).await? else { return Ok(ReplayView::default()) };
        let pending_events = match row.target {
            Some(target) => self.store.count_log(row.position, target, PENDING_MAX).await?,
            None => 0,
        };
        Ok(ReplayView {
            cursor: Some(row.position.to_string()),
            pending_events,
            last_replayed_event_id: row.last_event_id.map(|id| id.to_string()),
            deferred_leader_notification: row.deferred,
        })
    }

    /// The contract's events after a position: those of the system stream as they are, and what runs' own events say
    /// about dispatches, workers and waiting people.
    pub async fn events(&self, after: Position, limit: u32) -> Result<(Vec<RuntimeEvent>, Position), Error> {
        let page = self.store.read_log(after, limit).await?;
        let events = page.events.iter().flat_map(|event| view(event)).collect();
        Ok((events, page.next))
    }
}

/// Whether the authority stands as a change would leave it.
fn is_result_of(row: &AuthorityRow, change: &AuthorityChange) -> bool {
    match change {
        AuthorityChange::Acquire { owner, lease_id, leased_until }
        | AuthorityChange::Renew { owner, lease_id, leased_until, .. } => {
            !row.resigned && (&row.owner, &row.lease_id, &row.leased_until) == (owner, lease_id, leased_until)
        }
        AuthorityChange::Resign { owner, epoch } => row.resigned && row.owner == *owner && row.epoch == *epoch,
    }
}

/// An append to the system stream.
pub(crate) fn system_stream(ids: &Ids, now: Timestamp, events: &[RuntimeEvent]) -> StreamAppend {
    let run_id = RunId::system();
    let mut stream = StreamAppend::new(run_id.clone(), TenantId::system(), Expected::Any);
    stream.events = events
        .iter()
        .map(|event| {
            let event_id = ids.event_id(now);
            NewEvent {
                event_id,
                event_type: event.name().into(),
                idempotency_key: idempotency_key(&run_id, &event_id.to_string(), 1, event.name(), ""),
                emitted_by: "runtime".into(),
                occurred_at: None,
                payload: EventBody::Runtime(event.clone()).encode(),
            }
        })
        .collect();
    stream
}
