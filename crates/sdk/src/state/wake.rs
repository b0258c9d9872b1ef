//! Whether the handler wants to be polled. The pump may suspend only when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Wake, Waker};

#[derive(Debug)]
pub(crate) struct WakeFlag {
    set: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

/// Set at first: a future is polled once without being asked.
impl Default for WakeFlag {
    fn default() -> Self {
        Self { set: AtomicBool::new(true), outer: Mutex::new(None) }
    }
}

impl WakeFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Takes the wish, and notes whom to wake for the next one.
    pub(crate) fn take(&self, outer: &Waker) -> bool {
        *self.outer.lock().unwrap_or_else(PoisonError::into_inner) = Some(outer.clone());
        self.set.swap(false, Ordering::AcqRel)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set.store(true, Ordering::Release);
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}
