//! What each operation can be told. Every configuration has a default, and `name` is what timelines show.

use std::fmt;
use std::sync::Arc;

use servo_replay::{Jitter, RetryStrategy, exponential_delay, spread};

use crate::serdes::{SerDes, ValueSerDes};
pub use servo_replay::{Backoff, CompletionConfig};

#[derive(Clone, Default)]
pub struct StepConfig {
    pub name: Option<String>,
    /// Six attempts, from 5 seconds doubling to 60, unless told otherwise.
    pub retry_strategy: Option<Box<dyn RetryStrategy>>,
    pub step_semantics: StepSemantics,
    pub serdes: Option<ValueSerDes>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StepSemantics {
    /// The start is recorded before the body runs; an attempt that was interrupted is not run again.
    AtMostOncePerRetry,
    /// The body may run again after a crash.
    #[default]
    AtLeastOncePerRetry,
}

#[derive(Clone, Default)]
pub struct CallbackConfig {
    pub name: Option<String>,
    pub timeout_seconds: Option<u64>,
    pub heartbeat_timeout_seconds: Option<u64>,
    pub serdes: Option<ValueSerDes>,
}

#[derive(Clone, Default)]
pub struct WaitForCallbackConfig {
    pub name: Option<String>,
    pub timeout_seconds: Option<u64>,
    pub heartbeat_timeout_seconds: Option<u64>,
    /// For the submitter.
    pub retry_strategy: Option<Box<dyn RetryStrategy>>,
    pub serdes: Option<ValueSerDes>,
}

pub struct InvokeConfig<P, R> {
    pub name: Option<String>,
    pub serdes_payload: Option<Arc<dyn SerDes<P>>>,
    pub serdes_result: Option<Arc<dyn SerDes<R>>>,
    pub tenant_id: Option<String>,
}

// Derived impls would ask P and R to be cloneable and to have defaults, which they need not.
impl<P, R> Clone for InvokeConfig<P, R> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            serdes_payload: self.serdes_payload.clone(),
            serdes_result: self.serdes_result.clone(),
            tenant_id: self.tenant_id.clone(),
        }
    }
}

impl<P, R> Default for InvokeConfig<P, R> {
    fn default() -> Self {
        Self { name: None, serdes_payload: None, serdes_result: None, tenant_id: None }
    }
}

#[derive(Clone, Default)]
pub struct MapConfig {
    pub name: Option<String>,
    pub max_concurrency: Option<usize>,
    pub item_batcher: Option<ItemBatcher>,
    pub completion_config: CompletionConfig,
    /// For the whole, and for the items' results unless they have their own.
    pub serdes: Option<ValueSerDes>,
    pub item_serdes: Option<ValueSerDes>,
    /// What timelines call an item; `map-item-0` and so on without. Groups of a batcher have names of their own.
    pub item_namer: Option<ItemNamer>,
    pub nesting: Nesting,
}

/// From an item and its index to a name.
pub type ItemNamer = Arc<dyn Fn(&serde_json::Value, usize) -> String + Send + Sync>;

/// Whether each item or branch is an operation of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nesting {
    #[default]
    Nested,
    /// What an item does is recorded right under the map or parallel: fewer records, and no outcome of a single item in
    /// the history.
    Flat,
}

#[derive(Clone, Default)]
pub struct ParallelConfig {
    pub name: Option<String>,
    pub max_concurrency: Option<usize>,
    pub completion_config: CompletionConfig,
    /// For the whole, and for the branches' results unless they have their own.
    pub serdes: Option<ValueSerDes>,
    pub item_serdes: Option<ValueSerDes>,
    /// What timelines call the branches, in their order; `parallel-branch-0` and so on where there is none.
    pub branch_names: Vec<String>,
    pub nesting: Nesting,
}

#[derive(Clone, Default)]
pub struct ContextConfig {
    pub name: Option<String>,
    /// Record no result: on replay the body runs again over its recorded operations. Chosen by itself for large results.
    pub replay_children: bool,
    pub serdes: Option<ValueSerDes>,
}

/// Several items of a map in one child context, one after the other: fewer records for small items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemBatcher {
    pub max_items_per_batch: usize,
    pub max_bytes_per_batch: usize,
}

/// Between two polls of a condition: go on in so many seconds, or be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitDecision {
    Continue(crate::Duration),
    Done,
}

type WaitRule<T> = Arc<dyn Fn(&T, u32) -> WaitDecision + Send + Sync>;

/// How a condition is polled. `wait_strategy` sees the state after each check and the number of checks so far.
pub struct WaitForConditionConfig<T> {
    pub name: Option<String>,
    pub initial_state: T,
    pub wait_strategy: WaitRule<T>,
    /// With more checks than this the wait fails.
    pub max_checks: u32,
    pub serdes: Option<ValueSerDes>,
}

impl<T: Clone> Clone for WaitForConditionConfig<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            initial_state: self.initial_state.clone(),
            wait_strategy: self.wait_strategy.clone(),
            max_checks: self.max_checks,
            serdes: self.serdes.clone(),
        }
    }
}

const CHECKS_MAX: u32 = 60;
const CHECK_DELAY: std::time::Duration = std::time::Duration::from_secs(5);
const CHECK_DELAY_MAX: std::time::Duration = std::time::Duration::from_secs(300);
const CHECK_FACTOR: f64 = 1.5;

impl<T> WaitForConditionConfig<T> {
    /// Polls until `done` says so, after 5 seconds at first and up to 5 minutes later on, 60 times at most.
    pub fn until(initial_state: T, done: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Self::new(initial_state, move |state, checks| {
            if done(state) {
                return WaitDecision::Done;
            }
            let delay = exponential_delay(CHECK_DELAY, CHECK_DELAY_MAX, CHECK_FACTOR, checks);
            WaitDecision::Continue(spread(delay, Jitter::None, 1.0).into())
        })
    }

    pub fn new(initial_state: T, wait_strategy: impl Fn(&T, u32) -> WaitDecision + Send + Sync + 'static) -> Self {
        Self { name: None, initial_state, wait_strategy: Arc::new(wait_strategy), max_checks: CHECKS_MAX, serdes: None }
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// How often progress is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckpointingMode {
    /// Every update leaves at once.
    Eager,
    /// Updates that belong together share a call.
    #[default]
    Batched,
    /// A step's result is used before it is recorded: fewer calls, and more steps that run again after a crash.
    Optimistic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointBatcherConfig {
    /// At most 750 KB, which is what the service takes.
    pub max_batch_size_bytes: usize,
    /// How long an update waits that nobody waits for.
    pub max_batch_time: std::time::Duration,
    /// The service's own limit of 250 holds besides.
    pub max_batch_operations: usize,
}

impl Default for CheckpointBatcherConfig {
    fn default() -> Self {
        Self {
            max_batch_size_bytes: 750 * 1024,
            max_batch_time: std::time::Duration::from_secs(1),
            max_batch_operations: usize::MAX,
        }
    }
}

/// SerDes and closures have no useful text; the rest is shown by the operation's record anyway.
macro_rules! short_debug {
    ($($type:ident $(<$($param:ident),+>)?),+ $(,)?) => {$(
        impl $(<$($param),+>)? fmt::Debug for $type $(<$($param),+>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).field("name", &self.name).finish_non_exhaustive()
            }
        }
    )+};
}

short_debug!(
    StepConfig,
    CallbackConfig,
    WaitForCallbackConfig,
    InvokeConfig<P, R>,
    MapConfig,
    ParallelConfig,
    ContextConfig,
    WaitForConditionConfig<T>,
);
