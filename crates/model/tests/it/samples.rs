//! For every canonical type: the smallest document that is valid and one with every field, built from the Rust types.

use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_model::event::*;
use servo_model::plan::TriggerSource;
use servo_model::{ArtifactRef, Event, RunContext, RunStatus, SignalId, StepError, StepStatus};

use crate::support::{at, context, event, plan_ref, step};

/// Everything a plan can have.
pub(crate) const FULL_PLAN: &str = r#"{
  "planId": "shop/nightly", "planVersion": "1.2", "schemaVersion": "v1.2", "engineType": "mock",
  "steps": [
    {"stepId": "fetch orders", "with": {"succeed": true, "size": 12345678901234567890.5, "none": null}},
    {"stepId": "größe", "dependsOn": ["fetch orders"], "retry": {"maxAttempts": 3, "delayMs": 500},
     "timeoutMs": 60000, "secrets": [{"name": "db-password", "version": "7"}, {"name": "token"}]}
  ]
}"#;

fn full_context() -> RunContext {
    RunContext { triggered_by: Some("user_jane".to_owned()), trigger_source: Some(TriggerSource::Webhook), ..context() }
}

pub(crate) fn artifacts() -> Vec<ArtifactRef> {
    vec![
        ArtifactRef {
            uri: "s3://bucket/report.json".to_owned(),
            kind: "report".to_owned(),
            sha256: Some(Digest::of(b"report")),
            size_bytes: Some(9_007_199_254_740_991),
            expires_at: Some(at(86_400)),
        },
        ArtifactRef {
            uri: "file:/var/log/run".to_owned(),
            kind: "log-bundle".to_owned(),
            sha256: None,
            size_bytes: None,
            expires_at: None,
        },
    ]
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn signal_id() -> SignalId {
    SignalId::parse("sig-1").unwrap()
}

/// One event of each canonical type, in the order of the contract, with only what is required.
pub(crate) fn smallest() -> Vec<Event> {
    let bodies = vec![
        EventBody::RunQueued(Box::new(crate::support::queued(None))),
        EventBody::RunApproved(RunApproved { status: RunStatus::Approved, logical_attempt_id: 1, approved_by: None }),
        EventBody::RunStarted(Box::new(RunStarted {
            status: RunStatus::Running,
            logical_attempt_id: 1,
            engine_run_ref: "mock://1".to_owned(),
            engine_type: "mock".to_owned(),
            plan_ref: plan_ref().into(),
            context: context().into(),
            started_at: at(3),
        })),
        EventBody::StepStarted(StepStarted {
            step_id: step("a"),
            status: StepStatus::Running,
            logical_attempt_id: 1,
            engine_attempt_id: None,
        }),
        EventBody::StepCompleted(StepCompleted {
            step_id: step("a"),
            status: StepStatus::Success,
            logical_attempt_id: 1,
            engine_attempt_id: None,
            artifacts: Vec::new(),
        }),
        EventBody::StepFailed(StepFailed {
            step_id: step("a"),
            status: StepStatus::Failed,
            logical_attempt_id: 1,
            engine_attempt_id: None,
            error: StepError::new("TIMEOUT", "", false),
        }),
        EventBody::StepSkipped(StepSkipped {
            step_id: step("a"),
            status: StepStatus::Skipped,
            logical_attempt_id: 1,
            cause: SkipCause::Condition,
            reason: String::new(),
            upstream_step_id: None,
        }),
        EventBody::SignalAccepted(SignalAccepted {
            signal_id: signal_id(),
            signal_type: SignalType::Pause,
            logical_attempt_id: 1,
            decided_by: "user_jane".to_owned(),
            step_id: None,
            reason: None,
        }),
        EventBody::SignalRejected(SignalRejected {
            signal_id: signal_id(),
            signal_type: SignalType::Resume,
            logical_attempt_id: 1,
            decided_by: "user_jane".to_owned(),
            step_id: None,
            code: "SIGNAL_REJECTED".to_owned(),
            reason: "the run is not paused".to_owned(),
        }),
        EventBody::RunPaused(RunPaused {
            status: RunStatus::Paused,
            logical_attempt_id: 1,
            reason: None,
            drain_until: None,
        }),
        EventBody::RunResumed(RunResumed { status: RunStatus::Running, logical_attempt_id: 1 }),
        EventBody::RunCompleted(RunCompleted { status: RunStatus::Completed, logical_attempt_id: 1 }),
        EventBody::RunFailed(RunFailed {
            status: RunStatus::Failed,
            logical_attempt_id: 1,
            root_cause: RootCause { step_id: None, code: "LIMIT_EXCEEDED".to_owned(), message: String::new() },
        }),
        EventBody::RunCancelled(RunCancelled {
            status: RunStatus::Cancelled,
            logical_attempt_id: 1,
            reason: None,
            cancelled_by: None,
        }),
    ];
    (1..).zip(bodies).map(|(run_seq, body)| event(run_seq, body)).collect()
}

/// The same with every optional field set.
pub(crate) fn fullest() -> Vec<Event> {
    let mut events = smallest();
    for event in &mut events {
        event.occurred_at = Some(at(0));
        match &mut event.body {
            EventBody::RunQueued(body) => {
                body.logical_attempt_id = 2;
                body.context = full_context().into();
                body.plan = Some(RawValue::from_string(FULL_PLAN.to_owned()).unwrap());
                body.run_request_id = text("req-1");
                body.request_digest = Some(Digest::of(b"request"));
                body.approval_required = true;
                body.not_before = Some(at(60));
                body.reason = text("retry of the run");
            }
            EventBody::RunApproved(body) => body.approved_by = text("user_joe"),
            EventBody::RunStarted(body) => {
                body.logical_attempt_id = 2;
                body.context = full_context().into();
            }
            EventBody::StepStarted(body) => body.engine_attempt_id = Some(u32::MAX),
            EventBody::StepCompleted(body) => {
                body.engine_attempt_id = Some(2);
                body.artifacts = artifacts();
            }
            EventBody::StepFailed(body) => {
                body.engine_attempt_id = Some(2);
                body.error = StepError {
                    category: text("NETWORK"),
                    code: "TIMEOUT".to_owned(),
                    message: "no answer".to_owned(),
                    retryable: true,
                };
            }
            EventBody::StepSkipped(body) => {
                body.cause = SkipCause::UpstreamFailed;
                body.upstream_step_id = Some(step("ä b"));
            }
            EventBody::SignalAccepted(body) => {
                body.signal_type = SignalType::RetryStep;
                body.step_id = Some(step("a"));
                body.reason = text("again");
            }
            EventBody::SignalRejected(body) => body.step_id = Some(step("a")),
            EventBody::RunPaused(body) => {
                body.reason = text("maintenance");
                body.drain_until = Some(at(300));
            }
            EventBody::RunFailed(body) => body.root_cause.step_id = Some(step("a")),
            EventBody::RunCancelled(body) => {
                body.reason = text("not needed");
                body.cancelled_by = text("user_jane");
            }
            _ => {}
        }
    }
    events
}
