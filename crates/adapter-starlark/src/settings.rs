//! What the adapter is built from, and the limits on it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use servo_adapter::LineSink;
use servo_model::{TenantId, Timestamp};

use crate::egress::EgressSettings;

pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that the adapter needs from outside.
#[derive(Clone)]
pub struct Parts {
    pub settings: Settings,
    pub lines: Arc<dyn LineSink>,
    pub secrets: Arc<dyn Secrets>,
    /// What `ctx.now()` says, and the time of log lines.
    pub now: NowFn,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Values of secrets. They are asked for when a request leaves, and kept nowhere.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The value, or why there is none.
    async fn secret(&self, tenant: &TenantId, name: &str) -> Result<String, String>;
}

/// For nodes without secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn secret(&self, _tenant: &TenantId, name: &str) -> Result<String, String> {
        Err(format!("there is no secret {name:?}: no secrets are configured on this server"))
    }
}

const TURNS_PER_PROCESSOR: usize = 2;

#[derive(Debug, Clone)]
pub struct Settings {
    /// What a child runs; it ends in [`crate::worker_main`].
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All that a child has of an environment. Its allocator may need to be told not to reserve memory: what it has in store
    /// before any program runs is counted by no limit, and a child with much of it is refused.
    pub env: Vec<(String, String)>,
    /// Children at the same time, working or idle.
    pub children_max: usize,
    /// Calls at the same time that have just begun; see `TURN` in the conversation. Two for each processor: while one is computed,
    /// the other is on its way to a child or back.
    pub turns: usize,
    /// Children that wait without having seen any source, so that a first call is fast.
    pub spare: usize,
    /// An idle child is ended after so long.
    pub idle: Duration,
    /// A child is replaced after so many calls.
    pub calls_per_child_max: u64,
    pub source_bytes_max: usize,
    pub output_bytes_max: usize,
    /// What programs that run may have recorded, all together; a tenant has three quarters of it at most.
    pub records_bytes_max: usize,
    /// Log lines of one call, together.
    pub log_bytes_max: usize,
    /// A workflow's step that runs for longer is recorded before it ends, so that a run that hangs says where. One that ends sooner
    /// is one record.
    pub step_told_after: Duration,
    /// What a check may use: memory in MB, CPU time and wall clock.
    pub check_memory_mb: u64,
    pub check_cpu: Duration,
    pub check_timeout: Duration,
    pub egress: EgressSettings,
}

impl Settings {
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = String>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().collect(),
            env: Vec::new(),
            children_max: 64,
            turns: std::thread::available_parallelism().map_or(1, usize::from) * TURNS_PER_PROCESSOR,
            spare: 1,
            idle: Duration::from_secs(300),
            calls_per_child_max: 10_000,
            source_bytes_max: 64 * 1024,
            output_bytes_max: servo_wire::lambda::ANSWER_BYTES_MAX,
            records_bytes_max: 512 * 1024 * 1024,
            log_bytes_max: 256 * 1024,
            step_told_after: Duration::from_millis(500),
            check_memory_mb: 64,
            check_cpu: Duration::from_secs(2),
            check_timeout: Duration::from_secs(10),
            egress: EgressSettings::default(),
        }
    }
}
