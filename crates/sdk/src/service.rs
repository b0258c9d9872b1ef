//! The service behind the operations, as the SDK sees it: two calls. A Servo server, AWS Lambda and an engine in the same
//! process are each one implementation.

use async_trait::async_trait;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};

use crate::{AwsError, DurableError, TerminationReason};

#[async_trait]
pub trait DurableServiceClient: Send + Sync {
    /// Records updates and answers what changed since the caller last saw it. May be repeated with the same `ClientToken`.
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError>;

    /// One page of the recorded operations, beginning at `marker`.
    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError>;
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The service answered and refused.
    #[error("the service refused with {status} {code}: {message}")]
    Refused { status: u16, code: String, message: String },
    /// No answer came. The call may have been carried out.
    #[error("the service could not be reached: {0}")]
    Unreachable(String),
    /// An answer came that this version does not understand.
    #[error("the service's answer could not be read: {0}")]
    Unreadable(String),
}

/// What a failed call means for the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Call again after a while.
    Retry,
    /// Another invocation has taken over, or this one has lost track: let the service invoke again.
    Reinvoke,
    /// It will never work.
    Fail,
}

/// In lower case: SDKs of the service have compared it in two spellings.
const STALE_TOKEN: &str = "invalid checkpoint token";

impl ServiceError {
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Unreachable(_) => Verdict::Retry,
            Self::Unreadable(_) => Verdict::Fail,
            Self::Refused { status: 429, .. } => Verdict::Retry,
            // Keys that are disabled or gone do not come back by waiting.
            Self::Refused { code, .. } if code.starts_with("KMS") => Verdict::Fail,
            Self::Refused { status, .. } if *status >= 500 => Verdict::Retry,
            Self::Refused { message, .. } if message.to_lowercase().starts_with(STALE_TOKEN) => Verdict::Reinvoke,
            Self::Refused { .. } => Verdict::Fail,
        }
    }

    pub(crate) fn into_durable(self) -> DurableError {
        let message = self.to_string();
        let is_retriable = self.verdict() != Verdict::Fail;
        match self {
            Self::Refused { status: 404, .. } => DurableError::ResourceNotFound { message },
            Self::Refused { status: 413, .. } => DurableError::SizeLimit { message },
            Self::Refused { status, code, message: said } => {
                let aws_error = Some(AwsError { code, message: said, status: Some(status) });
                DurableError::Checkpoint { message, is_retriable, aws_error }
            }
            Self::Unreachable(_) => {
                DurableError::Invocation { message, termination_reason: TerminationReason::CheckpointFailed }
            }
            Self::Unreadable(_) => DurableError::Checkpoint { message, is_retriable, aws_error: None },
        }
    }
}
