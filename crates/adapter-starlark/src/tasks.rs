//! The one place where this crate starts tasks and sleeps. All of it is about child processes; no decision depends on it.

use std::future::Future;
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "layer 3 has no runtime::tasks; these tasks only tend the pool")]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

#[expect(clippy::disallowed_methods, reason = "waits for other processes; no decision depends on it")]
pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
