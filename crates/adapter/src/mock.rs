//! The `mock` engine: succeeds, fails or sleeps as the step's `with` says. Outside development it must be switched on.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use servo_model::ArtifactRef;
use servo_model::artifact::{OutputError, OutputStatus, StepOutput};

use crate::{Adapter, AttemptContext, AttemptRequest};

/// Longest single sleep between heartbeats.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct Mock;

/// The fields of `with` that the engine understands.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Script {
    outcome: Outcome,
    sleep_ms: u64,
    /// Fail the first so many logical attempts, then do what `outcome` says.
    fail_attempts: u32,
    /// Send no heartbeats while sleeping, as a hung worker would.
    silent: bool,
    error: Option<ScriptError>,
    artifacts: Vec<ArtifactRef>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    #[default]
    Succeed,
    Fail,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct ScriptError {
    code: String,
    message: String,
    retryable: bool,
}

impl Default for ScriptError {
    fn default() -> Self {
        Self { code: "MOCK_FAILURE".to_owned(), message: "the plan asked for a failure".to_owned(), retryable: true }
    }
}

#[async_trait]
impl Adapter for Mock {
    fn engine_type(&self) -> &str {
        "mock"
    }

    async fn run(&self, request: AttemptRequest, context: &AttemptContext) -> StepOutput {
        let script = if request.with.is_null() {
            Script::default()
        } else {
            match serde_json::from_value::<Script>(request.with) {
                Ok(script) => script,
                Err(error) => {
                    let message = format!("with: {error}");
                    return failed("INVALID_INPUT", "input", &message, false);
                }
            }
        };
        let mut left = Duration::from_millis(script.sleep_ms);
        while !left.is_zero() {
            let nap = if script.silent { left } else { left.min(HEARTBEAT_EVERY) };
            context.sleep(nap).await;
            left = left.saturating_sub(nap);
            if !script.silent {
                context.heartbeat();
            }
        }
        let fails = matches!(script.outcome, Outcome::Fail) || request.logical_attempt <= script.fail_attempts;
        if fails {
            let error = script.error.unwrap_or_default();
            return failed(&error.code, "mock", &error.message, error.retryable);
        }
        StepOutput { status: OutputStatus::Success, artifact_refs: script.artifacts, error: None }
    }
}

fn failed(code: &str, category: &str, message: &str, retryable: bool) -> StepOutput {
    StepOutput {
        status: OutputStatus::Failed,
        artifact_refs: Vec::new(),
        error: Some(OutputError {
            category: category.to_owned(),
            code: Some(code.to_owned()),
            message: message.to_owned(),
            retryable: Some(retryable),
        }),
    }
}
