//! What the suites share.

pub(crate) mod api;
pub(crate) mod browser;
#[path = "../../../../crates/store-postgres/tests/it/certificates.rs"]
pub(crate) mod certificates;
#[path = "../../../../crates/store-postgres/tests/it/cluster.rs"]
pub(crate) mod cluster;
pub(crate) mod dice;
pub(crate) mod handler;
#[path = "../../../../crates/bus-nats/tests/it/server.rs"]
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod process;

use std::time::Duration;

/// Long enough for a loaded machine; reaching it is a failure, never a way to wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How often to do it: `short` in CI, or the part of `full` that the campaign asks for.
pub(crate) fn size(short: usize, full: usize) -> usize {
    let percent: Option<usize> = optional("SERVO_CRASH_PERCENT").and_then(|text| text.parse().ok());
    percent.map_or(short, |percent| (full * percent / 100).max(short))
}

#[expect(clippy::disallowed_methods, reason = "the test command sets them")]
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test`, which starts the servers"))
}

/// The same for one that need not be set.
#[expect(clippy::disallowed_methods, reason = "the campaign's command sets it")]
pub(crate) fn optional(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Waits until a condition holds, looking again whenever the other side may have moved.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            let mut pause = tokio::time::interval(Duration::from_millis(10));
            pause.tick().await;
            pause.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}
