//! The projector follows the log and keeps what is derived from it: stored snapshots of long runs, and the alerts that
//! events give rise to. It also checks the log as it reads (gaps, inversions, events that cannot be read), and tells
//! running code of cancellations that other nodes recorded.
//!
//! Its place in the log is a durable cursor, moved after the work of a batch is done: killed at any point it does the
//! rest of the batch again, and everything it does may be done twice.

use std::time::Duration;

use foldhash::HashMap;
use servo_model::alert::AlertCode;
use servo_model::event::EventBody;
use servo_model::limits::{Limits, SNAPSHOT_BYTES_PER_EVENT, SNAPSHOT_EVERY_EVENTS};
use servo_model::projection::{Offered, Projection, Resync, Resynced, detect_non_contiguous};
use servo_model::state::Applied;
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::log::StoredSnapshot;
use servo_store::relay::{CursorRow, NewAlert};
use servo_store::resync::resync;
use servo_store::{Position, Scope, StoredEvent};

use super::authority::Authority;
use crate::engine::Engine;

pub const CURSOR: &str = "projector";
const BATCH: u32 = 500;
const BATCH_EVENTS: usize = BATCH as usize;
/// Lag above which an alert is raised, and below which it is withdrawn.
const LAG_HIGH: Duration = Duration::from_secs(5);
const LAG_NORMAL: Duration = Duration::from_secs(1);
/// Runs whose projection is kept between batches.
const RUNS_MAX: usize = 2_000;
/// Runs of which only the last sequence is kept.
const PASSED_MAX: usize = 50_000;

pub(crate) async fn run(engine: Engine, authority: Authority) {
    let mut log = engine.wake().watch_log();
    let mut projector = Projector::new(engine.clone());
    loop {
        let page = match authority.fence(engine.clock().elapsed()) {
            Some(fence) => projector.read_page(Some(fence)).await.unwrap_or_else(|error| {
                projector.position = None;
                tracing::debug!(%error, "projection interrupted");
                0
            }),
            None => {
                projector.position = None;
                0
            }
        };
        if engine.shutdown().is_triggered() {
            return;
        }
        match page {
            0 => {
                log.mark_unchanged();
                tokio::select! {
                    biased;
                    () = engine.shutdown().triggered() => return,
                    _ = log.changed() => super::gather(&engine).await,
                    () = engine.clock().sleep(engine.config().poll()) => {}
                }
            }
            // All that there was, nearly always. Looking at once would find the one event that came since, and move the cursor
            // once for every append.
            1..BATCH_EVENTS => super::gather(&engine).await,
            _ => {}
        }
    }
}

/// The projector without its loop.
#[derive(Debug)]
pub struct Projector {
    engine: Engine,
    /// `None` until read from the store, and after any doubt.
    position: Option<Position>,
    /// The cursor row may not exist yet.
    stored: Option<Position>,
    runs: HashMap<RunId, Followed>,
    /// Runs all of whose events were folded by this node when it recorded them, with their last sequence.
    passed: HashMap<RunId, u64>,
    /// Whether the alert stands. Unknown at first: an earlier process may have raised it.
    lagging: Option<bool>,
}

#[derive(Debug)]
struct Followed {
    projection: Projection,
    /// The sequence from which on the next snapshot is stored.
    snapshot_due: u64,
}

