//! The same work on several threads at once, begun at the same moment.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Poll, Waker};

use super::Context;

/// What one thread does.
pub(super) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct Shared<T> {
    results: Vec<Option<T>>,
    running: usize,
    waker: Option<Waker>,
}

/// Counts its thread out, also when the thread panics.
struct Running<T>(Arc<Mutex<Shared<T>>>);

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let mut shared = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        shared.running -= 1;
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    }
}

impl Context {
    /// Runs `work(ctx, 0)` to `work(ctx, count - 1)` on a thread each and gives the results in that order. Waits without
    /// blocking, so that a runtime on the calling thread can go on driving the store.
    pub(super) async fn threads<T: Send + 'static>(&self, count: usize, work: fn(Context, usize) -> Work<T>) -> Vec<T> {
        let results = (0..count).map(|_| None).collect();
        let shared = Arc::new(Mutex::new(Shared { results, running: count, waker: None }));
        let barrier = Arc::new(Barrier::new(count));
        let mut handles = Vec::with_capacity(count);
        for index in 0..count {
            let (ctx, shared, barrier) = (self.clone(), Arc::clone(&shared), Arc::clone(&barrier));
            let running = Running(Arc::clone(&shared));
            handles.push(std::thread::spawn(move || {
                let _running = running;
                barrier.wait();
                let block_on = ctx.block_on;
                block_on(Box::pin(async move {
                    let result = work(ctx, index).await;
                    shared.lock().unwrap().results[index] = Some(result);
                }));
            }));
        }
        std::future::poll_fn(|cx| {
            let mut shared = shared.lock().unwrap();
            if shared.running == 0 {
                return Poll::Ready(());
            }
            shared.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        for handle in handles {
            handle.join().expect("a thread of the case panicked");
        }
        let results = std::mem::take(&mut shared.lock().unwrap().results);
        results.into_iter().map(|result| result.expect("each thread leaves its result")).collect()
    }
}
