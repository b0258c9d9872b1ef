//! Handlers of functions, and the ways to reach them.

use std::time::Duration;

use async_trait::async_trait;
use servo_model::TenantId;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::ErrorObject;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};

use crate::right::Right;

/// One invocation of a handler.
#[derive(Debug, Clone)]
pub struct HandlerCall {
    pub tenant: TenantId,
    /// Who started the run. Steps, and the run that undoes it, are the same subject's.
    pub subject: Option<String>,
    pub function: String,
    pub version: String,
    pub spec: FunctionSpec,
    pub function_arn: String,
    pub request_id: String,
    /// The envelope of a durable invocation, or a plain function's input.
    pub payload: String,
    /// How long the function may take, from when it has the call.
    pub timeout: Duration,
    /// The caller's tenant in the API's sense.
    pub tenant_id: Option<String>,
    /// What the caller said about itself: JSON in base64.
    pub client_context: Option<String>,
    pub trace: Option<String>,
    pub run_id: servo_model::RunId,
    /// Whether a caller waits for the run. Others must not be in its way.
    pub is_awaited: bool,
    /// To be asked before each call outside.
    pub right: Right,
}

/// How an invocation went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// User code said so, or was ended by a limit: it is the function's own error.
    Failed,
    /// It died or did not answer; another try may go better.
    Crashed,
    /// The function's runtime said how it failed, in a document of its own that `error_data` holds as it was sent. Else as `Crashed`.
    Raised,
    /// The call did not get to the function, as nobody was there or nobody was free: it did not run. Somebody may be there
    /// the next time.
    Unreached,
    /// Nobody is there who could ever answer.
    Unreachable,
}

/// An invocation that brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerFailure {
    pub error: ErrorObject,
    pub kind: FailureKind,
    pub usage: Usage,
}

impl HandlerFailure {
    pub fn new(kind: FailureKind, error: ErrorObject) -> Self {
        Self { error, kind, usage: Usage::default() }
    }

    pub fn crashed(error_type: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Crashed, ErrorObject::new(error_type, message))
    }

    pub fn unreached(error_type: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unreached, ErrorObject::new(error_type, message))
    }

    pub fn unreachable(error_type: &str, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unreachable, ErrorObject::new(error_type, message))
    }
}

/// What an invocation used, where the way of running it can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_ms: Option<u32>,
    pub memory_mb: Option<u32>,
    /// How long the call waited until somebody took it. It did not run yet.
    pub waited_ms: u32,
}

/// What a handler answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The output of a durable invocation, or a plain function's result.
    pub text: String,
    pub usage: Usage,
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { text, usage: Usage::default() }
    }
}

/// Reaches the handlers of this node. `call` may be dropped: the execution was stopped, or the invocation took too long.
#[async_trait]
pub trait Handlers: Send + Sync {
    /// In a box, because a call is large and goes through several hands.
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure>;

    /// Whether `call` itself sees to the timeout of a function that is reached like this, because only there it is known when
    /// the function has its call.
    fn keeps_time(&self, _reach: &Reach) -> bool {
        false
    }
}

/// The service side of durable executions, for handlers that this node runs itself: the two calls that a handler makes.
#[async_trait]
pub trait DurableService: Send + Sync {
    async fn checkpoint(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, ErrorObject>;

    /// A further page of the operations, from a marker.
    async fn state(
        &self,
        tenant: &TenantId,
        arn: &str,
        token: &str,
        marker: &str,
    ) -> Result<GetStateResponse, ErrorObject>;
}

/// For nodes that run no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandlers;

#[async_trait]
impl Handlers for NoHandlers {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let message = format!("this node runs no functions, and so not `{}`", call.function);
        Err(HandlerFailure::unreachable("ResourceNotFoundException", message))
    }
}
