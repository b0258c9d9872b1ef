//! Threads for what nobody waits for: runs that were accepted, and run later. Where the processor is short they yield to the
//! threads that answer callers, and still get their part.
//!
//! Only the work itself is done there. Connections, children and timers belong to the other threads, whoever asked for them:
//! a caller must not have to wait for a thread that yields.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use servo_cli::{Failure, exit};
use servo_runtime::Tasks;
use tokio::runtime::{Builder, Handle, Runtime};

/// How much nicer these threads are than the others: where both want a processor, they get a tenth of a thread's share.
const NICER: i32 = 10;
/// The nicest that there is.
const NICEST: i32 = 19;

pub(crate) struct Background(Option<Runtime>);

impl Background {
    pub(crate) fn start(threads: usize) -> Result<Self, Failure> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("servo-behind").on_thread_start(|| {
            if let Err(error) = yield_to_others() {
                // Then these threads are like the others.
                tracing::warn!(%error, "threads for runs that nobody waits for do not yield to callers");
            }
        });
        let failed = |error| Failure::new(exit::ERROR, format!("the background threads do not start: {error}"));
        Ok(Self(Some(builder.build().map_err(failed)?)))
    }

    /// Tasks on the surrounding runtime; those that nobody waits for on these threads.
    pub(crate) fn tasks(&self) -> Tasks {
        let tasks = Tasks::on_tokio();
        let Some(behind) = self.0.as_ref().map(Runtime::handle).cloned() else { return tasks };
        let front = Handle::current();
        tasks.with_behind(Arc::new(move |_name, future| {
            behind.spawn(Inside { runtime: front.clone(), future });
        }))
    }
}

/// Of this thread alone, which only Linux knows.
#[cfg(target_os = "linux")]
fn yield_to_others() -> rustix::io::Result<()> {
    let own = rustix::process::getpriority_process(None)?;
    rustix::process::setpriority_process(None, (own + NICER).min(NICEST))
}

#[cfg(not(target_os = "linux"))]
fn yield_to_others() -> std::io::Result<()> {
    Ok(())
}

impl Drop for Background {
    fn drop(&mut self) {
        // Its tasks have ended, or are not waited for. A runtime cannot be dropped where others are awaited.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A future that finds another runtime around it than the one that polls it.
struct Inside {
    runtime: Handle,
    future: BoxFuture<'static, ()>,
}

impl Future for Inside {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { runtime, future } = &mut *self;
        let _inside = runtime.enter();
        future.as_mut().poll(context)
    }
}
