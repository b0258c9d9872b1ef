//! Log records of handlers. They carry the execution and the operation, and are not written again on replay.

use std::fmt;
use std::sync::Arc;

use crate::ExecutionState;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// Where a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogContext<'a> {
    pub durable_execution_arn: &'a str,
    pub operation_id: Option<&'a str>,
    pub operation_name: Option<&'a str>,
    pub attempt: Option<u32>,
}

pub trait Logger: Send + Sync {
    fn log(&self, level: LogLevel, message: &str, context: &LogContext<'_>);
}

/// Writes through `tracing`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingLogger;

impl Logger for TracingLogger {
    fn log(&self, level: LogLevel, message: &str, context: &LogContext<'_>) {
        macro_rules! write {
            ($level:ident) => {
                tracing::$level!(
                    target: "durable",
                    executionArn = context.durable_execution_arn,
                    operationId = context.operation_id,
                    operationName = context.operation_name,
                    attempt = context.attempt,
                    "{message}"
                )
            };
        }
        match level {
            LogLevel::Debug => write!(debug),
            LogLevel::Info => write!(info),
            LogLevel::Warn => write!(warn),
            LogLevel::Error => write!(error),
        }
    }
}

/// The logger of one context or step.
#[derive(Clone)]
pub struct ScopedLogger {
    pub(crate) state: Arc<ExecutionState>,
    pub(crate) scope: Scope,
}

#[derive(Debug, Clone)]
pub(crate) enum Scope {
    Context(Option<String>),
    Attempt { id: String, name: Option<String>, attempt: u32 },
}

impl fmt::Debug for ScopedLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedLogger").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl ScopedLogger {
    pub fn debug(&self, message: impl AsRef<str>) {
        self.log(LogLevel::Debug, message.as_ref());
    }

    pub fn info(&self, message: impl AsRef<str>) {
        self.log(LogLevel::Info, message.as_ref());
    }

    pub fn warn(&self, message: impl AsRef<str>) {
        self.log(LogLevel::Warn, message.as_ref());
    }

    pub fn error(&self, message: impl AsRef<str>) {
        self.log(LogLevel::Error, message.as_ref());
    }

    pub fn log(&self, level: LogLevel, message: &str) {
        let arn = self.state.arn();
        let context = match &self.scope {
            Scope::Context(id) => {
                if !self.state.options().replay_logging && self.state.is_replaying(id.as_deref()) {
                    return;
                }
                LogContext {
                    durable_execution_arn: arn,
                    operation_id: id.as_deref(),
                    operation_name: None,
                    attempt: None,
                }
            }
            Scope::Attempt { id, name, attempt } => LogContext {
                durable_execution_arn: arn,
                operation_id: Some(id),
                operation_name: name.as_deref(),
                attempt: Some(*attempt),
            },
        };
        self.state.logger().log(level, message, &context);
    }
}
