//! Every task of the runtime is started here: named, counted, and waited for at shutdown.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::Notify;

pub type Spawner = Arc<dyn Fn(&'static str, BoxFuture<'static, ()>) + Send + Sync>;

#[derive(Clone)]
pub struct Tasks {
    spawner: Spawner,
    /// For what nobody waits for.
    behind: Spawner,
    live: Arc<Live>,
}

#[derive(Default)]
struct Live {
    count: AtomicUsize,
    ended: Notify,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("live", &self.live.count.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

/// Counts down when the task ends, however it ends.
struct Guard(Arc<Live>);

impl Drop for Guard {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

impl Tasks {
    pub fn new(spawner: Spawner) -> Self {
        Self { behind: spawner.clone(), spawner, live: Arc::default() }
    }

    /// With a place of its own for what nobody waits for.
    #[must_use]
    pub fn with_behind(self, behind: Spawner) -> Self {
        Self { behind, ..self }
    }

    /// Tasks on the surrounding tokio runtime.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns on tokio")]
    pub fn on_tokio() -> Self {
        Self::new(Arc::new(|_name, future| {
            tokio::spawn(future);
        }))
    }

    /// The same spawner with a count of its own.
    #[must_use]
    pub fn group(&self) -> Self {
        Self { spawner: self.spawner.clone(), behind: self.behind.clone(), live: Arc::default() }
    }

    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        (self.spawner)(name, self.counted(future));
    }

    /// The same for what nobody waits for: where the processor is short, those who are waited for go first.
    pub fn spawn_behind(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        (self.behind)(name, self.counted(future));
    }

    fn counted(&self, future: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        self.live.count.fetch_add(1, Ordering::AcqRel);
        let guard = Guard(self.live.clone());
        // Not an async block: that would have the future inside twice, where it is captured and where it is waited for.
        Box::pin(future.map(move |()| drop(guard)))
    }

    /// Ready when no task is left.
    pub async fn idle(&self) {
        loop {
            let ended = self.live.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            if self.live.count.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}
