//! The relay publishes the log to the bus. The log is the outbox: the relay is a cursor over it, and only an event that
//! the bus refused gets a row of its own, tried again with growing pauses and buried after the last try.
//!
//! While the bus does not answer at all, the cursor stands still: nothing is lost, nothing is buried, and no run waits.

use std::sync::Arc;
use std::time::Duration;

use servo_model::TenantId;
use servo_model::alert::AlertCode;
use servo_model::event::EventBody;
use servo_model::limits::clip;
use servo_model::operation::OperationAction;
use servo_store::relay::{CursorRow, NewAlert, OutboxRow};
use servo_store::{Fence, Position, Scope, StoredEvent, Unreadable};

use super::authority::Authority;
use crate::bus::{Bus, BusError, BusMessage};
use crate::engine::Engine;
use crate::spans::{OpenSpan, SpanKind};

pub const CURSOR: &str = "relay";

/// As what the bus is told that user code emitted something, so that whoever listens for it need not read every operation. The
/// document is the recorded one: `name` says what was emitted, `payload` holds it as JSON.
pub const EMITTED: &str = "EventEmitted";

pub(crate) async fn run(engine: Engine, authority: Authority, bus: Arc<dyn Bus>) {
    let mut log = engine.wake().watch_log();
    let mut relay = Relay::new(engine.clone(), bus);
    loop {
        let mut wait = engine.config().poll();
        match authority.fence(engine.clock().elapsed()) {
            Some(fence) => match relay.publish_all(Some(fence)).await {
                Ok(Progress::UpToDate) => {}
                Ok(Progress::Waiting(pause)) => wait = pause,
                Err(error) => {
                    relay.position = None;
                    tracing::debug!(%error, "relay interrupted");
                }
            },
            None => relay.position = None,
        }
        log.mark_unchanged();
        let held_back = relay.failures > 0;
        tokio::select! {
            biased;
            () = engine.shutdown().triggered() => return,
            _ = log.changed(), if !held_back => super::gather(&engine).await,
            () = engine.clock().sleep(wait) => {}
        }
    }
}

/// How a round ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    UpToDate,
    /// The bus does not answer; try again after this long.
    Waiting(Duration),
}