impl Projector {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            position: None,
            stored: None,
            runs: HashMap::default(),
            passed: HashMap::default(),
            lagging: None,
        }
    }

    /// Reads to the end of the log.
    pub async fn catch_up(&mut self, fence: Option<servo_store::Fence>) -> Result<(), servo_store::Error> {
        while self.read_page(fence).await? > 0 {}
        Ok(())
    }

    /// Reads on, and says how many events there were. A page may be short where the log does not end: only an empty one tells.
    async fn read_page(&mut self, fence: Option<servo_store::Fence>) -> Result<usize, servo_store::Error> {
        let position = super::resume(&self.engine, CURSOR, &mut self.position, &mut self.stored).await?;
        let page = self.engine.store().read_log(position, BATCH).await?;
        self.measure(page.events.first().map(|event| event.emitted_at)).await?;
        if page.is_end() {
            return Ok(0);
        }
        self.engine.set_aside_unreadable(&page.unreadable).await?;
        let last_event_id = page.events.last().map(|last| last.event_id);
        for event in &page.events {
            self.follow(event).await?;
        }
        let row = CursorRow { last_event_id, ..CursorRow::at(CURSOR, page.next) };
        self.engine.store().move_cursor(self.stored, row, fence).await?;
        self.position = Some(page.next);
        self.stored = Some(page.next);
        if self.runs.len() > RUNS_MAX {
            self.runs.clear();
        }
        if self.passed.len() > PASSED_MAX {
            self.passed.clear();
        }
        Ok(page.events.len() + page.unreadable.len())
    }

    async fn follow(&mut self, stored: &StoredEvent) -> Result<(), servo_store::Error> {
        if stored.run_id.is_system() || self.pass(stored) {
            return Ok(());
        }
        let event = match stored.decode() {
            Ok(event) => event,
            Err(invalid) => {
                let reason = format!("event {} cannot be read: {invalid}", stored.run_seq);
                return self.set_aside(stored, &reason).await;
            }
        };
        let Some(Followed { projection, mut snapshot_due }) = self.followed(stored).await? else { return Ok(()) };
        let (projection, offered) = projection.offer(&event);
        let (projection, findings) = match offered {
            Offered::Applied(applied) => (projection, vec![applied]),
            Offered::Gap { watermark, .. } => {
                match self.resync(stored, projection, watermark).await {
                    Ok(resynced) => resynced,
                    // A later event cannot be read. The run is set aside; the log goes on.
                    Err(servo_store::Error::Corrupt { detail }) => return self.set_aside(stored, &detail).await,
                    Err(error) => return Err(error),
                }
            }
        };
        for finding in findings {
            self.report(stored, finding).await?;
        }
        if let EventBody::DrainTimedOut(body) = &event.body {
            let message = format!("{} steps were still in flight at the drain timeout", body.in_flight);
            self.raise(AlertCode::PauseDrainTimeout, stored, message).await?;
        }
        let most = self.engine.config().policy.events_per_run_max;
        if stored.run_seq == Limits::events_warned_at(most) {
            let message = format!("the run has {} events, and ends at {most}", stored.run_seq);
            self.raise(AlertCode::RunEventsHigh, stored, message).await?;
        }
        // Cancelled on another node: the code runs here. A cancelled run stays so, so this cannot hit anything newer.
        if let EventBody::RunCancelled(_) = &event.body {
            self.engine.in_flight().cancel_run(&stored.run_id);
        }
        let state = projection.state();
        if state.last_event_seq >= snapshot_due {
            snapshot_due = self.store_snapshot(stored, state).await?;
        }
        // A resync reads to the end of the run: until the log has caught up with it, the projection is still of use.
        if !state.status.is_terminal() || stored.run_seq < state.last_event_seq {
            self.runs.insert(stored.run_id.clone(), Followed { projection, snapshot_due });
        }
        Ok(())
    }

    /// An event that this node recorded was read, checked and folded then: where nothing else is asked of it, that is not
    /// done again. A run is passed by up to its first snapshot; from there on, and where an event came in another way, it is
    /// followed.
    fn pass(&mut self, stored: &StoredEvent) -> bool {
        let run_id = &stored.run_id;
        let is_folded = self.engine.folded().take(&stored.event_id) && !self.runs.contains_key(run_id);
        let last = self.passed.get(run_id).copied();
        let follows = last.is_none_or(|last| !detect_non_contiguous(last, stored.run_seq));
        let is_warned_of = stored.run_seq == Limits::events_warned_at(self.engine.config().policy.events_per_run_max);
        let plain = stored.event_type != "DrainTimedOut" && stored.run_seq < SNAPSHOT_EVERY_EVENTS && !is_warned_of;
        if !(is_folded && follows && plain) {
            return false;
        }
        match stored.event_type.as_ref() {
            "RunCompleted" | "RunFailed" => self.passed.remove(run_id),
            "RunCancelled" => {
                // Whoever recorded it may have gone before it told the code that runs.
                self.engine.in_flight().cancel_run(run_id);
                self.passed.remove(run_id)
            }
            _ => self.passed.insert(run_id.clone(), stored.run_seq),
        };
        true
    }

    async fn set_aside(&mut self, stored: &StoredEvent, reason: &str) -> Result<(), servo_store::Error> {
        self.runs.remove(&stored.run_id);
        self.engine.try_quarantine(&stored.run_id, &stored.tenant, reason).await
    }

    /// The run's projection: kept from an earlier event, or begun before this one, from a stored snapshot if there is
    /// one. What lies between is read by the resync, which also says whether it was a gap. `None` if the run is gone.
    async fn followed(&mut self, stored: &StoredEvent) -> Result<Option<Followed>, servo_store::Error> {
        let run_id = &stored.run_id;
        let passed = self.passed.remove(run_id);
        if let Some(followed) = self.runs.remove(run_id) {
            return Ok(Some(followed));
        }
        if stored.run_seq == 1 {
            // From the beginning; what is stored of it already is written again, the same.
            let projection = Projection::new(RunState::new(run_id.clone()));
            return Ok(Some(Followed { projection, snapshot_due: SNAPSHOT_EVERY_EVENTS }));
        }
        let store = self.engine.store();
        let latest = match store.snapshot_at(&Scope::System, run_id, u64::MAX).await {
            Ok(latest) => latest,
            Err(servo_store::Error::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let snapshot_due = latest.as_ref().map_or(SNAPSHOT_EVERY_EVENTS, due_after);
        let before = store.snapshot_at(&Scope::System, run_id, stored.run_seq.saturating_sub(1)).await?;
        let state = before.and_then(|snapshot| serde_json::from_str::<RunState>(&snapshot.state).ok());
        let mut state = state.unwrap_or_else(|| RunState::new(run_id.clone()));
        if passed == Some(stored.run_seq - 1) {
            state = self.fold_before(stored, state).await?;
        }
        Ok(Some(Followed { projection: Projection::new(state), snapshot_due }))
    }

    /// The events of a run that was passed by, up to the one before this. What cannot be read is met by the resync.
    async fn fold_before(&self, stored: &StoredEvent, mut state: RunState) -> Result<RunState, servo_store::Error> {
        while state.last_event_seq + 1 < stored.run_seq {
            let (after, left) = (state.last_event_seq, stored.run_seq - 1 - state.last_event_seq);
            let limit = u32::try_from(left).map_or(BATCH, |left| left.min(BATCH));
            let page = match self.engine.store().read_run(&Scope::System, &stored.run_id, after, limit).await {
                Err(servo_store::Error::Corrupt { .. }) => return Ok(state),
                page => page?,
            };
            for event in page.events {
                let Ok(event) = event.decode() else { return Ok(state) };
                state.advance(&event);
            }
            if state.last_event_seq == after {
                break;
            }
        }
        Ok(state)
    }

    /// The projection is stale: read the run again from its watermark.
    async fn resync(
        &self,
        stored: &StoredEvent,
        projection: Projection,
        watermark: u64,
    ) -> Result<(Projection, Vec<Applied>), servo_store::Error> {
        let mode = if watermark == 0 { Resync::Full } else { Resync::FromSnapshot { snapshot_seq: watermark } };
        let reread = match resync(self.engine.store().as_ref(), &Scope::System, &stored.run_id, mode).await {
            Ok(reread) => reread,
            Err(servo_store::Error::NotFound) => return Ok((projection, Vec::new())),
            Err(error) => return Err(error),
        };
        let (projection, resynced) = projection.resync(reread.base, &reread.events);
        // Coming back to a run after this process forgot it is no gap in the log: the events in between are there.
        let read = reread.events.iter().map(|event| event.run_seq).filter(|seq| *seq > watermark);
        if let Some((last, next)) = first_gap(watermark, read) {
            let message = format!("runSeq {next} follows {last}; the run was read again");
            self.raise(AlertCode::ProjectorNonContiguous, stored, message).await?;
        }
        match resynced {
            Resynced::Advanced { findings, .. } => Ok((projection, findings)),
            Resynced::Stalled { watermark } => {
                tracing::warn!(run_id = %stored.run_id, watermark, "resync brought nothing new");
                Ok((projection, Vec::new()))
            }
        }
    }

    async fn report(&self, stored: &StoredEvent, finding: Applied) -> Result<(), servo_store::Error> {
        match finding {
            Applied::Inverted { step, dependency } => {
                let message = format!("step `{step}` moved before `{dependency}`, which it depends on");
                self.raise(AlertCode::ProjectorCausalViolation, stored, message).await
            }
            Applied::Illegal(reason) => {
                tracing::warn!(run_id = %stored.run_id, run_seq = stored.run_seq, reason, "event has no effect");
                Ok(())
            }
            Applied::Changed | Applied::Duplicate | Applied::NoEffect => Ok(()),
        }
    }

    /// Says when the next one is due.
    async fn store_snapshot(&self, stored: &StoredEvent, state: &RunState) -> Result<u64, servo_store::Error> {
        let encoded = serde_json::to_string(state)
            .map_err(|error| servo_store::Error::Corrupt { detail: format!("a state cannot be encoded: {error}") })?;
        let snapshot = StoredSnapshot { run_seq: state.last_event_seq, state: encoded };
        let due = due_after(&snapshot);
        self.engine.store().put_snapshot(&stored.run_id, &stored.tenant, snapshot).await?;
        Ok(due)
    }

    async fn raise(&self, code: AlertCode, stored: &StoredEvent, message: String) -> Result<(), servo_store::Error> {
        let (run_id, tenant) = (stored.run_id.clone(), stored.tenant.clone());
        crate::metrics::alert(code);
        let alert = NewAlert { code, subject: run_id.to_string(), run_id: Some(run_id), tenant, message };
        self.engine.store().raise_alert(alert).await
    }

    /// How far behind the projection is: the age of the oldest event it has not seen.
    async fn measure(&mut self, oldest: Option<Timestamp>) -> Result<(), servo_store::Error> {
        let now = self.engine.now();
        let lag = oldest.map_or(Duration::ZERO, |at| now.since(at));
        crate::metrics::projection_lag(lag);
        let tenant = TenantId::system();
        if lag > LAG_HIGH && self.lagging != Some(true) {
            crate::metrics::alert(AlertCode::ProjectorLagHigh);
            let message = format!("the projection is {} ms behind the log", lag.as_millis());
            let (code, subject) = (AlertCode::ProjectorLagHigh, CURSOR.to_owned());
            self.engine.store().raise_alert(NewAlert { code, subject, run_id: None, tenant, message }).await?;
            self.lagging = Some(true);
        } else if lag < LAG_NORMAL && self.lagging != Some(false) {
            self.engine.store().clear_alert(AlertCode::ProjectorLagHigh, &tenant, CURSOR).await?;
            self.lagging = Some(false);
        }
        Ok(())
    }
}

/// When the snapshot after this one is due. A large one is followed by as much log as it is large, so that the snapshots of a
/// run together, none of which is ever removed alone, are not much larger than its log. It follows from what is stored: a
/// projector that begins anew stores the same ones.
fn due_after(snapshot: &StoredSnapshot) -> u64 {
    let events = snapshot.state.len() as u64 / SNAPSHOT_BYTES_PER_EVENT;
    snapshot.run_seq.saturating_add(events.max(SNAPSHOT_EVERY_EVENTS))
}

/// The first place where sequences do not follow each other.
fn first_gap(watermark: u64, seqs: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let mut last = watermark;
    for next in seqs {
        if detect_non_contiguous(last, next) {
            return Some((last, next));
        }
        last = next;
    }
    None
}
