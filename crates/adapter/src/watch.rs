//! What is seen of workers outside the server, on its way to the log.

use servo_model::contract::RuntimeEvent;

/// Told when a worker falls silent (`worker.stalled`) and when it is heard again (`worker.recovered`). Must not block.
pub trait WorkerWatch: Send + Sync {
    fn note(&self, event: RuntimeEvent);
}
