//! AWS Lambda's durable execution API, with its own addresses, errors and headers, so that AWS's SDKs talk to us as they
//! would to AWS.

mod callbacks;
mod caller;
mod executions;
mod functions;
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
        .route("/2015-03-31/functions", get(functions::list))
        .route("/2015-03-31/functions/", get(functions::list))
        .route("/2015-03-31/functions/{name}", get(functions::get))
        .route("/2015-03-31/functions/{name}/configuration", get(functions::get_configuration))
        .route("/2015-03-31/functions/{name}/versions", get(functions::versions))
        .route("/2015-03-31/functions/{name}/aliases", get(functions::aliases))
        .route("/2015-03-31/functions/{name}/aliases/{alias}", get(functions::alias))
}

/// Whether an address is of Lambda's, known or not: all of them begin with the date of a version of its API.
pub(crate) fn owns(path: &str) -> bool {
    let Some(date) = path.strip_prefix('/').map(|path| path.split('/').next().unwrap_or_default()) else {
        return false;
    };
    date.len() == 10
        && date.starts_with("20")
        && date
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// What Lambda has and Servo does not.
const NOT_OFFERED: &str = "Servo does not offer this operation of Lambda. It has Invoke, the durable execution operations, and \
    reading of functions, versions and aliases; register and remove functions with `servo functions` or PUT /v1/functions/{name}. \
    Parts of a path such as ARNs are percent-encoded.";

/// An address of this API that it does not have.
pub(super) fn unknown() -> Response {
    LambdaError::new(ErrorName::UnknownOperation, NOT_OFFERED).into_response()
}

/// An address of this API under another method: of a function that can be read, another operation.
pub(super) fn wrong_method() -> Response {
    LambdaError::new(ErrorName::MethodNotAllowed, NOT_OFFERED).into_response()
}

/// What was refused before it was looked at, in this API's words.
pub(crate) fn refused(error: ApiError) -> Response {
    LambdaError::from(error).into_response()
}
