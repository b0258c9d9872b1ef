//! ES-045: readers of the log go on when a newer version wrote it: new types, new fields, new enum values.

use serde_json::{Value, json};
use servo_model::event::EventBody;
use servo_model::state::Applied;
use servo_model::{Event, RunState, RunStatus, StepStatus};

use crate::samples::{fullest, smallest};
use crate::support::{beginning, body, context, fold, log, plan_ref, run_id, started};

/// ES-045: kept to the letter, so that passing it on loses nothing.
#[test]
fn an_uninterned_type_is_kept_as_it_came() {
    let payload = r#"{"b": 1.50, "a": 123456789012345678901234567890, "status":"FROZEN"}"#;
    let body = EventBody::decode("RunFrozen", payload).unwrap();
    assert_eq!(body.event_type(), "RunFrozen");
    assert_eq!(body.encode(), payload);
    let state = fold(&log(beginning(1)));
    let mut next = log([body]).remove(0);
    next.run_seq = 9;
    let (after, applied) = state.clone().apply(&next);
    assert_eq!((applied, after.last_event_seq), (Applied::NoEffect, 9));
    assert_eq!((after.status, after.steps), (state.status, state.steps));
}

/// The same through the public document: numbers keep their digits.
#[test]
fn an_unknown_document_is_kept_as_it_came() {
    let mut document: Value = serde_json::from_str(&smallest()[10].to_json()).unwrap();
    document["eventType"] = json!("RunFrozen");
    let text =
        document.to_string().replace("\"status\":\"RUNNING\"", "\"big\":12345678901234567890123456789,\"x\": 1.50");
    let event = Event::from_json(&text).unwrap();
    assert!(event.body.encode().contains("\"big\":12345678901234567890123456789"), "{event:?}");
    assert!(event.to_json().contains("1.50"));
    assert_eq!(Event::from_json(&event.to_json()).unwrap(), event);
}

/// What is no object is no body, known type or not.
#[test]
fn a_body_is_an_object() {
    for payload in ["", "[]", "5", "null", "\"x\"", "{", "[{}]"] {
        assert!(EventBody::decode("RunFrozen", payload).is_err(), "{payload}");
        assert!(EventBody::decode("RunResumed", payload).is_err(), "{payload}");
    }
}

/// ES-045: unknown fields are ignored in every type.
#[test]
fn unknown_fields_are_ignored() {
    for event in smallest().into_iter().chain(fullest()) {
        let mut fields: Value = serde_json::from_str(&event.body.encode()).unwrap();
        fields["addedLater"] = json!({"deep": [1, 2, 3]});
        let decoded = EventBody::decode(event.body.event_type(), &fields.to_string()).unwrap();
        // A plan is compared as text, which the detour over a JSON value has changed.
        if !matches!(event.body, EventBody::RunQueued(_)) {
            assert_eq!(decoded, event.body);
        }
    }
}

/// ES-045: a status that this version does not know does not hide what the type says.
#[test]
fn new_statuses_are_tolerated() {
    for event in smallest() {
        let mut fields: Value = serde_json::from_str(&event.body.encode()).unwrap();
        if fields.get("status").is_none() {
            continue;
        }
        fields["status"] = json!("SOMETHING_NEW");
        assert_eq!(EventBody::decode(event.body.event_type(), &fields.to_string()).as_ref(), Ok(&event.body));
        // From outside it is refused: whoever writes today has no such status.
        let mut document: Value = serde_json::from_str(&event.to_json()).unwrap();
        document["status"] = json!("SOMETHING_NEW");
        assert_eq!(Event::from_json(&document.to_string()).unwrap_err().field, "status");
    }
}

