//! How this API says no: the name in a header, the message in a small document.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use servo_runtime::executions::Refused;
use servo_wire::lambda::{ErrorBody, ErrorName};

use crate::error::ApiError;

const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

pub(in crate::routes) type LambdaAnswer<T> = Result<T, LambdaError>;

#[derive(Debug, Clone)]
pub(in crate::routes) struct LambdaError(pub(in crate::routes) Refused);

impl LambdaError {
    pub(in crate::routes) fn new(name: ErrorName, message: impl Into<String>) -> Self {
        Self(Refused::new(name, message))
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorName::InvalidParameterValue, message)
    }
}

impl From<Refused> for LambdaError {
    fn from(refused: Refused) -> Self {
        Self(refused)
    }
}

/// What the parts that all routes share refuse, in this API's words.
impl From<ApiError> for LambdaError {
    fn from(error: ApiError) -> Self {
        let name = match error.problem.status {
            401 => ErrorName::UnrecognizedClient,
            403 => ErrorName::AccessDenied,
            404 => ErrorName::ResourceNotFound,
            413 => ErrorName::RequestTooLarge,
            429 => ErrorName::TooManyRequests,
            503 | 507 => ErrorName::Unavailable,
            500.. => ErrorName::Service,
            _ => ErrorName::InvalidRequestContent,
        };
        let problem = *error.problem;
        Self::new(name, problem.detail.unwrap_or(problem.title))
    }
}

impl IntoResponse for LambdaError {
    fn into_response(self) -> Response {
        let Refused { name, message } = self.0;
        let status = StatusCode::from_u16(name.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(ErrorBody::new(name, &message))).into_response();
        response.headers_mut().insert(ERROR_TYPE, HeaderValue::from_static(name.as_str()));
        if matches!(name, ErrorName::TooManyRequests | ErrorName::Unavailable) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
