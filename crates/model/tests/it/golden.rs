//! Logs that were written by released versions fold to what they folded to then.
//!
//! Each `tests/golden/<format>/<name>.jsonl` holds public documents, one per line; beside it stands the snapshot.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use servo_model::contract::EVENTS;
use servo_model::event::{CANONICAL_TYPES, EventBody, FORMAT, idempotency_key};
use servo_model::projection::project_run;
use servo_model::{Event, RunSnapshot, RunState};

use crate::support::repository;

struct Golden {
    path: PathBuf,
    lines: Vec<String>,
    events: Vec<Event>,
}

fn golden() -> Vec<Golden> {
    let folders =
        std::fs::read_dir(repository("crates/model/tests/golden")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let logs =
        folders.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let logs: Vec<_> = logs
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let events = lines.iter().map(|line| read(line)).collect();
            Golden { path, lines, events }
        })
        .collect();
    assert!(logs.len() >= 6);
    logs
}

/// As a reader of the log does: the envelope from its columns, the body tolerantly. A document whose enums hold values
/// of another version is refused by the strict reader, so the columns are taken from a body that anybody accepts.
fn read(line: &str) -> Event {
    if let Ok(event) = Event::from_json(line) {
        return event;
    }
    let whole: Map<String, Value> = serde_json::from_str(line).unwrap();
    let envelope =
        ["eventType", "eventId", "runId", "runSeq", "idempotencyKey", "emittedAt", "emittedBy", "occurredAt"];
    let (mut columns, body): (Map<_, _>, Map<_, _>) =
        whole.clone().into_iter().partition(|(name, _)| envelope.contains(&name.as_str()));
    columns["eventType"] = "Anything".into();
    let mut event =
        Event::from_json(&Value::Object(columns).to_string()).unwrap_or_else(|error| panic!("{error}: {line}"));
    let event_type = whole["eventType"].as_str().unwrap();
    event.body = EventBody::decode(event_type, &Value::Object(body).to_string())
        .unwrap_or_else(|error| panic!("{error}: {line}"));
    event
}

fn beside(path: &Path) -> Value {
    let path = path.with_extension("snapshot.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn golden_logs_fold_to_their_snapshots() {
    for golden in golden() {
        let run_id = &golden.events[0].run_id;
        let snapshot = serde_json::to_value(project_run(run_id, &golden.events)).unwrap();
        assert_eq!(snapshot, beside(&golden.path), "{}: {snapshot:#}", golden.path.display());
        // And from every cut, through a stored state.
        for cut in 0..golden.events.len() {
            let state = RunState::new(run_id.clone()).fold(&golden.events[..cut]);
            let state: RunState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            let cut_snapshot = RunSnapshot::from(&state.fold(&golden.events[cut..]));
            assert_eq!(serde_json::to_value(cut_snapshot).unwrap(), snapshot);
        }
    }
}

/// Operations are not in the snapshot; what a function's log adds up to is told by its execution.
#[test]
fn a_golden_execution_adds_up_to_its_operations() {
    let logs = golden();
    let function = logs.iter().find(|golden| golden.path.ends_with("function.jsonl")).unwrap();
    let state = RunState::new(function.events[0].run_id.clone()).fold(&function.events);
    let execution = state.execution.as_ref().unwrap();
    let stands: Vec<_> = execution
        .operations()
        .iter()
        .map(|operation| format!("{} {} {}", operation.id, operation.status.as_str(), operation.attempt))
        .collect();
    let expected = [
        "a SUCCEEDED 1",
        "c SUCCEEDED 0",
        "s FAILED 2",
        "w SUCCEEDED 0",
        "b TIMED_OUT 0",
        "i SUCCEEDED 0",
        "x CANCELLED 0",
    ];
    assert_eq!(stands, expected);
    assert_eq!((execution.head.invocations, execution.head.failures), (4, 0));
    assert!(!execution.has_pending() && state.next_due(state.completed_at.unwrap()).is_none());
}

/// Calls that got nowhere count for nothing but the outage. Readers that do not know `unreached` see invocations that were lost,
/// which they fold to the same.
#[test]
fn a_golden_outage_costs_nothing() {
    let logs = golden();
    let outage = logs.iter().find(|golden| golden.path.ends_with("outage.jsonl")).unwrap();
    let fold = |events: &[Event]| RunState::new(events[0].run_id.clone()).fold(events).execution.unwrap().head;
    let head = fold(&outage.events);
    let at = |seconds: u64| outage.events[0].at().plus(std::time::Duration::from_secs(seconds));
    assert_eq!((head.failures, head.executed_ms), (1, 2_500), "of the crash, which waited 1.5 s to be taken");
    assert_eq!(head.unreached.as_ref().unwrap().since, at(9));
    let mut before = outage.events.clone();
    for event in &mut before {
        if let EventBody::HandlerReturned(body) = &mut event.body {
            body.unreached = false;
        }
    }
    let old = fold(&before);
    assert_eq!((old.failures, old.executed_ms, old.retry_at), (head.failures, head.executed_ms, head.retry_at));
}

/// Every type has at least one golden record, so none can change unseen.
#[test]
fn every_type_has_a_golden_record() {
    let logs = golden();
    let found: BTreeSet<&str> =
        logs.iter().flat_map(|golden| &golden.events).map(|event| event.body.event_type()).collect();
    let engine = [
        "StepRetryScheduled",
        "StepTakenOver",
        "DrainTimedOut",
        "TaskOrphaned",
        "ExecutionStarted",
        "HandlerInvoked",
        "HandlerReturned",
        "OperationUpdated",
        "OperationResolved",
        "CallbackHeartbeat",
        "ExecutionEnded",
        "MessageReceived",
        "CompensationStarted",
        "CompensationEnded",
        "RunDeadLettered",
        "RunImported",
    ];
    let runtime = EVENTS.map(|(name, _)| name);
    for name in CANONICAL_TYPES.iter().chain(&engine).chain(&runtime) {
        assert!(found.contains(name), "{name}");
    }
    let unknown =
        logs.iter().flat_map(|golden| &golden.events).filter(|event| matches!(event.body, EventBody::Unknown(_)));
    assert!(unknown.count() >= 3);
    assert_eq!(FORMAT, 1, "a new format needs a folder of golden logs of its own");
}

/// What was written then is still written: every field of a golden line, with its value. Fields may only be added.
#[test]
fn golden_documents_are_still_written() {
    for golden in golden().iter().filter(|golden| !golden.path.ends_with("strange.jsonl")) {
        for (line, event) in golden.lines.iter().zip(&golden.events) {
            let (before, now): (Value, Value) =
                (serde_json::from_str(line).unwrap(), serde_json::from_str(&event.to_json()).unwrap());
            for (name, value) in before.as_object().unwrap() {
                assert_eq!(now.get(name), Some(value), "{name} in {line}");
            }
            assert_eq!(Event::from_json(line).as_ref(), Ok(event));
        }
    }
}

/// ES-032, ES-033: the keys in the golden logs are those of the formula.
#[test]
fn golden_keys_are_still_the_keys() {
    for golden in golden().iter().filter(|golden| !golden.path.ends_with("runtime.jsonl")) {
        for event in golden.events.iter().filter(|event| !matches!(event.body, EventBody::Unknown(_))) {
            let (step, number) = event.body.key_parts();
            let key = idempotency_key(&event.run_id, step, number, event.body.event_type(), "1.2");
            assert_eq!(key, event.idempotency_key, "{event:?}");
        }
    }
}
