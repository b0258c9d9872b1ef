//! What the service answers when it refuses.

use serde::{Deserialize, Serialize};

/// The service's refusals, by name. The name travels in the header `X-Amzn-ErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorName {
    InvalidParameterValue,
    InvalidRequestContent,
    CallbackTimeout,
    ResourceNotFound,
    DurableExecutionAlreadyStarted,
    ResourceConflict,
    RequestTooLarge,
    UnsupportedMediaType,
    TooManyRequests,
    Service,
    /// The same towards callers, who may try again: the service is short of something, or its database is away.
    Unavailable,
    AccessDenied,
    UnrecognizedClient,
    MissingAuthenticationToken,
    IncompleteSignature,
    InvalidSignature,
    UnknownOperation,
    MethodNotAllowed,
}

impl ErrorName {
    /// By their names: `Unavailable` has that of `Service`.
    pub const ALL: [Self; 17] = [
        Self::InvalidParameterValue,
        Self::InvalidRequestContent,
        Self::CallbackTimeout,
        Self::ResourceNotFound,
        Self::DurableExecutionAlreadyStarted,
        Self::ResourceConflict,
        Self::RequestTooLarge,
        Self::UnsupportedMediaType,
        Self::TooManyRequests,
        Self::Service,
        Self::AccessDenied,
        Self::UnrecognizedClient,
        Self::MissingAuthenticationToken,
        Self::IncompleteSignature,
        Self::InvalidSignature,
        Self::UnknownOperation,
        Self::MethodNotAllowed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorName::InvalidParameterValue => "InvalidParameterValueException",
            ErrorName::InvalidRequestContent => "InvalidRequestContentException",
            ErrorName::CallbackTimeout => "CallbackTimeoutException",
            ErrorName::ResourceNotFound => "ResourceNotFoundException",
            ErrorName::DurableExecutionAlreadyStarted => "DurableExecutionAlreadyStartedException",
            ErrorName::ResourceConflict => "ResourceConflictException",
            ErrorName::RequestTooLarge => "RequestTooLargeException",
            ErrorName::UnsupportedMediaType => "UnsupportedMediaTypeException",
            ErrorName::TooManyRequests => "TooManyRequestsException",
            ErrorName::Service | ErrorName::Unavailable => "ServiceException",
            ErrorName::AccessDenied => "AccessDeniedException",
            ErrorName::UnrecognizedClient => "UnrecognizedClientException",
            ErrorName::MissingAuthenticationToken => "MissingAuthenticationTokenException",
            ErrorName::IncompleteSignature => "IncompleteSignatureException",
            ErrorName::InvalidSignature => "InvalidSignatureException",
            ErrorName::UnknownOperation => "UnknownOperationException",
            ErrorName::MethodNotAllowed => "MethodNotAllowedException",
        }
    }

    pub fn status(self) -> u16 {
        match self {
            ErrorName::InvalidParameterValue | ErrorName::InvalidRequestContent | ErrorName::CallbackTimeout => 400,
            ErrorName::AccessDenied
            | ErrorName::UnrecognizedClient
            | ErrorName::MissingAuthenticationToken
            | ErrorName::IncompleteSignature
            | ErrorName::InvalidSignature => 403,
            ErrorName::ResourceNotFound | ErrorName::UnknownOperation => 404,
            ErrorName::MethodNotAllowed => 405,
            ErrorName::DurableExecutionAlreadyStarted | ErrorName::ResourceConflict => 409,
            ErrorName::RequestTooLarge => 413,
            ErrorName::UnsupportedMediaType => 415,
            ErrorName::TooManyRequests => 429,
            ErrorName::Service => 500,
            ErrorName::Unavailable => 503,
        }
    }
}

/// The body of a refusal. The model spells the message with either case, by error; both are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    #[serde(rename = "Type", default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    #[serde(rename = "Message", default)]
    pub message: String,
    #[serde(rename = "message", default)]
    pub lower_message: String,
    /// Which limit was reached, where one was.
    #[serde(rename = "Reason", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All our limits are on what is under way at once.
const THROTTLE_REASON: &str = "ConcurrentInvocationLimitExceeded";

impl ErrorBody {
    pub fn new(name: ErrorName, message: &str) -> Self {
        let fault = if name.status() >= 500 { "Service" } else { "User" };
        let reason = (name == ErrorName::TooManyRequests).then(|| THROTTLE_REASON.to_owned());
        Self { fault: Some(fault.to_owned()), message: message.to_owned(), lower_message: message.to_owned(), reason }
    }

    /// Whichever of the two spellings was sent.
    pub fn text(&self) -> &str {
        if self.message.is_empty() { &self.lower_message } else { &self.message }
    }
}
