//! Helpers that several topics share: building logs event by event, and the files of the repository.

use std::path::PathBuf;

use servo_canon::Digest;
use servo_model::event::{EventBody, RunQueued, StepCompleted, StepStarted, idempotency_key};
use servo_model::ids::Name;
use servo_model::plan::PlanRef;
use servo_model::{
    ArtifactRef, Event, EventId, PlanId, RunContext, RunId, RunState, RunStatus, StepId, StepStatus, TenantId,
    Timestamp,
};

/// 2026-02-11T10:30:00Z, the hour of the contract's own example.
pub(crate) const START: i64 = 1_770_805_800_000;

pub(crate) fn run_id() -> RunId {
    RunId::parse("run_1").unwrap()
}

pub(crate) fn step(id: &str) -> StepId {
    StepId::parse(id).unwrap()
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(START + seconds * 1_000)
}

pub(crate) fn plan_ref() -> PlanRef {
    PlanRef {
        uri: "s3://plans/diamond.json".to_owned(),
        sha256: Digest::of(b"plan"),
        schema_version: "v1".to_owned(),
        plan_id: PlanId::parse("diamond").unwrap(),
        plan_version: "1".to_owned(),
    }
}

pub(crate) fn context() -> RunContext {
    RunContext {
        tenant_id: TenantId::parse("acme").unwrap(),
        project_id: Name::parse("shop").unwrap(),
        environment_id: Name::parse("prod").unwrap(),
        triggered_by: None,
        trigger_source: None,
    }
}

/// a, then b and c, then d.
pub(crate) const DIAMOND: &str = r#"{"planId":"diamond","planVersion":"1","schemaVersion":"v1","steps":[
 {"stepId":"a"},{"stepId":"b","dependsOn":["a"]},{"stepId":"c","dependsOn":["a"]},{"stepId":"d","dependsOn":["b","c"]}]}"#;

pub(crate) fn queued(plan: Option<&str>) -> RunQueued {
    RunQueued {
        status: RunStatus::Pending,
        logical_attempt_id: 1,
        plan_ref: plan_ref().into(),
        context: context().into(),
        plan: plan.map(|text| serde_json::value::RawValue::from_string(text.to_owned()).unwrap()),
        run_request_id: None,
        request_digest: None,
        approval_required: false,
        not_before: None,
        reason: None,
    }
}

pub(crate) fn started(id: &str, attempt: u32) -> EventBody {
    EventBody::StepStarted(StepStarted {
        step_id: step(id),
        status: StepStatus::Running,
        logical_attempt_id: attempt,
        engine_attempt_id: Some(1),
    })
}

pub(crate) fn completed(id: &str, attempt: u32, artifacts: Vec<ArtifactRef>) -> EventBody {
    EventBody::StepCompleted(StepCompleted {
        step_id: step(id),
        status: StepStatus::Success,
        logical_attempt_id: attempt,
        engine_attempt_id: Some(1),
        artifacts,
    })
}

/// A body from its JSON; tests read better in the published spelling.
#[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
pub(crate) fn body(event_type: &str, payload: serde_json::Value) -> EventBody {
    EventBody::decode(event_type, &payload.to_string()).unwrap()
}

/// Run events of one round, in the order in which a run without an approval gate has them.
pub(crate) fn beginning(round: u32) -> Vec<EventBody> {
    let mut first = queued((round == 1).then_some(DIAMOND));
    first.logical_attempt_id = round;
    let reference = serde_json::json!({
        "status": "RUNNING", "logicalAttemptId": round, "engineRunRef": "mock://diamond/1", "engineType": "mock",
        "planRef": plan_ref(), "context": context(), "startedAt": at(i64::from(round)),
    });
    vec![
        EventBody::RunQueued(Box::new(first)),
        body("RunApproved", serde_json::json!({"status": "APPROVED", "logicalAttemptId": round})),
        body("RunStarted", reference),
    ]
}

/// An event as a store would have made it: the key from its parts, one second after the one before.
pub(crate) fn event(run_seq: u64, body: EventBody) -> Event {
    let (step, attempt) = body.key_parts();
    let key = idempotency_key(&run_id(), step, attempt, body.event_type(), "1");
    Event {
        event_id: EventId::from_u128(u128::from(run_seq)),
        run_id: run_id(),
        run_seq,
        idempotency_key: key,
        emitted_at: at(i64::try_from(run_seq).unwrap_or(i64::MAX / 1_000_000)),
        emitted_by: "engine".to_owned(),
        occurred_at: None,
        body,
    }
}

/// A log without gaps.
pub(crate) fn log(bodies: impl IntoIterator<Item = EventBody>) -> Vec<Event> {
    (1..).zip(bodies).map(|(run_seq, body)| event(run_seq, body)).collect()
}

pub(crate) fn fold(events: &[Event]) -> RunState {
    RunState::new(run_id()).fold(events)
}

/// A folder of the repository, wherever the test binary is started.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn read(path: &str) -> String {
    let path = repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
