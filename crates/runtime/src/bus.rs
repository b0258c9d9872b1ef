//! The event bus: where recorded facts go next. Asynchronous, at least once, and never in the way of a run.

use async_trait::async_trait;
use servo_model::{EventId, RunId, TenantId};
use tokio::sync::broadcast;

/// One event on its way out. Consumers deduplicate by `event_id`, or by `(run_id, run_seq)`.
#[derive(Debug, Clone)]
pub struct BusMessage {
    pub event_id: EventId,
    pub tenant: TenantId,
    pub run_id: RunId,
    pub run_seq: u64,
    pub event_type: String,
    /// The public document.
    pub document: String,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    /// The bus does not answer: nothing can be published now, and the log waits.
    #[error("the bus is unavailable: {0}")]
    Unavailable(String),
    /// The bus refuses this message; others may pass.
    #[error("the bus refused the message: {0}")]
    Refused(String),
}

#[async_trait]
pub trait Bus: Send + Sync {
    fn name(&self) -> &'static str;

    /// False only if it is certain that publishing now would reach nobody, so that nothing need be read for it.
    fn has_listeners(&self) -> bool {
        true
    }

    /// Whether messages leave the process.
    fn is_remote(&self) -> bool {
        true
    }

    /// Publishes in order and answers for each. After an `Unavailable`, the rest need not be tried.
    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>>;
}

/// The embedded default: subscribers in the same process. One that falls behind loses the oldest messages and is told
/// so; it reads the log for what it missed.
#[derive(Debug)]
pub struct InProcessBus {
    sender: broadcast::Sender<BusMessage>,
}

/// Messages kept for a slow subscriber.
const CAPACITY: usize = 1_024;

impl Default for InProcessBus {
    fn default() -> Self {
        Self { sender: broadcast::channel(CAPACITY).0 }
    }
}

impl InProcessBus {
    pub fn subscribe(&self) -> broadcast::Receiver<BusMessage> {
        self.sender.subscribe()
    }
}

#[async_trait]
impl Bus for InProcessBus {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>> {
        for message in messages {
            // An error means that nobody listens, which is no failure.
            let _ = self.sender.send(message.clone());
        }
        vec![Ok(()); messages.len()]
    }
}