/// ES-045: a run that was triggered in a new way is a run like any other.
#[test]
fn new_trigger_sources_are_tolerated() {
    let mut place = json!(context());
    place["triggerSource"] = json!("carrier-pigeon");
    let body = body(
        "RunStarted",
        json!({"status": "RUNNING", "engineRunRef": "r", "engineType": "quantum",
        "planRef": plan_ref(), "context": place, "startedAt": "2026-02-11T10:30:00Z"}),
    );
    let EventBody::RunStarted(start) = &body else { panic!("{body:?}") };
    assert_eq!(start.context, context().into());
    let state = fold(&log([body.clone()]));
    assert_eq!((state.status, state.engine_type.as_deref()), (RunStatus::Running, Some("quantum")));
}

/// ES-045: a step that was skipped for a new reason is skipped.
#[test]
fn new_skip_causes_are_tolerated() {
    let skip = body(
        "StepSkipped",
        json!({"stepId": "a", "status": "SKIPPED", "logicalAttemptId": 1, "cause": "BUDGET",
        "reason": "too dear"}),
    );
    let state = fold(&log(beginning(1).into_iter().chain([skip])));
    assert_eq!(state.step(0).attempt.status, StepStatus::Skipped);
    assert_eq!(state.step(0).attempt.skip_reason.as_deref(), Some("too dear"));
    assert!(state.dependencies_satisfied(1));
}

/// ES-045: a signal of a new kind is kept, and changes nothing.
#[test]
fn new_signals_are_tolerated() {
    let fields = json!({"signalId": "s", "signalType": "FREEZE", "logicalAttemptId": 1, "decidedBy": "x"});
    let signal = body("SignalAccepted", fields.clone());
    assert_eq!(signal.event_type(), "SignalAccepted");
    assert_eq!(serde_json::from_str::<Value>(&signal.encode()).unwrap(), fields);
    let (state, applied) = fold(&log(beginning(1))).apply(&{
        let mut next = log([signal]).remove(0);
        next.run_seq = 4;
        next
    });
    assert_eq!((applied, state.last_event_seq, state.status), (Applied::NoEffect, 4, RunStatus::Running));
}

/// What is wrong and not new is still an error that names the field: acting on half of an event would be a guess.
#[test]
fn damaged_bodies_are_errors() {
    for (event_type, fields, field) in [
        ("StepStarted", json!({"status": "RUNNING", "logicalAttemptId": 1}), "stepId"),
        ("StepStarted", json!({"stepId": "a|b", "status": "RUNNING", "logicalAttemptId": 1}), "stepId"),
        ("StepStarted", json!({"stepId": "a", "status": 5, "logicalAttemptId": 1}), "status"),
        ("StepStarted", json!({"stepId": "a", "status": "NEW", "logicalAttemptId": "1"}), "logicalAttemptId"),
        (
            "SignalAccepted",
            json!({"signalId": "s", "signalType": 7, "logicalAttemptId": 1, "decidedBy": ""}),
            "signalType",
        ),
        ("RunFailed", json!({"status": "FAILED", "rootCause": {"code": "C"}}), "rootCause/message"),
        ("run.heartbeat", json!({"event": "run.heartbeat", "owner": "n1"}), "phase"),
        ("run.heartbeat", json!({"event": "worker.assigned", "worker": "w", "task_id": "1"}), "event"),
    ] {
        let error = EventBody::decode(event_type, &fields.to_string()).unwrap_err();
        assert_eq!(error.field, field, "{event_type} {fields}: {error}");
    }
}

/// Runtime facts live on the system stream under the same envelope.
#[test]
fn runtime_facts_round_trip_as_documents() {
    let heartbeat = body("run.heartbeat", json!({"event": "run.heartbeat", "owner": "n1", "phase": "schedule"}));
    let event = log([heartbeat]).remove(0);
    assert_eq!(Event::from_json(&event.to_json()).unwrap(), event);
    let (state, applied) = RunState::new(run_id()).apply(&event);
    assert_eq!((applied, state.last_event_seq), (Applied::NoEffect, 1));
    assert_eq!(started("a", 1).key_parts(), ("a", 1));
}
