//! Params of an invocation and what comes out of it.

use serde_json::{Value, json};
use servo_entrypoint::validate::mode;
use servo_entrypoint::{CompiledEntrypoint, EntrypointSchema, InvocationMode, Types, ValidationError};
use servo_model::invocation::{ErrorCategory, errors};

use crate::support::{World, example, minimal};

fn compiled(params: Value, returns: Value) -> CompiledEntrypoint {
    let schema = EntrypointSchema { params, returns, errors: Vec::new() };
    CompiledEntrypoint::compile(&Types::published(), &schema).unwrap()
}

fn paths(entrypoint: &CompiledEntrypoint, params: &Value) -> Vec<String> {
    let failure = entrypoint.check_params(Some(params)).unwrap_err();
    assert_eq!((failure.error_type_id.as_str(), failure.category), (errors::VALIDATION, ErrorCategory::NonRetryable));
    ValidationError::of(&failure).unwrap().issues.into_iter().map(|issue| issue.location.path).collect()
}

/// SR-023, SR-331, SR-375, SR-424: every violation, with its path.
#[test]
fn params_follow_their_schema() {
    let schema = example("function")["schema"].clone();
    let entrypoint = compiled(schema["params"].clone(), schema["returns"].clone());
    let good = json!({"invoice_id": "i", "amount": 100.0});
    assert_eq!(Value::Object(entrypoint.check_params(Some(&good)).unwrap()), good);
    assert_eq!(paths(&entrypoint, &json!({"invoice_id": "i", "amount": "x"})), ["$.params.amount"]);
    assert_eq!(
        paths(&entrypoint, &json!({"invoice_id": 1, "amount": "x"})),
        ["$.params.amount", "$.params.invoice_id"]
    );
    assert_eq!(paths(&entrypoint, &json!({})), ["$.params.amount", "$.params.invoice_id"]);
    assert_eq!(paths(&entrypoint, &json!(null)), ["$.params"]);
    assert!(entrypoint.check_params(None).is_err());
    let odd = compiled(json!({"properties": {"a b": {"type": "array", "items": {"type": "string"}}}}), Value::Null);
    assert_eq!(paths(&odd, &json!({"a b": ["x", 1]})), ["$.params['a b'][1]"]);
}

/// SR-021, SR-025: nothing in is nothing, an empty object or null; anything else is refused.
#[test]
fn no_input_is_no_input() {
    let void = compiled(Value::Null, Value::Null);
    for params in [None, Some(json!(null)), Some(json!({}))] {
        assert!(void.check_params(params.as_ref()).unwrap().is_empty());
    }
    assert_eq!(paths(&void, &json!({"a": 1, "b": 2})), ["$.params.a", "$.params.b"]);
    assert_eq!(paths(&void, &json!([])), ["$.params"]);
    assert_eq!(paths(&compiled(json!({}), Value::Null), &json!([])), ["$.params"]);
}

/// SR-021, SR-024, SR-025: results are checked as well, and a wrong one is not worth another try.
#[test]
fn results_follow_their_schema() {
    let schema = example("function")["schema"].clone();
    let entrypoint = compiled(Value::Null, schema["returns"].clone());
    let good = json!({"tax": 10.0, "total": 110.0});
    assert_eq!(entrypoint.check_result(good.clone()).unwrap(), good);
    for wrong in [json!({"tax": "x"}), json!(null), json!(1), json!([])] {
        let failure = entrypoint.check_result(wrong.clone()).unwrap_err();
        assert_eq!(
            (failure.error_type_id.as_str(), failure.category),
            (errors::VALIDATION, ErrorCategory::NonRetryable),
            "{wrong}"
        );
    }
    let void = compiled(Value::Null, Value::Null);
    assert_eq!(void.check_result(json!(null)).unwrap(), json!(null));
    assert_eq!(void.check_result(json!({"a": 1})).unwrap(), json!(null));
    assert!(void.check_result(json!("text")).is_err());
    let any = compiled(Value::Null, json!({}));
    assert!(any.check_result(json!(1)).is_err() && any.check_result(json!(null)).is_ok());
}

/// What a fault says never repeats the value, which may be a secret.
#[test]
fn faults_do_not_repeat_values() {
    let entrypoint =
        compiled(json!({"properties": {"token": {"type": "integer"}, "kind": {"enum": ["a", "b"]}}}), Value::Null);
    let failure = entrypoint.check_params(Some(&json!({"token": "s3cret", "kind": "s3cret"}))).unwrap_err();
    assert!(!serde_json::to_string(&failure).unwrap().contains("s3cret"));
}

/// SR-379: the entrypoint's default, or one that it supports.
#[test]
fn modes_are_supported_ones() {
    let traits = World::new().check(&minimal()).unwrap().entrypoint.definition.traits;
    assert_eq!(mode(&traits, None), Ok(InvocationMode::Sync));
    assert_eq!(mode(&traits, Some(InvocationMode::Sync)), Ok(InvocationMode::Sync));
    let failure = mode(&traits, Some(InvocationMode::Async)).unwrap_err();
    assert_eq!(ValidationError::of(&failure).unwrap().issues[0].location.path, "$.mode");
}
