//! Hooks for metrics, tracing and audits. They see what happens and change nothing: what a hook returns or panics with is
//! logged and forgotten.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use servo_wire::lambda::{ErrorObject, InvocationStatus, OperationStatus, OperationType};

use crate::BoxError;

type HookResult = Result<(), BoxError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationInfo {
    pub durable_execution_arn: String,
    /// Nothing had been recorded before.
    pub is_first: bool,
    /// What changed since the handler last ran.
    pub updated_operation_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationEnd {
    pub durable_execution_arn: String,
    /// Absent when the invocation itself failed and will be repeated.
    pub status: Option<InvocationStatus>,
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationInfo {
    pub durable_execution_arn: String,
    pub operation_id: String,
    pub operation_type: OperationType,
    pub sub_type: Option<String>,
    pub name: Option<String>,
    pub parent_id: Option<String>,
    /// As far as the service has told.
    pub status: Option<OperationStatus>,
    /// The outcome comes from the record, nothing was run.
    pub is_replay: bool,
    pub result: Option<String>,
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptInfo {
    pub durable_execution_arn: String,
    pub operation_id: String,
    pub name: Option<String>,
    /// From 1.
    pub attempt: u32,
    /// At the end of an attempt that failed.
    pub error: Option<ErrorObject>,
    /// At the end of an attempt that will be followed by another.
    pub retry_after_seconds: Option<u64>,
}

/// Every hook has an empty default.
pub trait Plugin: Send + Sync {
    fn on_invocation_start(&self, _info: &InvocationInfo) -> HookResult {
        Ok(())
    }
    fn on_invocation_end(&self, _info: &InvocationEnd) -> HookResult {
        Ok(())
    }
    fn on_operation_start(&self, _info: &OperationInfo) -> HookResult {
        Ok(())
    }
    fn on_operation_end(&self, _info: &OperationInfo) -> HookResult {
        Ok(())
    }
    fn on_attempt_start(&self, _info: &AttemptInfo) -> HookResult {
        Ok(())
    }
    fn on_attempt_end(&self, _info: &AttemptInfo) -> HookResult {
        Ok(())
    }
    /// The service told of a change: a wait is over, a callback came.
    fn on_operation_change(&self, _info: &OperationInfo) -> HookResult {
        Ok(())
    }
}

/// Says whether an attempt of a step may run at all. Unlike a plugin it changes what happens, so it belongs in tests.
pub trait Interceptor: Send + Sync {
    /// An error stands for the body's own: the body does not run, and the retry strategy decides what follows.
    fn before_attempt(&self, info: &AttemptInfo) -> Result<(), BoxError>;
}

pub(crate) fn call(plugins: &[Arc<dyn Plugin>], hook: &'static str, run: impl Fn(&dyn Plugin) -> HookResult) {
    for plugin in plugins {
        match std::panic::catch_unwind(AssertUnwindSafe(|| run(plugin.as_ref()))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(hook, %error, "a plugin failed; its failure changes nothing"),
            Err(_) => tracing::warn!(hook, "a plugin panicked; its panic changes nothing"),
        }
    }
}
