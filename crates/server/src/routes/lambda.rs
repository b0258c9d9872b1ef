//! AWS Lambda's durable execution API, with its own addresses, errors and headers, so that AWS's SDKs talk to us as they
//! would to AWS.

mod callbacks;
mod caller;
mod executions;
mod invoke;
mod refusal;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use servo_wire::lambda::ErrorName;

use crate::app::App;
use crate::error::ApiError;
pub(super) use caller::{BODY_BYTES_MAX, document};
use caller::{Call, read, read_or};
pub(super) use refusal::{LambdaAnswer, LambdaError};

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/2025-12-01/durable-executions/{arn}", get(executions::get))
        .route("/2025-12-01/durable-executions/{arn}/checkpoint", post(executions::checkpoint))
        .route("/2025-12-01/durable-executions/{arn}/state", get(executions::state))
        .route("/2025-12-01/durable-executions/{arn}/history", get(executions::history))
        .route("/2025-12-01/durable-executions/{arn}/stop", post(executions::stop))
        .route("/2025-12-01/functions/{name}/durable-executions", get(executions::list))
        .route("/2025-12-01/durable-execution-callbacks/{id}/succeed", post(callbacks::succeed))
        .route("/2025-12-01/durable-execution-callbacks/{id}/fail", post(callbacks::fail))
        .route("/2025-12-01/durable-execution-callbacks/{id}/heartbeat", post(callbacks::heartbeat))
        .route("/2015-03-31/functions/{name}/invocations", post(invoke::invoke))
}

/// Whether an address is this API's, known or not.
pub(crate) fn owns(path: &str) -> bool {
    ["/2025-12-01", "/2015-03-31"]
        .iter()
        .any(|version| path.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// An address of this API that it does not have.
pub(super) fn unknown() -> Response {
    let message = "no operation has this address; parts of a path such as ARNs are percent-encoded";
    LambdaError::new(ErrorName::UnknownOperation, message).into_response()
}

/// An address of this API under another method.
pub(super) fn wrong_method() -> Response {
    LambdaError::new(ErrorName::MethodNotAllowed, "the operation at this address has another method").into_response()
}

/// What was refused before it was looked at, in this API's words.
pub(crate) fn refused(error: ApiError) -> Response {
    LambdaError::from(error).into_response()
}
