//! What running code may ask of the engine: time, and to be seen alive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;
type Heartbeat = Arc<dyn Fn() + Send + Sync>;

/// Handed to every attempt.
#[derive(Clone)]
pub struct AttemptContext {
    sleep: Sleep,
    heartbeat: Heartbeat,
}

impl AttemptContext {
    pub fn new(sleep: Sleep, heartbeat: Heartbeat) -> Self {
        Self { sleep, heartbeat }
    }

    /// Sleeps on the engine's clock, so that tests and the simulator can move time.
    pub async fn sleep(&self, duration: Duration) {
        (self.sleep)(duration).await;
    }

    /// Tells the supervisor that the attempt is alive.
    pub fn heartbeat(&self) {
        (self.heartbeat)();
    }
}

impl fmt::Debug for AttemptContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptContext").finish_non_exhaustive()
    }
}
