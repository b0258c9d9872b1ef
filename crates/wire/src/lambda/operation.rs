//! An operation as the service shows it.

use serde::{Deserialize, Serialize};
use servo_model::{Timestamp, execution};

use servo_model::operation::{ErrorObject, OperationAction, OperationStatus, OperationType, OperationUpdate};

/// `T` is how this place spells time: `Seconds` in REST answers, `Millis` in the invocation envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Operation<T> {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "Type")]
    pub operation_type: OperationType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    pub start_timestamp: T,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<T>,
    pub status: OperationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_details: Option<ExecutionDetails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_details: Option<ContextDetails>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub step_details: Option<StepDetails<T>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub wait_details: Option<WaitDetails<T>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_details: Option<CallbackDetails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained_invoke_details: Option<ChainedInvokeDetails>,
}

impl<T> Operation<T> {
    /// What every operation has, and nothing else.
    fn bare(id: String, operation_type: OperationType, status: OperationStatus, start_timestamp: T) -> Self {
        Self {
            id,
            parent_id: None,
            name: None,
            operation_type,
            sub_type: None,
            start_timestamp,
            end_timestamp: None,
            status,
            execution_details: None,
            context_details: None,
            step_details: None,
            wait_details: None,
            callback_details: None,
            chained_invoke_details: None,
        }
    }

    /// Result and error, wherever its kind keeps them.
    pub fn outcome(&self) -> (Option<&str>, Option<&ErrorObject>) {
        match self.operation_type {
            OperationType::Step => self.step_details.as_ref().map(|d| (d.result.as_deref(), d.error.as_ref())),
            OperationType::Context => self.context_details.as_ref().map(|d| (d.result.as_deref(), d.error.as_ref())),
            OperationType::Callback => self.callback_details.as_ref().map(|d| (d.result.as_deref(), d.error.as_ref())),
            OperationType::ChainedInvoke => {
                self.chained_invoke_details.as_ref().map(|d| (d.result.as_deref(), d.error.as_ref()))
            }
            OperationType::Execution | OperationType::Wait => None,
        }
        .unwrap_or((None, None))
    }

    /// The operation that one call has begun, and ended with this update, if that [says all](OperationUpdate::says_all). The service
    /// knows the times better, and nobody asks for those of what has ended.
    pub fn said_by(update: OperationUpdate, at: T) -> Option<Self>
    where
        T: Clone,
    {
        if !update.says_all() {
            return None;
        }
        let succeeded = update.action == OperationAction::Succeed;
        let status = if succeeded { OperationStatus::Succeeded } else { OperationStatus::Failed };
        let (result, error) = if succeeded { (update.payload, None) } else { (None, update.error) };
        let mut operation = Self {
            parent_id: update.parent_id,
            name: update.name,
            sub_type: update.sub_type,
            end_timestamp: Some(at.clone()),
            ..Self::bare(update.id, update.operation_type, status, at)
        };
        if update.operation_type == OperationType::Step {
            operation.step_details = Some(StepDetails { attempt: 1, next_attempt_timestamp: None, result, error });
        } else {
            let replay_children = update.context_options.and_then(|options| options.replay_children).filter(|it| *it);
            operation.context_details = Some(ContextDetails { replay_children, result, error });
        }
        Some(operation)
    }

    /// The same operation with its times spelled another way.
    pub fn with_time<U: From<T>>(self) -> Operation<U> {
        Operation {
            id: self.id,
            parent_id: self.parent_id,
            name: self.name,
            operation_type: self.operation_type,
            sub_type: self.sub_type,
            start_timestamp: self.start_timestamp.into(),
            end_timestamp: self.end_timestamp.map(U::from),
            status: self.status,
            execution_details: self.execution_details,
            context_details: self.context_details,
            step_details: self.step_details.map(|details| StepDetails {
                attempt: details.attempt,
                next_attempt_timestamp: details.next_attempt_timestamp.map(U::from),
                result: details.result,
                error: details.error,
            }),
            wait_details: self
                .wait_details
                .map(|details| WaitDetails { scheduled_end_timestamp: details.scheduled_end_timestamp.map(U::from) }),
            callback_details: self.callback_details,
            chained_invoke_details: self.chained_invoke_details,
        }
    }
}

/// A default that asks nothing of `T`.
fn none<T>() -> Option<T> {
    None
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExecutionDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_payload: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContextDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_children: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepDetails<T> {
    /// Attempts that have ended; the current one is the next.
    #[serde(default)]
    pub attempt: u32,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub next_attempt_timestamp: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaitDetails<T> {
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub scheduled_end_timestamp: Option<T>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CallbackDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ChainedInvokeDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

impl<T: From<Timestamp>> From<&execution::Operation> for Operation<T> {
    fn from(known: &execution::Operation) -> Self {
        let mut operation = Self {
            parent_id: known.parent_id.as_deref().map(str::to_owned),
            name: known.name.clone(),
            sub_type: known.sub_type.clone(),
            end_timestamp: known.ended_at.map(Into::into),
            ..Self::bare(known.id.to_string(), known.operation_type, known.status, known.started_at.into())
        };
        let (result, error) = (known.result.clone(), known.error.clone());
        match known.operation_type {
            OperationType::Execution => {}
            OperationType::Context => {
                let replay_children = known.replay_children.then_some(true);
                operation.context_details = Some(ContextDetails { replay_children, result, error });
            }
            OperationType::Step => {
                let next = known.due_at.filter(|_| known.status == OperationStatus::Pending).map(Into::into);
                let attempt = known.attempt;
                operation.step_details = Some(StepDetails { attempt, next_attempt_timestamp: next, result, error });
            }
            OperationType::Wait => {
                let scheduled_end_timestamp = known.due_at.map(Into::into);
                operation.wait_details = Some(WaitDetails { scheduled_end_timestamp });
            }
            OperationType::Callback => {
                let callback_id = known.callback.as_ref().map(|terms| terms.callback_id.clone());
                operation.callback_details = Some(CallbackDetails { callback_id, result, error });
            }
            OperationType::ChainedInvoke => {
                operation.chained_invoke_details = Some(ChainedInvokeDetails { result, error });
            }
        }
        operation
    }
}
