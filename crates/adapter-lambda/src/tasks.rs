//! The one place where this crate starts tasks and sleeps. All of it waits for other processes; no decision depends on
//! it.

use std::future::Future;
use std::time::Duration;

use tokio_util::task::TaskTracker;

/// `LambdaHandlers::stop` waits for every task of the tracker.
#[expect(clippy::disallowed_methods, reason = "layer 3 has no runtime::tasks; stop() waits for what is started here")]
pub(crate) fn spawn(tracker: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(tracker.track_future(task));
}

#[expect(clippy::disallowed_methods, reason = "waits for other processes; no decision depends on it")]
pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
