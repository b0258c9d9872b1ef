//! The one place where this crate starts tasks. A writer must not stop when the caller who woke it goes away, so it
//! cannot live in a caller's future.

use std::future::Future;

use tokio::task::JoinHandle;

#[expect(clippy::disallowed_methods, reason = "layer 3 has no runtime::tasks; the store joins what it starts in close")]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}
