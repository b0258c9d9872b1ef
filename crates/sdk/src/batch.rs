//! What comes out of a group of branches: one item for each that was started.

use serde::{Deserialize, Serialize};
use servo_wire::lambda::ErrorObject;

use crate::DurableError;
pub use servo_replay::CompletionReason;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult<T> {
    /// In the order of the inputs. Branches that were never started are left out.
    #[serde(rename = "all")]
    pub items: Vec<BatchItem<T>>,
    pub completion_reason: CompletionReason,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchItem<T> {
    pub index: usize,
    pub status: BatchItemStatus,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub result: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

fn none<T>() -> Option<T> {
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BatchItemStatus {
    Started,
    Succeeded,
    Failed,
    Cancelled,
    Pending,
}

impl<T> BatchItem<T> {
    pub(crate) fn of(index: usize, outcome: Result<T, DurableError>) -> Self {
        match outcome {
            Ok(value) => Self { index, status: BatchItemStatus::Succeeded, result: Some(value), error: None },
            Err(error) => {
                Self { index, status: BatchItemStatus::Failed, result: None, error: Some(error.to_error_object()) }
            }
        }
    }

    pub(crate) fn started(index: usize) -> Self {
        Self { index, status: BatchItemStatus::Started, result: None, error: None }
    }
}

impl<T> BatchResult<T> {
    pub fn succeeded(&self) -> Vec<&BatchItem<T>> {
        self.with_status(BatchItemStatus::Succeeded)
    }

    pub fn failed(&self) -> Vec<&BatchItem<T>> {
        self.with_status(BatchItemStatus::Failed)
    }

    fn with_status(&self, status: BatchItemStatus) -> Vec<&BatchItem<T>> {
        self.items.iter().filter(|item| item.status == status).collect()
    }

    /// The results of all that succeeded, or the first error if any failed.
    pub fn get_results(&self) -> Result<Vec<&T>, DurableError> {
        self.throw_if_errors()?;
        Ok(self.items.iter().filter_map(|item| item.result.as_ref()).collect())
    }

    /// The results themselves, in the order of the inputs, or the first error if any failed.
    pub fn into_results(self) -> Result<Vec<T>, DurableError> {
        self.throw_if_errors()?;
        Ok(self.items.into_iter().filter_map(|item| item.result).collect())
    }

    /// Failed if any branch has failed, whatever the rules tolerate.
    pub fn status(&self) -> BatchItemStatus {
        if self.has_failures() { BatchItemStatus::Failed } else { BatchItemStatus::Succeeded }
    }

    pub fn success_count(&self) -> usize {
        self.succeeded().len()
    }

    pub fn failure_count(&self) -> usize {
        self.failed().len()
    }

    pub fn total_count(&self) -> usize {
        self.items.len()
    }

    pub fn has_failures(&self) -> bool {
        self.items.iter().any(|item| item.status == BatchItemStatus::Failed)
    }

    pub fn throw_if_errors(&self) -> Result<(), DurableError> {
        let failed = self.items.iter().find(|item| item.status == BatchItemStatus::Failed);
        match failed {
            None => Ok(()),
            Some(item) => Err(DurableError::from_error_object(&item.error.clone().unwrap_or_default())),
        }
    }
}
