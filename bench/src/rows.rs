//! The row that both sides write: one event of about 300 bytes.

use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{EventId, RunId, RunStatus, TenantId, Timestamp};
use servo_store::{Append, Expected, NewEvent, RunRow, StreamAppend};

/// A body that makes the event about 300 bytes in all.
pub(crate) fn payload() -> String {
    let filler = "x".repeat(120);
    format!(r#"{{"stepId":"step-1","status":"SUCCESS","logicalAttemptId":1,"artifacts":[],"note":"{filler}"}}"#)
}

pub(crate) fn run_id(number: usize) -> RunId {
    RunId::parse(&format!("inv_{number:032}")).expect("digits are allowed")
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
}

pub(crate) fn event(run: usize, number: u64) -> NewEvent {
    let key = Digest::of_parts(&[&run.to_string(), &number.to_string()], '|');
    NewEvent {
        event_id: EventId::from_u128((run as u128) << 64 | u128::from(number)),
        event_type: "StepCompleted".into(),
        idempotency_key: key,
        emitted_by: "engine".into(),
        occurred_at: None,
        payload: payload(),
    }
}

/// The append that makes a run with its first event.
pub(crate) fn create(run: usize) -> Append {
    let mut stream = StreamAppend::new(run_id(run), TenantId::default_tenant(), Expected::New);
    stream.row = Some(RunRow {
        run_id: run_id(run),
        tenant: TenantId::default_tenant(),
        project: "default".into(),
        environment: "default".into(),
        plan_id: "bench".into(),
        plan_version: "1".to_owned(),
        status: RunStatus::Running,
        visible: InvocationStatus::Running,
        request_key: None,
        created_at: now(),
        finished_at: None,
        changed_seq: 1,
        quarantined: None,
        name: None,
        outcome: None,
        invocation: false,
        mode: None,
        correlation_id: None,
        root: None,
    });
    stream.events.push(event(run, 1));
    Append::one(stream)
}

/// The append of one more event.
pub(crate) fn append(run: usize, after: u64) -> Append {
    let mut stream = StreamAppend::new(run_id(run), TenantId::default_tenant(), Expected::Seq(after));
    stream.events.push(event(run, after + 1));
    Append::one(stream)
}
