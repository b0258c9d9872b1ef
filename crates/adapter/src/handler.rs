//! Handlers of functions, and the ways to reach them.

use std::time::Duration;

use async_trait::async_trait;
use servo_model::TenantId;
use servo_model::function::FunctionSpec;
use servo_model::operation::ErrorObject;

/// One invocation of a handler.
#[derive(Debug, Clone)]
pub struct HandlerCall {
    pub tenant: TenantId,
    pub function: String,
    pub version: String,
    pub spec: FunctionSpec,
    pub function_arn: String,
    pub request_id: String,
    /// The envelope of a durable invocation, or a plain function's input.
    pub payload: String,
    /// After this the invocation counts as lost.
    pub timeout: Duration,
    /// The caller's tenant in the API's sense.
    pub tenant_id: Option<String>,
    pub trace: Option<String>,
    pub run_id: servo_model::RunId,
}

/// An invocation that brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerFailure {
    pub error: ErrorObject,
    /// Nobody is there who could ever answer.
    pub unreachable: bool,
}

impl HandlerFailure {
    pub fn crashed(error_type: &str, message: impl Into<String>) -> Self {
        Self { error: ErrorObject::new(error_type, message), unreachable: false }
    }

    pub fn unreachable(error_type: &str, message: impl Into<String>) -> Self {
        Self { error: ErrorObject::new(error_type, message), unreachable: true }
    }
}

/// Reaches the handlers of this node. `call` may be dropped: the execution was stopped, or the invocation took too long.
#[async_trait]
pub trait Handlers: Send + Sync {
    async fn call(&self, call: HandlerCall) -> Result<String, HandlerFailure>;
}

/// For nodes that run no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandlers;

#[async_trait]
impl Handlers for NoHandlers {
    async fn call(&self, call: HandlerCall) -> Result<String, HandlerFailure> {
        let message = format!("this node runs no functions, and so not `{}`", call.function);
        Err(HandlerFailure::unreachable("ResourceNotFoundException", message))
    }
}
