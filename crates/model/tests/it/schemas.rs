//! The published schemas: every canonical type has one, and what the Rust types write validates against it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use servo_model::event::{CANONICAL_TYPES, EventBody};
use servo_model::{Event, contract};

use crate::samples::{fullest, smallest};
use crate::support::{read, repository};

pub(crate) fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

pub(crate) fn schema(event_type: &str) -> Value {
    serde_json::from_str(&read(&format!("spec/events/{event_type}.schema.json"))).unwrap()
}

/// One validator per type, made once: compiling the patterns takes longer than using them.
pub(crate) fn validators() -> &'static BTreeMap<&'static str, Validator> {
    static ALL: LazyLock<BTreeMap<&str, Validator>> =
        LazyLock::new(|| CANONICAL_TYPES.iter().map(|name| (*name, validator(&schema(name)))).collect());
    &ALL
}

/// The example of the contract's appendix A.1, to the letter.
const RUN_STARTED: &str = r#"{
  "eventType": "RunStarted",
  "eventId": "01234567-89ab-cdef-0123-456789abcdef",
  "runId": "run_2026-02-11_abc123",
  "runSeq": 2,
  "idempotencyKey": "d2a84f4b8b650937ec8f73cd8be2c74add5a911ba64df27458ed8229da804a26",
  "emittedAt": "2026-02-11T10:30:00.000Z",
  "emittedBy": "engine",
  "status": "RUNNING",
  "engineRunRef": "temporal://default/interpreter-workflow/run_2026-02-11_abc123/f47ac10b",
  "engineType": "temporal",
  "planRef": {
    "uri": "s3://dvt-plans/prod/plan_xyz_v1.2.json",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "schemaVersion": "v1.2",
    "planId": "plan_xyz",
    "planVersion": "1.2"
  },
  "context": {
    "tenantId": "tenant_acme",
    "projectId": "proj_marketing",
    "environmentId": "prod",
    "triggeredBy": "user_jane",
    "triggerSource": "manual"
  },
  "startedAt": "2026-02-11T10:30:00.000Z"
}"#;

/// ES-010: these names and no others; ES-013: one schema file each.
#[test]
fn the_canonical_types_are_the_contracts() {
    let expected = "RunQueued RunApproved RunStarted StepStarted StepCompleted StepFailed StepSkipped SignalAccepted \
                    SignalRejected RunPaused RunResumed RunCompleted RunFailed RunCancelled";
    assert_eq!(CANONICAL_TYPES.join(" "), expected);
    let mut files: Vec<String> = std::fs::read_dir(repository("spec/events"))
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str().unwrap().strip_suffix(".schema.json").map(str::to_owned)
        })
        .collect();
    files.sort_unstable();
    let mut types = CANONICAL_TYPES.to_vec();
    types.sort_unstable();
    assert_eq!(files, types);
    // `StepDelayed` was taken out of the contract: it is a type like any unknown one.
    assert!(matches!(EventBody::decode("StepDelayed", "{}"), Ok(EventBody::Unknown(_))));
}

/// ES-013: draft 2020-12, self-contained, and open to fields that later versions add.
#[test]
fn schemas_are_self_contained_and_open() {
    for name in CANONICAL_TYPES {
        let schema = schema(name);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$id"], format!("urn:servo:event:{name}:1"));
        assert_eq!(schema["title"], name);
        assert_eq!(schema["additionalProperties"], true);
        let text = schema.to_string();
        assert_eq!(text.matches("\"$ref\":").count(), text.matches("\"$ref\":\"#/$defs/").count(), "{name}");
    }
}

/// ES-011: the envelope is the same in every schema, so no file drifts away from the others.
#[test]
fn all_schemas_share_the_envelope() {
    let required = ["eventType", "eventId", "runId", "runSeq", "idempotencyKey", "emittedAt", "emittedBy"];
    let envelope = |name: &str| {
        let schema = schema(name);
        let mut properties = schema["properties"].clone();
        assert_eq!(properties["eventType"]["const"], name);
        properties["eventType"] = json!(null);
        let fields: Vec<Value> =
            required.iter().chain(&["occurredAt"]).map(|field| properties[field].clone()).collect();
        assert_eq!(schema["required"].as_array().unwrap()[..7], required);
        (fields, schema["$defs"]["time"].clone(), schema["$defs"]["digest"].clone())
    };
    for name in CANONICAL_TYPES {
        assert_eq!(envelope(name), envelope("RunStarted"), "{name}");
    }
}

