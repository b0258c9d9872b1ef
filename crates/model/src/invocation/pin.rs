//! What a run keeps of its entrypoint: everything that decides about it, so that a later change of the registry does not.

use serde::{Deserialize, Serialize};
use servo_canon::Digest;

use super::RetryRule;
use crate::RunId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntrypointKind {
    /// Gets its input and answers; keeps nothing and never waits.
    Function,
    /// Records its steps, may wait, and can be undone.
    Workflow,
}

impl EntrypointKind {
    /// The kind that an address says, by the type in its chain.
    pub fn from_gts_id(address: &str) -> Option<Self> {
        if address.contains("x.core.serverless.function.") {
            Some(EntrypointKind::Function)
        } else if address.contains("x.core.serverless.workflow.") {
            Some(EntrypointKind::Workflow)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationMode {
    Sync,
    Async,
}

impl InvocationMode {
    pub fn as_str(self) -> &'static str {
        match self {
            InvocationMode::Sync => "sync",
            InvocationMode::Async => "async",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [InvocationMode::Sync, InvocationMode::Async].into_iter().find(|mode| mode.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpointing {
    /// Each step is recorded as it ends.
    #[default]
    Automatic,
    /// What was done is recorded where the program says so, and before it waits.
    Manual,
    /// Nothing is recorded: the workflow is one attempt as a whole and begins again from its start.
    Disabled,
}

/// Why a run is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompensationTrigger {
    Failure,
    Cancellation,
}

/// The run that this one undoes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compensates {
    pub run_id: RunId,
    pub trigger: CompensationTrigger,
}

/// The entrypoint of a run, as it was when the run started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntrypointPin {
    /// The registration (`ep_…`), which is never changed once it can be called.
    pub id: String,
    /// Its GTS address.
    pub address: String,
    pub kind: EntrypointKind,
    pub mode: InvocationMode,
    pub retry: RetryRule,
    /// Addresses of the entrypoints that undo a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cancel: Option<String>,
    #[serde(default)]
    pub checkpointing: Checkpointing,
    /// A run that waits longer than this has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_suspension_seconds: Option<u64>,
    /// How long a failed run rests before it is dead-lettered.
    pub dead_letter_grace_seconds: u64,
    pub correlation_id: String,
    /// 0 when the adapter has no such limit.
    pub memory_limit_mb: u64,
    /// Of the registration of the function that the entrypoint refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensates: Option<Compensates>,
    /// The run that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RunId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-492, SR-493: the kind is read from the address.
    #[test]
    fn the_kind_is_part_of_the_address() {
        let base = "gts.x.core.serverless.entrypoint.v1~";
        let of = |rest: &str| EntrypointKind::from_gts_id(&format!("{base}{rest}"));
        assert_eq!(of("x.core.serverless.function.v1~vendor.app.f.v1~"), Some(EntrypointKind::Function));
        assert_eq!(of("x.core.serverless.workflow.v1~vendor.app.f.v1~"), Some(EntrypointKind::Workflow));
        assert_eq!(of("x.core.serverless.function.v1~x.core.serverless.workflow.v1~"), Some(EntrypointKind::Function));
        assert_eq!(of(""), None);
    }
}
