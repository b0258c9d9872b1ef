//! Bodies of requests.

use serde_json::{Value, json};
use servo_entrypoint::validate::requests;
use servo_entrypoint::{EntrypointStatusAction, InvocationControlAction, InvocationMode, ValidationError, list_limit};
use servo_model::invocation::Failure;

use crate::support::{FUNCTION, example};

fn faults<T: std::fmt::Debug>(result: Result<T, Failure>) -> Vec<String> {
    let error = ValidationError::of(&result.unwrap_err()).unwrap();
    error.issues.iter().map(|issue| format!("{} {}", issue.location.path, issue.error_type)).collect()
}

/// SR-371, SR-379: the published body is read, and what is left out has its default.
#[test]
fn starts_are_read() {
    let request = requests::start(&example("invocation_request")).unwrap();
    assert_eq!((request.mode, request.dry_run), (Some(InvocationMode::Async), false));
    assert_eq!(request.params["amount"], 100.0);
    let short = requests::start(&json!({"entrypoint_id": FUNCTION})).unwrap();
    assert_eq!((short.mode, short.dry_run, short.params), (None, false, json!({})));
    assert_eq!(short.idempotency_key, None);
    assert_eq!(
        faults(requests::start(&json!({"mode": "asnyc", "dry_run": 1}))),
        ["$.entrypoint_id missing_field", "$.mode invalid_value", "$.dry_run schema_mismatch"]
    );
    for (entrypoint, fault) in
        [(json!(1), "schema_mismatch"), (json!(""), "limit_exceeded"), (json!("x".repeat(600)), "limit_exceeded")]
    {
        let body = json!({"entrypoint_id": entrypoint});
        assert_eq!(faults(requests::start(&body)), [format!("$.entrypoint_id {fault}")]);
    }
    for body in [json!([]), json!(null), json!("x")] {
        assert_eq!(faults(requests::start(&body)), ["$ schema_mismatch"]);
    }
}

/// What nobody knows is refused by name, whatever body it is in: a misspelt `dry_run` starts nothing.
#[test]
fn unknown_members_are_refused() {
    let misspelt = requests::start(&json!({"entrypoint_id": FUNCTION, "dryrun": true})).unwrap_err();
    let issue = ValidationError::of(&misspelt).unwrap().issues[0].clone();
    assert_eq!((issue.location.path.as_str(), issue.error_type.as_str()), ("$.dryrun", "unknown_field"));
    assert_eq!(issue.suggestion.as_deref(), Some("did you mean `dry_run`?"));
    let forged = requests::start(&json!({"entrypoint_id": FUNCTION, "tenant_id": "forged"}));
    assert_eq!(faults(forged), ["$.tenant_id unknown_field"]);
    let action = json!({"action": "cancel", "reason": "x"});
    assert_eq!(faults(requests::control_action(&action)), ["$.reason unknown_field"]);
    assert_eq!(faults(requests::bulk_action(&action)), ["$.reason unknown_field"]);
    assert_eq!(faults(requests::status_action(&json!({"action": "enable", "force": 1}))), ["$.force unknown_field"]);
    let signal = json!({"signal_id": "s", "name": "n", "data": 1});
    assert_eq!(faults(requests::signal(&signal)), ["$.data unknown_field"]);
    assert!(requests::bulk_action(&json!({"action": "cancel", "filter": "x", "max_items": 1, "cursor": null})).is_ok());
}

/// SR-356, SR-357: the five actions of an entrypoint, and nothing else.
#[test]
fn status_actions_are_read() {
    let read = |body: Value| requests::status_action(&body);
    for action in EntrypointStatusAction::ALL {
        assert_eq!(read(json!({"action": action.as_str()})), Ok(action));
    }
    assert_eq!(faults(read(json!({"action": "explode"}))), ["$.action invalid_value"]);
    assert_eq!(faults(read(json!({}))), ["$.action missing_field"]);
    let failure = read(json!({"action": "activat"})).unwrap_err();
    let suggestion = ValidationError::of(&failure).unwrap().issues[0].suggestion.clone().unwrap();
    assert!(suggestion.starts_with("did you mean `activate`?"), "{suggestion}");
}

/// The actions of an invocation, two of them with a step.
#[test]
fn control_actions_are_read() {
    let read = |body: Value| requests::control_action(&body);
    for name in InvocationControlAction::NAMES {
        assert_eq!(read(json!({"action": name, "step_id": "s"})).unwrap().as_str(), name);
    }
    assert_eq!(
        read(json!({"action": "skip_step", "step_id": "s"})),
        Ok(InvocationControlAction::SkipStep { step_id: "s".to_owned() })
    );
    assert_eq!(faults(read(json!({"action": "retry_step"}))), ["$.step_id missing_field"]);
    assert_eq!(faults(read(json!({"action": "pause"}))), ["$.action invalid_value"]);
    assert_eq!(faults(read(json!({"action": 1}))), ["$.action invalid_value"]);
    assert_eq!(faults(read(json!({}))), ["$.action missing_field"]);
}

#[test]
fn signals_are_read() {
    let signal = requests::signal(&json!({"signal_id": "s1", "name": "approved", "payload": {"by": "me"}})).unwrap();
    assert_eq!(
        (signal.signal_id.as_str(), signal.name.as_str(), signal.payload["by"].as_str()),
        ("s1", "approved", Some("me"))
    );
    assert_eq!(requests::signal(&json!({"signal_id": "s1", "name": "go"})).unwrap().payload, Value::Null);
    assert_eq!(faults(requests::signal(&json!({}))), ["$.signal_id missing_field", "$.name missing_field"]);
}

/// SR-332, SR-333, SR-340: 25 unless asked for 1 to 200.
#[test]
fn the_length_of_a_page_is_bounded() {
    assert_eq!(list_limit(None), Ok(25));
    assert_eq!((list_limit(Some("1")), list_limit(Some("200"))), (Ok(1), Ok(200)));
    for wrong in ["0", "201", "-1", "x", "", "1.5", "99999999999999999999"] {
        assert_eq!(faults(list_limit(Some(wrong))), ["$.limit invalid_value"], "{wrong}");
    }
}
