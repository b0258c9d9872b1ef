//! Builders of events, rows and appends with sensible contents. Ids come from a counter, so no two are ever equal.

use std::sync::atomic::{AtomicU64, Ordering};

use servo_canon::Digest;
use servo_model::event::{EventBody, RunQueued, StepCompleted, StepStarted, idempotency_key};
use servo_model::ids::Name;
use servo_model::plan::{PlanRef, RunContext};
use servo_model::{Event, EventId, PlanId, RunId, RunState, RunStatus, StepId, StepStatus, TenantId, Timestamp};

use crate::dispatch::DispatchStep;
use crate::log::{Append, Expected, NewEvent, StreamAppend};
use crate::runs::RunRow;
use servo_model::invocation::{InvocationMode, InvocationStatus};

pub const PLAN_VERSION: &str = "1";

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no earlier call returned.
pub fn unique() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub fn event_id() -> EventId {
    EventId::from_u128(u128::from(unique()) | 0x0190_0000_0000_7000_8000_0000_0000_0000)
}

pub fn run_id(name: &str) -> RunId {
    RunId::parse(name).expect("a test names a valid run")
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a test names a valid tenant")
}

/// An event whose type the model does not know, so that its body is free. `step` is `RUN` for events of the run itself.
pub fn new_event(run: &RunId, step: &str, attempt: u32, event_type: &str) -> NewEvent {
    let payload = format!("{{\"step\":{},\"attempt\":{attempt}}}", serde_json::Value::from(step));
    NewEvent {
        event_id: event_id(),
        event_type: event_type.to_owned().into(),
        idempotency_key: idempotency_key(run, step, attempt, event_type, PLAN_VERSION),
        emitted_by: "testkit".into(),
        occurred_at: None,
        payload,
    }
}

/// An event with a key that nothing else has.
pub fn fresh_event(run: &RunId) -> NewEvent {
    let step = format!("s{}", unique());
    new_event(run, &step, 1, "test.noted")
}

/// An event that the fold understands.
pub fn typed_event(run: &RunId, body: &EventBody) -> NewEvent {
    let (step, attempt) = body.key_parts();
    NewEvent {
        event_id: event_id(),
        event_type: body.stored_type(),
        idempotency_key: idempotency_key(run, step, attempt, body.event_type(), PLAN_VERSION),
        emitted_by: "testkit".into(),
        occurred_at: None,
        payload: body.encode(),
    }
}

/// The first event of a run, as the engine writes it.
pub fn run_queued(tenant: &TenantId) -> EventBody {
    let name = |text: &str| Name::parse(text).expect("a valid name");
    EventBody::RunQueued(Box::new(RunQueued {
        status: RunStatus::Pending,
        logical_attempt_id: 1,
        plan_ref: PlanRef {
            uri: "inline:plan".to_owned(),
            sha256: Digest::of(b"plan"),
            schema_version: "1.0".to_owned(),
            plan_id: PlanId::parse("plan").expect("a valid plan id"),
            plan_version: PLAN_VERSION.to_owned(),
        }
        .into(),
        context: RunContext {
            tenant_id: tenant.clone(),
            project_id: name("project"),
            environment_id: name("test"),
            triggered_by: None,
            trigger_source: None,
        }
        .into(),
        plan: None,
        run_request_id: None,
        request_digest: None,
        approval_required: false,
        not_before: None,
        reason: None,
    }))
}

pub fn step_started(step: &str, attempt: u32) -> EventBody {
    EventBody::StepStarted(StepStarted {
        step_id: step_id(step),
        status: StepStatus::Running,
        logical_attempt_id: attempt,
        engine_attempt_id: None,
    })
}

pub fn step_completed(step: &str, attempt: u32) -> EventBody {
    EventBody::StepCompleted(StepCompleted {
        step_id: step_id(step),
        status: StepStatus::Success,
        logical_attempt_id: attempt,
        engine_attempt_id: None,
        artifacts: Vec::new(),
    })
}

pub fn step_id(name: &str) -> StepId {
    StepId::parse(name).expect("a test names a valid step")
}

pub fn dispatch_step(step: &str, attempt: u32) -> DispatchStep {
    DispatchStep { step_id: step_id(step), logical_attempt: attempt }
}

/// A JSON object of exactly this many bytes, at least 8.
pub fn payload(bytes: usize) -> String {
    let frame = "{\"x\":\"\"}".len();
    assert!(bytes >= frame, "no payload is that small");
    format!("{{\"x\":\"{}\"}}", "a".repeat(bytes - frame))
}

/// A running run's row.
pub fn run_row(run_id: &RunId, tenant: &TenantId, created_at: Timestamp) -> RunRow {
    RunRow {
        run_id: run_id.clone(),
        tenant: tenant.clone(),
        project: "project".into(),
        environment: "test".into(),
        plan_id: "plan".into(),
        plan_version: PLAN_VERSION.to_owned(),
        status: RunStatus::Running,
        visible: InvocationStatus::Running,
        request_key: None,
        created_at,
        finished_at: None,
        changed_seq: 1,
        quarantined: None,
        name: None,
        outcome: None,
        invocation: false,
        mode: None,
        correlation_id: None,
        root: None,
    }
}

/// The row of a running invocation.
pub fn invocation_row(run_id: &RunId, tenant: &TenantId, created_at: Timestamp) -> RunRow {
    RunRow { invocation: true, mode: Some(InvocationMode::Async), ..run_row(run_id, tenant, created_at) }
}

/// The row of a run that ended well.
pub fn finished_row(run_id: &RunId, tenant: &TenantId, finished_at: Timestamp) -> RunRow {
    RunRow {
        status: RunStatus::Completed,
        visible: InvocationStatus::Succeeded,
        finished_at: Some(finished_at),
        ..run_row(run_id, tenant, finished_at)
    }
}

/// One run's share of the append that starts it: its row and its first event.
pub fn start_stream(run_id: &RunId, tenant: &TenantId) -> StreamAppend {
    let mut stream = StreamAppend::new(run_id.clone(), tenant.clone(), Expected::New);
    stream.events.push(typed_event(run_id, &run_queued(tenant)));
    stream.row = Some(run_row(run_id, tenant, Timestamp::from_millis(1_770_000_000_000)));
    stream
}

/// The append that starts a run.
pub fn start_append(run_id: &RunId, tenant: &TenantId) -> Append {
    Append::one(start_stream(run_id, tenant))
}

/// An append of events to a run that exists.
pub fn add(run_id: &RunId, tenant: &TenantId, expected: Expected, events: Vec<NewEvent>) -> StreamAppend {
    let mut stream = StreamAppend::new(run_id.clone(), tenant.clone(), expected);
    stream.events = events;
    stream
}

/// A share of the system stream's append.
pub fn system_stream(events: Vec<NewEvent>) -> StreamAppend {
    add(&RunId::system(), &TenantId::system(), Expected::Any, events)
}

/// What the events of a run add up to.
pub fn fold(run_id: &RunId, events: &[Event]) -> RunState {
    RunState::new(run_id.clone()).fold(events)
}
