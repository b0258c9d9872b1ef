//! Artifacts and secrets: references only, never bytes and never values.

use serde_json::{Value, json};
use servo_model::artifact::{OutputStatus, SecretRef, StepOutput, check_artifacts};
use servo_model::event::EventBody;
use servo_model::plan::check_document;
use servo_model::{ArtifactRef, Event, Plan, StepError};

use crate::samples::{artifacts, fullest};
use crate::support::queued;

/// ES-062: these five fields and no others are all that is kept of an artifact.
#[test]
fn an_artifact_is_a_reference() {
    let [full, bare] = artifacts().try_into().unwrap();
    let names = |artifact: &ArtifactRef| {
        let value = serde_json::to_value(artifact).unwrap();
        assert_eq!(serde_json::from_value::<ArtifactRef>(value.clone()).unwrap(), *artifact);
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&full), "expiresAt kind sha256 sizeBytes uri");
    assert_eq!(names(&bare), "kind uri");
    // Bytes that somebody adds are not stored.
    let smuggled: ArtifactRef =
        serde_json::from_value(json!({"uri": "s3:x", "kind": "k", "content": "aGVsbG8="})).unwrap();
    assert!(!serde_json::to_string(&smuggled).unwrap().contains("aGVsbG8"));
}

/// ES-062: a payload inside the reference is refused, however it is spelt.
#[test]
fn payloads_in_events_are_refused() {
    let whole: Value = serde_json::from_str(&fullest()[4].to_json()).unwrap();
    assert!(Event::from_json(&whole.to_string()).is_ok());
    for uri in ["data:text/plain;base64,aGVsbG8=", "DATA:,hello", "dAtA:application/octet-stream,x"] {
        let mut document = whole.clone();
        document["artifacts"][1]["uri"] = json!(uri);
        let error = Event::from_json(&document.to_string()).unwrap_err();
        assert_eq!(error.field, "artifacts/1/uri", "{error}");
        assert!(error.reason.contains("data:"), "{error}");
    }
    for (field, value) in
        [("uri", json!([104, 105])), ("uri", json!("no scheme")), ("kind", json!("")), ("sizeBytes", json!(-1))]
    {
        let mut document = whole.clone();
        document["artifacts"][0][field] = value;
        assert_eq!(Event::from_json(&document.to_string()).unwrap_err().field, format!("artifacts/0/{field}"));
    }
    let many = vec![artifacts().remove(1); 1_001];
    assert!(check_artifacts(&many[..1_000]).is_ok());
    assert!(check_artifacts(&many).is_err());
}

/// ES-063: the shape of a step's report.
#[test]
fn a_step_reports_in_this_shape() {
    let full = json!({"status": "FAILED", "artifactRefs": [{"uri": "s3:x", "kind": "k"}],
        "error": {"category": "NETWORK", "code": "TIMEOUT", "message": "no answer", "retryable": true}});
    let output: StepOutput = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(output.status, OutputStatus::Failed);
    assert_eq!(serde_json::to_value(&output).unwrap(), full);
    for status in ["SUCCESS", "FAILED", "SKIPPED"] {
        let bare = json!({"status": status, "artifactRefs": []});
        let output: StepOutput = serde_json::from_value(bare.clone()).unwrap();
        assert_eq!(serde_json::to_value(&output).unwrap(), bare);
    }
    for wrong in [
        json!({"status": "RUNNING", "artifactRefs": []}),
        json!({"artifactRefs": []}),
        json!({"status": "FAILED", "error": {"message": "m"}}),
    ] {
        assert!(serde_json::from_value::<StepOutput>(wrong.clone()).is_err(), "{wrong}");
    }
}

/// ES-063: code and retryable are optional in the report and filled in for the event.
#[test]
fn a_report_becomes_an_error() {
    let output: StepOutput = serde_json::from_value(
        json!({"status": "FAILED", "error": {"category": "NETWORK", "message": "x".repeat(20_000)}}),
    )
    .unwrap();
    let error = StepError::from(output.error.unwrap());
    assert_eq!((error.code.as_str(), error.category.as_deref(), error.retryable), ("NETWORK", Some("NETWORK"), false));
    assert!(error.check().is_ok(), "a long message is cut, not refused");
}

/// A plan names secrets; one with a value is refused wherever it comes in.
#[test]
fn a_plan_with_a_secret_value_is_refused() {
    let plan = |secret: Value| {
        json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": [{"stepId": "a", "secrets": [secret]}]}).to_string()
    };
    let good = plan(json!({"name": "db-password", "version": "3"}));
    assert_eq!(check_document(&good), Ok(()));
    for (secret, field) in [
        (json!({"name": "k", "value": "hunter2"}), "plan/steps/0/secrets/0/value"),
        (json!({"name": "k", "secret": "hunter2"}), "plan/steps/0/secrets/0/secret"),
        (json!({"value": "hunter2"}), "plan/steps/0/secrets/0/value"),
        (json!({"name": {"hunter2": 1}}), "plan/steps/0/secrets/0/name"),
    ] {
        let text = plan(secret);
        assert!(serde_json::from_str::<Plan>(&text).is_err());
        // Also inside the event that carries the plan.
        let body = EventBody::RunQueued(Box::new(queued(Some(&text))));
        let error = body.check().unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
    assert_eq!(EventBody::RunQueued(Box::new(queued(Some(&good)))).check(), Ok(()));
    let secret = SecretRef { name: "k".to_owned(), version: None };
    assert_eq!(serde_json::to_string(&secret).unwrap(), r#"{"name":"k"}"#);
}