/// The relay without its loop.
pub struct Relay {
    engine: Engine,
    bus: Arc<dyn Bus>,
    position: Option<Position>,
    stored: Option<Position>,
    /// Rounds in a row in which the bus did not answer.
    failures: u32,
    /// Whether the alert about that may stand. An earlier process may have raised it.
    alerted: bool,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("bus", &self.bus.name()).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Relay {
    pub fn new(engine: Engine, bus: Arc<dyn Bus>) -> Self {
        Self { engine, bus, position: None, stored: None, failures: 0, alerted: true }
    }

    /// Publishes everything that waits: first what was refused before and is due, then the log from the cursor on.
    pub async fn publish_all(&mut self, fence: Option<Fence>) -> Result<Progress, servo_store::Error> {
        if let Some(waiting) = self.retry_refused().await? {
            return Ok(waiting);
        }
        loop {
            let position = super::resume(&self.engine, CURSOR, &mut self.position, &mut self.stored).await?;
            if !self.bus.has_listeners() {
                self.pass_by(position, fence).await?;
                return Ok(Progress::UpToDate);
            }
            let page = self.engine.store().read_log(position, self.engine.config().outbox.batch).await?;
            if page.is_end() {
                self.answered().await?;
                return Ok(Progress::UpToDate);
            }
            // An event that is not as it was written is published by nobody, and holds back no other.
            self.engine.set_aside_unreadable(&page.unreadable).await?;
            if page.events.is_empty() {
                self.move_to(CursorRow::at(CURSOR, page.next), fence).await?;
                continue;
            }
            let messages: Vec<_> = page.events.iter().map(|event| message(event)).collect();
            let mut span = self.span(messages.len());
            let results = self.bus.publish(&messages).await;
            if let (Some(span), Some(failed)) = (&mut span, results.iter().find_map(|result| result.as_ref().err())) {
                span.fail(match failed {
                    BusError::Refused(_) => "refused",
                    BusError::Unavailable(_) => "unavailable",
                });
            }
            drop(span);
            let mut reached = None;
            let mut down = None;
            for (event, result) in page.events.iter().zip(results) {
                match result {
                    Ok(()) => {}
                    Err(BusError::Refused(error)) => self.refused(event, 0, &error).await?,
                    Err(error @ BusError::Unavailable(_)) => {
                        down = Some(error);
                        break;
                    }
                }
                reached = Some(event);
            }
            if reached.is_none() && down.is_none() {
                down = Some(BusError::Unavailable("the bus gave no answer".to_owned()));
            }
            if let Some(last) = reached {
                let is_whole = down.is_none() && page.events.last().is_some_and(|end| end.position == last.position);
                let position = if is_whole { page.next } else { last.position };
                let row = CursorRow { last_event_id: Some(last.event_id), ..CursorRow::at(CURSOR, position) };
                self.move_to(row, fence).await?;
            }
            if let Some(error) = down {
                return self.unavailable(&error).await;
            }
            self.answered().await?;
        }
    }

    /// Of a batch, in a trace of its own: its events are of many runs.
    fn span(&self, count: usize) -> Option<OpenSpan> {
        if !self.bus.is_remote() {
            return None;
        }
        let (_, mut span) = self.engine.entry_span(None, "publish events", SpanKind::Producer);
        if let Some(span) = &mut span {
            span.set("messaging.system", self.bus.name());
            span.set("messaging.operation.type", "send");
            span.set("messaging.batch.message_count", count);
        }
        span
    }

    /// Nobody listens: what is in the log is published by moving past it.
    async fn pass_by(&mut self, position: Position, fence: Option<Fence>) -> Result<(), servo_store::Error> {
        let head = self.engine.store().log_head().await?;
        // Somebody may have come while the head was read; what lies before it is theirs, then.
        if head != position && !self.bus.has_listeners() {
            self.move_to(CursorRow::at(CURSOR, head), fence).await?;
        }
        self.answered().await
    }

    async fn move_to(&mut self, row: CursorRow, fence: Option<Fence>) -> Result<(), servo_store::Error> {
        let position = row.position;
        self.engine.store().move_cursor(self.stored, row, fence).await?;
        self.position = Some(position);
        self.stored = self.position;
        Ok(())
    }

    /// Tries refused events again whose time has come.
    async fn retry_refused(&mut self) -> Result<Option<Progress>, servo_store::Error> {
        for row in self.engine.store().outbox_due(self.engine.config().outbox.batch).await? {
            let before = row.run_seq.saturating_sub(1);
            let event = match self.engine.store().read_run(&Scope::System, &row.run_id, before, 1).await {
                Ok(page) => page.events.into_iter().find(|event| event.run_seq == row.run_seq),
                Err(servo_store::Error::NotFound) => None,
                // It has changed since it was refused: trying again will not help.
                Err(servo_store::Error::Corrupt { detail }) => {
                    self.engine.set_aside_unreadable(&[unreadable(&row, &detail)]).await?;
                    self.engine.store().outbox_bury(OutboxRow { last_error: clip(&detail).to_owned(), ..row }).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(event) = event else {
                self.engine.store().outbox_done(row.position).await?;
                continue;
            };
            match self.bus.publish(&[message(&event)]).await.pop() {
                Some(Ok(())) => self.engine.store().outbox_done(row.position).await?,
                Some(Err(BusError::Refused(error))) => self.refused(&event, row.attempts, &error).await?,
                Some(Err(error @ BusError::Unavailable(_))) => return Ok(Some(self.unavailable(&error).await?)),
                None => {}
            }
        }
        Ok(None)
    }

    /// The bus refused an event: note it for later, or bury it after the last try.
    async fn refused(&self, event: &StoredEvent, tried: u32, error: &str) -> Result<(), servo_store::Error> {
        let config = &self.engine.config().outbox;
        let attempts = tried + 1;
        crate::metrics::publication("refused", 1);
        let row = OutboxRow {
            position: event.position,
            run_id: event.run_id.clone(),
            run_seq: event.run_seq,
            tenant: event.tenant.clone(),
            attempts,
            next_at: self.engine.store().now().await?.plus(self.pause(attempts)),
            last_error: clip(error).to_owned(),
        };
        if attempts < config.attempts_max {
            return self.engine.store().outbox_put(row).await;
        }
        tracing::error!(run_id = %event.run_id, run_seq = event.run_seq, error, "event not published, now a dead letter");
        crate::metrics::alert(AlertCode::EventBusDeliveryFailed);
        let message = format!("event {} was refused {attempts} times: {error}", event.run_seq);
        let alert = NewAlert {
            code: AlertCode::EventBusDeliveryFailed,
            subject: event.run_id.to_string(),
            run_id: Some(event.run_id.clone()),
            tenant: event.tenant.clone(),
            message,
        };
        self.engine.store().raise_alert(alert).await?;
        self.engine.store().outbox_bury(row).await
    }

    async fn unavailable(&mut self, error: &BusError) -> Result<Progress, servo_store::Error> {
        self.failures += 1;
        crate::metrics::publication("unavailable", 1);
        if self.failures == 3 {
            tracing::warn!(%error, bus = self.bus.name(), "events wait in the log");
            crate::metrics::alert(AlertCode::EventBusUnavailable);
            let alert = NewAlert {
                code: AlertCode::EventBusUnavailable,
                subject: self.bus.name().to_owned(),
                run_id: None,
                tenant: TenantId::system(),
                message: error.to_string(),
            };
            self.alerted = true;
            self.engine.store().raise_alert(alert).await?;
            let blocked = servo_model::contract::RuntimeEvent::RunBlockedOnSystem {
                owner: self.bus.name().to_owned(),
                reason: error.to_string(),
            };
            super::supervise::note(&self.engine, blocked).await;
        }
        Ok(Progress::Waiting(self.pause(self.failures)))
    }

    async fn answered(&mut self) -> Result<(), servo_store::Error> {
        if self.alerted {
            let tenant = TenantId::system();
            self.engine.store().clear_alert(AlertCode::EventBusUnavailable, &tenant, self.bus.name()).await?;
            self.alerted = false;
        }
        self.failures = 0;
        Ok(())
    }

    /// Exponential with full jitter, at least half the smallest pause.
    fn pause(&self, attempts: u32) -> Duration {
        let config = &self.engine.config().outbox;
        let limit = config.backoff_min_ms.saturating_mul(1 << attempts.min(20)).min(config.backoff_max_ms);
        let jitter = self.engine.ids().jitter(Duration::from_millis(limit));
        jitter.max(Duration::from_millis(config.backoff_min_ms / 2))
    }
}

fn unreadable(row: &OutboxRow, detail: &str) -> Unreadable {
    let run = Some((row.run_id.clone(), row.tenant.clone()));
    Unreadable { position: row.position, run, detail: detail.to_owned() }
}

fn message(event: &StoredEvent) -> BusMessage {
    BusMessage {
        event_id: event.event_id,
        tenant: event.tenant.clone(),
        run_id: event.run_id.clone(),
        run_seq: event.run_seq,
        event_type: if is_emitted(event) { EMITTED.to_owned() } else { event.event_type.to_string() },
        document: event.doc().to_json(),
    }
}

/// Whether user code has emitted something with this event.
fn is_emitted(event: &StoredEvent) -> bool {
    // Most operations are none, and need not be read for it.
    event.event_type == "OperationUpdated"
        && event.payload.contains("\"Emit\"")
        && event.decode().is_ok_and(|event| {
            matches!(event.body, EventBody::OperationUpdated(body)
                if body.sub_type.as_deref() == Some("Emit") && body.action == OperationAction::Succeed)
        })
}
