//! Watching attempts: a worker without a heartbeat is stalled, and recovered when it is heard again.

use std::time::Duration;

use servo_model::Timestamp;
use servo_model::contract::RuntimeEvent;
use servo_store::Append;
use tokio::sync::Notify;

use super::authority::Authority;
use crate::contract::system_stream;
use crate::engine::Engine;

pub(crate) async fn run(engine: Engine, authority: Authority) {
    let stall_after = Duration::from_millis(engine.config().dispatch.stall_after_ms.max(1));
    let never = Notify::new();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &never, stall_after / 4).await {
        let now = engine.now();
        let silent_since =
            Timestamp::from_millis(now.as_millis() - i64::try_from(stall_after.as_millis()).unwrap_or(i64::MAX));
        for request_id in engine.in_flight().newly_stalled(silent_since) {
            tracing::warn!(worker = authority.owner().as_ref(), request_id, "worker stalled: no heartbeat");
            let worker = authority.owner().to_string();
            let reason = format!("no heartbeat for {} ms on {request_id}", stall_after.as_millis());
            note(&engine, RuntimeEvent::WorkerStalled { worker, reason }).await;
        }
        for request_id in engine.in_flight().take_recovered() {
            let recovery = format!("heartbeat on {request_id}");
            recovered(&engine, authority.owner(), &recovery).await;
        }
    }
}

pub(crate) async fn recovered(engine: &Engine, worker: &str, recovery: &str) {
    note(engine, RuntimeEvent::WorkerRecovered { worker: worker.to_owned(), recovery: recovery.to_owned() }).await;
}

/// A sign of life: a heartbeat of a step, a checkpoint of a handler. It must not wait for the store: what recovered is written
/// down on the supervisor's next round.
pub(crate) fn heard(engine: &Engine, request_id: &str) {
    if engine.in_flight().seen(request_id, engine.now()) {
        tracing::info!(request_id, "worker recovered");
        engine.in_flight().put_recovered(request_id);
    }
}

/// Puts a fact on the system stream. It informs people; losing one to a store that is down is no harm.
pub(crate) async fn note(engine: &Engine, event: RuntimeEvent) {
    let stream = system_stream(engine.ids(), engine.now(), &[event]);
    if let Err(error) = engine.store().append(Append::one(stream)).await {
        tracing::warn!(%error, "fact of the system stream not recorded");
    }
}
