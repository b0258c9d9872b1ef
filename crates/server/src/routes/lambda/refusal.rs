//! How this API says no: the name in a header, the message in a small document.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use servo_runtime::executions::Refused;
use servo_wire::lambda::{ErrorBody, ErrorName};

use crate::auth::Nobody;
use crate::error::ApiError;
use crate::sigv4::Unfit;

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

/// Who is nobody is told why as AWS would tell.
impl From<Nobody> for LambdaError {
    fn from(nobody: Nobody) -> Self {
        match nobody {
            Nobody::Missing => {
                let message = "Missing Authentication Token: send `Authorization: Bearer KEY`, or sign the request";
                Self::new(ErrorName::MissingAuthenticationToken, message)
            }
            Nobody::Unknown => {
                let message = "The security token included in the request is invalid.";
                Self::new(ErrorName::UnrecognizedClient, message)
            }
            Nobody::Signature(Unfit::Incomplete(message)) => Self::new(ErrorName::IncompleteSignature, message),
            Nobody::Signature(Unfit::Invalid(message)) => Self::new(ErrorName::InvalidSignature, message),
            Nobody::Other(error) => error.into(),
        }
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
