//! What an execution can be told as a whole.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::config::{CheckpointBatcherConfig, CheckpointingMode};
use crate::logger::{Logger, TracingLogger};
use crate::plugin::{Interceptor, Plugin};

#[derive(Clone)]
pub struct Options {
    pub checkpointing_mode: CheckpointingMode,
    pub batcher: CheckpointBatcherConfig,
    pub logger: Arc<dyn Logger>,
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Fails attempts of steps on purpose. For tests.
    pub interceptor: Option<Arc<dyn Interceptor>>,
    pub clock: Arc<dyn Clock>,
    /// Write log records of contexts also while they walk through the past, to see which code runs again.
    pub replay_logging: bool,
    /// How often a failed call is repeated before the invocation is given up.
    pub call_attempts_max: u32,
    /// Stay for a wait or retry that is due so soon, instead of suspending. None by default.
    pub stay_awake: Duration,
    /// While other branches run, ask this often for callbacks and invoked functions, whose end nobody knows.
    pub external_poll: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            checkpointing_mode: CheckpointingMode::default(),
            batcher: CheckpointBatcherConfig::default(),
            logger: Arc::new(TracingLogger),
            plugins: Vec::new(),
            interceptor: None,
            clock: Arc::new(SystemClock),
            replay_logging: false,
            call_attempts_max: 8,
            stay_awake: Duration::ZERO,
            external_poll: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("checkpointing_mode", &self.checkpointing_mode)
            .field("batcher", &self.batcher)
            .finish_non_exhaustive()
    }
}
