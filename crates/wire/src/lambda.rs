//! AWS Lambda's durable execution API as types, with the service's exact field names. Shared by the server, the SDK and the
//! test kit: both ends of the same contract are written in the same words.
//!
//! Unknown fields are ignored on both sides, as the service and its clients do.

mod api;
mod envelope;
mod error;
mod functions;
mod history;
mod operation;
mod time;

pub use api::*;
pub use envelope::*;
pub use error::*;
pub use functions::*;
pub use history::*;
pub use operation::*;
pub use servo_model::operation::{
    CallbackOptions, ChainedInvokeOptions, ContextOptions, ErrorObject, ExecutionStatus, OperationAction,
    OperationStatus, OperationType, OperationUpdate, StepOptions, WaitOptions,
};
pub use time::{Millis, Seconds};
