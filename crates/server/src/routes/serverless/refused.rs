//! A no of this API on its way to whoever writes it (`failures`).

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use servo_entrypoint::{RuntimeErrorPayload, ValidationError, ValidationIssue, errors};

use crate::error::ApiError;

#[derive(Debug)]
pub(crate) enum Refused {
    Failure(Box<RuntimeErrorPayload>),
    Api(ApiError),
}

pub(super) type Answer<T> = Result<T, Refused>;

impl Refused {
    pub(super) fn not_found(message: &str) -> Self {
        errors::not_found(message).into()
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        errors::bad_request(message).into()
    }

    pub(super) fn invalid(issue: ValidationIssue) -> Self {
        RuntimeErrorPayload::from(ValidationError::new(vec![issue])).into()
    }
}

impl From<RuntimeErrorPayload> for Refused {
    fn from(failure: RuntimeErrorPayload) -> Self {
        Self::Failure(Box::new(failure))
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Refused::Api(error) => error.into_response(),
            Refused::Failure(failure) => {
                let status = errors::status_of(&failure);
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let mut response = status.into_response();
                response.extensions_mut().insert(*failure);
                response
            }
        }
    }
}
