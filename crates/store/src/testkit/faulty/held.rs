//! A call whose answer is held back: what it asked for is done, and whoever asked does not know yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Clones are the same call.
#[derive(Debug, Clone, Default)]
pub struct Held(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    released: bool,
    waiting: Vec<Waker>,
}

impl Held {
    /// Ready when the call was performed.
    pub async fn reached(&self) {
        std::future::poll_fn(|context| self.poll(context, |state| state.reached)).await;
    }

    /// Lets the answer go.
    pub fn release(&self) {
        self.change(|state| state.released = true);
    }

    /// The call was performed; ready when its answer may go.
    pub(super) async fn wait(&self) {
        self.change(|state| state.reached = true);
        std::future::poll_fn(|context| self.poll(context, |state| state.released)).await;
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &Context<'_>, is_there: impl FnOnce(&State) -> bool) -> Poll<()> {
        let mut state = self.lock();
        if is_there(&state) {
            return Poll::Ready(());
        }
        state.waiting.push(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
