//! Lines that user code writes, on their way to whoever keeps them.

use servo_model::{RunId, TenantId, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Stdout,
    Stderr,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLine {
    pub tenant: TenantId,
    pub function: String,
    pub request_id: Option<String>,
    /// The run of that request.
    pub run_id: Option<RunId>,
    /// What the line itself says, so not to be trusted beyond the tenant.
    pub execution_arn: Option<String>,
    pub source: Source,
    pub text: String,
    pub at: Timestamp,
}

/// Where lines go. Called while a worker's output is read, so it must not block: a slow sink slows the worker.
pub trait LineSink: Send + Sync {
    fn line(&self, line: CapturedLine);
}
