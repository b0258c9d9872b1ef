//! The operations of a run as answers list them: what each is, how it stands, how often it was tried, why it failed.
//!
//! A run may have tens of thousands; an answer holds so many that it stays an answer. What failed and what is open comes before
//! what went well.

use serde::{Deserialize, Serialize};

use crate::execution::{EVENT, Execution, Operation, SIGNAL};
use crate::invocation::Failure;
use crate::operation::{ErrorObject, OperationStatus, OperationType};
use crate::{RunId, Timestamp};

/// Operations in one answer.
pub const LISTED_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationSnapshot {
    pub operation_id: String,
    /// `step`, `wait`, `signal`, `event`, `callback`, `invocation`, or the kind of a context such as `map`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: OperationStatus,
    /// The operation that this one is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Of a step, the one that runs among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When time alone will change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Of the last attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
    /// The run that it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationError {
    /// What the code or the platform calls it.
    pub code: String,
    pub message: String,
}

/// Operations in the order in which they began, and how many there are in all.
pub fn list(execution: &Execution) -> (Vec<OperationSnapshot>, usize) {
    let all = execution.operations();
    if all.len() <= LISTED_MAX {
        return (all.iter().map(OperationSnapshot::from).collect(), all.len());
    }
    let mut listed: Vec<usize> = Vec::with_capacity(LISTED_MAX);
    // The newest of what failed or is open, then the newest of the rest.
    for wanted in [true, false] {
        let of_these = (0..all.len()).rev().filter(|index| is_of_note(&all[*index]) == wanted);
        listed.extend(of_these.take(LISTED_MAX - listed.len()));
    }
    listed.sort_unstable();
    (listed.into_iter().map(|index| OperationSnapshot::from(&all[index])).collect(), all.len())
}

fn is_of_note(operation: &Operation) -> bool {
    operation.status != OperationStatus::Succeeded
}

fn kind(operation: &Operation) -> String {
    match (operation.operation_type, operation.sub_type.as_deref()) {
        (OperationType::Callback, Some(SIGNAL)) => "signal".to_owned(),
        (OperationType::Callback, Some(EVENT)) => "event".to_owned(),
        (OperationType::Callback, _) => "callback".to_owned(),
        (OperationType::Step, _) => "step".to_owned(),
        (OperationType::Wait, _) => "wait".to_owned(),
        (OperationType::ChainedInvoke, _) => "invocation".to_owned(),
        (OperationType::Context, Some(kind)) => spaced(kind),
        (OperationType::Context, None) => "context".to_owned(),
        (OperationType::Execution, _) => "execution".to_owned(),
    }
}

/// `ParallelBranch` as `parallel branch`.
fn spaced(kind: &str) -> String {
    let mut text = String::with_capacity(kind.len() + 4);
    for letter in kind.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

impl From<&ErrorObject> for OperationError {
    fn from(error: &ErrorObject) -> Self {
        let failure = Failure::of(error);
        let code = failure.user_type().map_or(failure.error_type_id.as_str(), |name| name).to_owned();
        Self { code, message: failure.message }
    }
}

impl From<&Operation> for OperationSnapshot {
    fn from(operation: &Operation) -> Self {
        let is_step = operation.operation_type == OperationType::Step;
        let begun = u32::from(!matches!(operation.status, OperationStatus::Pending | OperationStatus::Ready));
        let runs = u32::from(operation.status == OperationStatus::Started);
        Self {
            operation_id: operation.id.to_string(),
            kind: kind(operation),
            name: operation.name.clone(),
            status: operation.status,
            parent_id: operation.parent_id.as_ref().map(ToString::to_string),
            attempts: is_step.then(|| operation.attempt.saturating_add(runs).max(begun)),
            started_at: operation.started_at,
            ended_at: operation.ended_at,
            due_at: operation.due().map(|(at, _)| at),
            error: operation.error.as_ref().map(OperationError::from),
            run_id: operation.chained.as_ref().and_then(|call| Some(call.target.as_ref()?.run_id.clone())),
        }
    }
}
