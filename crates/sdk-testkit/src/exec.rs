//! One thread that runs everything, first come, first served. Time passes when nobody can go on.
//!
//! Dropping it drops every task where it stands: that is how the kit lets a program die.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;
use servo_runtime::Tasks;

use crate::clock::VirtualClock;

/// Polls after which a handler is taken to run in circles.
const POLLS_MAX: u64 = 20_000_000;
/// The future that is waited for. Tasks have higher numbers.
const MAIN: u64 = 0;

type Queue<T> = Arc<Mutex<VecDeque<T>>>;

pub(crate) struct Executor {
    clock: VirtualClock,
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    next: u64,
    spawned: Queue<BoxFuture<'static, ()>>,
    ready: Queue<u64>,
}

struct Bell {
    id: u64,
    ready: Queue<u64>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        push(&self.ready, self.id);
    }
}

fn push<T>(queue: &Queue<T>, item: T) {
    queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(item);
}

fn pop<T>(queue: &Queue<T>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

impl Executor {
    pub(crate) fn new(clock: VirtualClock) -> Self {
        Self { clock, tasks: BTreeMap::new(), next: MAIN + 1, spawned: Queue::default(), ready: Queue::default() }
    }

    pub(crate) fn tasks(&self) -> Tasks {
        let spawned = self.spawned.clone();
        Tasks::new(Arc::new(move |_name, future| push(&spawned, future)))
    }

    /// Runs a future to its end with every task beside it, or until `stop` says so.
    pub(crate) fn drive<F: Future>(&mut self, future: F, stop: impl Fn() -> bool) -> Option<F::Output> {
        let mut main = pin!(future);
        push(&self.ready, MAIN);
        for _ in 0..POLLS_MAX {
            if stop() {
                return None;
            }
            while let Some(task) = pop(&self.spawned) {
                self.tasks.insert(self.next, task);
                push(&self.ready, self.next);
                self.next += 1;
            }
            let Some(id) = pop(&self.ready) else {
                assert!(self.clock.advance(), "the handler waits for something that cannot happen in the test kit");
                continue;
            };
            let waker = Waker::from(Arc::new(Bell { id, ready: self.ready.clone() }));
            let mut cx = Context::from_waker(&waker);
            if id == MAIN {
                if let Poll::Ready(output) = main.as_mut().poll(&mut cx) {
                    return Some(output);
                }
            } else if let Some(task) = self.tasks.get_mut(&id)
                && task.as_mut().poll(&mut cx).is_ready()
            {
                self.tasks.remove(&id);
            }
        }
        panic!("the handler runs in circles: {POLLS_MAX} polls and no end");
    }
}