/// ES-013: what the Rust types write validates, for every type, with few and with all fields.
#[test]
fn rust_documents_validate_and_round_trip() {
    let validators = validators();
    for events in [smallest(), fullest()] {
        let types: Vec<_> = events.iter().map(|event| event.body.event_type()).collect();
        assert_eq!(types, CANONICAL_TYPES);
        for event in &events {
            let text = event.to_json();
            let document: Value = serde_json::from_str(&text).unwrap();
            let errors: Vec<_> =
                validators[event.body.event_type()].iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{text}: {errors:?}");
            assert_eq!(Event::from_json(&text).as_ref(), Ok(event));
        }
    }
}

/// The sample with all fields does have all fields that its schema names, so the tests above miss none.
#[test]
fn the_full_samples_are_full() {
    for event in fullest() {
        let document: Value = serde_json::from_str(&event.to_json()).unwrap();
        let schema = schema(event.body.event_type());
        for field in schema["properties"].as_object().unwrap().keys() {
            // Written only when it is not 1.
            if event.body.event_type() == "RunStarted" && field == "logicalAttemptId" {
                continue;
            }
            assert!(document.get(field).is_some(), "{}: {field}", event.body.event_type());
        }
    }
}

/// ES-011: every document has the envelope, in the published order and spelling.
#[test]
fn every_document_begins_with_the_envelope() {
    for event in fullest() {
        let text = event.to_json();
        let fields =
            ["eventType", "eventId", "runId", "runSeq", "idempotencyKey", "emittedAt", "emittedBy", "occurredAt"];
        let places: Vec<_> = fields.iter().map(|field| text.find(&format!("\"{field}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("\"emittedAt\":\"2026-02-11T10:30:"), "{text}");
    }
}

/// ES-012
#[test]
fn the_contracts_example_validates_and_round_trips() {
    let document: Value = serde_json::from_str(RUN_STARTED).unwrap();
    assert!(validators()["RunStarted"].is_valid(&document));
    let event = Event::from_json(RUN_STARTED).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&event.to_json()).unwrap(), document);
    let EventBody::RunStarted(body) = &event.body else { panic!("{event:?}") };
    assert_eq!(body.engine_type, "temporal");
    assert_eq!(event.run_seq, 2);
}

/// ES-012: each field of the example is needed, but for the three that the contract marks as optional.
#[test]
fn each_field_of_the_example_is_needed() {
    let validator = validator(&schema("RunStarted"));
    let whole: Value = serde_json::from_str(RUN_STARTED).unwrap();
    for path in pointers(&whole) {
        let mut document = whole.clone();
        let (parent, name) = path.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        let optional = ["/context/triggeredBy", "/context/triggerSource"].contains(&path.as_str());
        assert_eq!(validator.is_valid(&document), optional, "without {path}");
        assert_eq!(Event::from_json(&document.to_string()).is_ok(), optional, "without {path}");
    }
    let mut document = whole.clone();
    document["context"]["triggerSource"] = json!("cron");
    assert!(Event::from_json(&document.to_string()).is_err());
}

/// The JSON pointers of everything in objects.
pub(crate) fn pointers(value: &Value) -> Vec<String> {
    let Some(fields) = value.as_object() else { return Vec::new() };
    let below = |(name, value): (&String, &Value)| {
        let inner = pointers(value).into_iter().map(move |path| format!("/{name}{path}")).collect::<Vec<_>>();
        [format!("/{name}")].into_iter().chain(inner)
    };
    fields.iter().flat_map(below).collect()
}

/// RT-019: the file that people read is what the program prints.
#[test]
fn the_runtime_contract_file_is_what_the_code_says() {
    let file: Value = serde_json::from_str(&read("spec/runtime-contract.schema.json")).unwrap();
    let code = contract::json_schema();
    let (file, code) = (servo_canon::to_canonical(&file).unwrap(), servo_canon::to_canonical(&code).unwrap());
    assert_eq!(file, code, "write what `servo runtime schema` prints to spec/runtime-contract.schema.json");
}
