//! The executor: tasks of several nodes on one thread, in an order drawn from the seed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_runtime::{Clock as _, Tasks};

use crate::clock::SimClock;

/// A simulated process. Killing it drops its tasks where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Polls after which a world is taken to run in circles.
const POLLS_MAX: u64 = 20_000_000;

/// The world: tasks, clock and seed.
#[derive(Clone)]
pub struct Sim {
    inner: Rc<RefCell<Inner>>,
    spawned: Spawned,
    behind: Arc<Mutex<Behind>>,
    clock: SimClock,
}

/// The offset and prime of FNV-1a: the trace is compared, never trusted.
const TRACE_BEGINNING: u64 = 0xcbf2_9ce4_8422_2325;
const TRACE_PRIME: u64 = 0x0000_0100_0000_01b3;

type Spawned = Arc<Mutex<Vec<(NodeId, BoxFuture<'static, ()>)>>>;
type Ready = Arc<Mutex<BTreeSet<u64>>>;

struct Inner {
    tasks: BTreeMap<u64, Task>,
    next: u64,
    ready: Ready,
    rng: StdRng,
    polls: u64,
    trace: u64,
    paused: BTreeSet<NodeId>,
}

/// Tasks that nobody waits for.
#[derive(Debug, Default)]
struct Behind {
    spawned: BTreeMap<NodeId, usize>,
    /// How long each waits for a thread.
    lag: Duration,
}

struct Task {
    node: NodeId,
    future: BoxFuture<'static, ()>,
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim").field("now", &self.clock.now_shared()).finish_non_exhaustive()
    }
}

struct TaskWaker {
    id: u64,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(self.id);
    }
}

impl Sim {
    pub fn new(seed: u64) -> Self {
        let inner = Inner {
            tasks: BTreeMap::new(),
            next: 0,
            ready: Ready::default(),
            rng: StdRng::seed_from_u64(seed),
            polls: 0,
            trace: TRACE_BEGINNING,
            paused: BTreeSet::new(),
        };
        let (spawned, behind) = (Spawned::default(), Arc::default());
        Self { inner: Rc::new(RefCell::new(inner)), spawned, behind, clock: SimClock::new() }
    }

    pub fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// How many times a task was polled.
    pub fn polls(&self) -> u64 {
        self.inner.borrow().polls
    }

    /// A digest of everything that happened so far: which task went when.
    pub fn trace(&self) -> u64 {
        self.inner.borrow().trace
    }

    /// A number from the world's own randomness.
    pub fn draw(&self, below: u64) -> u64 {
        self.inner.borrow_mut().rng.random_range(0..below.max(1))
    }

    /// Tasks that belong to a node.
    pub fn tasks(&self, node: NodeId) -> Tasks {
        let (spawned, behind) = (self.spawned.clone(), self.behind.clone());
        let push = move |_name: &'static str, future: BoxFuture<'static, ()>| {
            spawned.lock().unwrap_or_else(PoisonError::into_inner).push((node, future));
        };
        let clock = self.clock.clone();
        Tasks::new(Arc::new(push.clone())).with_behind(Arc::new(move |name, future| {
            let mut behind = behind.lock().unwrap_or_else(PoisonError::into_inner);
            *behind.spawned.entry(node).or_default() += 1;
            match behind.lag {
                Duration::ZERO => push(name, future),
                lag => push(name, clock.sleep(lag).then(|()| future).boxed()),
            }
        }))
    }

    /// From now on tasks that nobody waits for wait so long for a thread, as on a machine that is short of processors.
    pub fn delay_behind(&self, lag: Duration) {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).lag = lag;
    }

    /// How many tasks of a node were such that nobody waits for.
    pub fn spawned_behind(&self, node: NodeId) -> usize {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).spawned.get(&node).copied().unwrap_or(0)
    }

    /// The node is gone: its tasks are dropped where they stand, as by kill -9.
    pub fn kill(&self, node: NodeId) {
        self.adopt();
        let doomed: Vec<Task> = {
            let mut inner = self.inner.borrow_mut();
            let ids: Vec<u64> = inner.tasks.iter().filter(|(_, task)| task.node == node).map(|(id, _)| *id).collect();
            ids.into_iter().filter_map(|id| inner.tasks.remove(&id)).collect()
        };
        // Dropped outside the borrow: a future's destructor may wake others.
        drop(doomed);
    }

    /// The node stands still, as by SIGSTOP, until `resume`.
    pub fn pause(&self, node: NodeId) {
        self.inner.borrow_mut().paused.insert(node);
    }

    pub fn resume(&self, node: NodeId) {
        self.inner.borrow_mut().paused.remove(&node);
    }

    fn adopt(&self) {
        let new = std::mem::take(&mut *self.spawned.lock().unwrap_or_else(PoisonError::into_inner));
        let mut inner = self.inner.borrow_mut();
        for (node, future) in new {
            let id = inner.next;
            inner.next += 1;
            inner.tasks.insert(id, Task { node, future });
            inner.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// Runs a future to its end, with every other task beside it. Panics if nothing can move any more.
    pub fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let slot: Arc<Mutex<Option<T>>> = Arc::default();
        let result = slot.clone();
        let main = NodeId(u32::MAX);
        let wrapped: BoxFuture<'static, ()> = Box::pin(async move {
            let value = future.await;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        });
        self.spawned.lock().unwrap_or_else(PoisonError::into_inner).push((main, wrapped));
        loop {
            if let Some(value) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return value;
            }
            assert!(self.step(), "the simulation stands still: nothing is ready and nobody sleeps");
        }
    }

    /// Lets the world run for a while.
    pub fn run_for(&self, duration: Duration) {
        let clock = self.clock.clone();
        self.block_on(async move { servo_runtime::Clock::sleep(&clock, duration).await });
    }

    /// Polls one task, or moves time to the next sleeper. False if neither is possible.
    fn step(&self) -> bool {
        self.adopt();
        let Some((id, mut task, waker)) = self.choose() else { return self.clock.advance_to_next() };
        let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Ready(()) => drop(task),
            Poll::Pending => {
                self.inner.borrow_mut().tasks.insert(id, task);
            }
        }
        true
    }

    fn choose(&self) -> Option<(u64, Task, Waker)> {
        let mut inner = self.inner.borrow_mut();
        let ready = inner.ready.clone();
        let mut ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.retain(|id| inner.tasks.contains_key(id));
        let awake: Vec<u64> = ready
            .iter()
            .copied()
            .filter(|id| inner.tasks.get(id).is_some_and(|task| !inner.paused.contains(&task.node)))
            .collect();
        if awake.is_empty() {
            return None;
        }
        let id = awake[inner.rng.random_range(0..awake.len())];
        ready.remove(&id);
        inner.polls += 1;
        let now = u64::try_from(self.clock.now_shared().as_millis()).unwrap_or(0);
        for part in [now, id] {
            inner.trace = (inner.trace ^ part).wrapping_mul(TRACE_PRIME);
        }
        assert!(inner.polls < POLLS_MAX, "the simulation does not end");
        let task = inner.tasks.remove(&id)?;
        let waker = Waker::from(Arc::new(TaskWaker { id, ready: inner.ready.clone() }));
        Some((id, task, waker))
    }
}
