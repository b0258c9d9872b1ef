//! The published types.

use serde_json::{Value, json};
use servo_entrypoint::TimelineEventType;
use servo_entrypoint::gts::Gts;
use servo_entrypoint::schemas::Types;
use servo_model::invocation::{InvocationStatus, errors};

use crate::support::{example, spec};

fn is_valid(id: &str, instance: &Value) -> bool {
    Types::published().compile_type(id).unwrap().is_valid(instance)
}

fn serverless(name: &str) -> String {
    format!("gts.x.core.serverless.{name}.v1~")
}

#[test]
fn every_file_is_embedded() {
    let mut files: Vec<_> = std::fs::read_dir(spec("schemas"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".json").to_owned())
        .collect();
    files.sort();
    assert_eq!(Types::ids().collect::<Vec<_>>(), files);
}

/// SR-001, SR-005, SR-006, SR-250: every type is a schema of its own, under its id, and compiles.
#[test]
fn every_type_stands_alone() {
    let types = Types::published();
    for id in Types::ids() {
        assert!(Gts::parse(id).is_ok(), "{id}");
        let schema = types.get(id).unwrap();
        assert_eq!(schema["$id"], format!("gts://{id}"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        types.compile(&schema).unwrap();
        // A derived type refers to what it derives from, or, like the token bucket, to a base without any content.
        let chain: Vec<_> = Gts::parse(id).unwrap().chain().collect();
        if let [.., base, _] = chain.as_slice()
            && *base != serverless("rate_limit")
        {
            assert_eq!(schema["allOf"][0]["$ref"], format!("gts://{base}"), "{id}");
        }
    }
    for name in [
        "owner_ref",
        "io_schema",
        "limits",
        "rate_limit",
        "retry_policy",
        "implementation",
        "workflow_traits",
        "compensation_context",
        "status",
        "err",
        "timeline_event",
        "invocation",
        "schedule",
        "trigger",
        "tenant_policy",
    ] {
        assert!(types.get(&serverless(name)).is_some(), "{name}");
    }
    assert!(types.get("gts.x.core.serverless.nothing.v1~").is_none());
}

/// SR-006, SR-223, SR-234, SR-251: the published examples are what the types say.
#[test]
fn every_example_validates() {
    let entrypoint = |kind: &str| format!("{}x.core.serverless.{kind}.v1~", serverless("entrypoint"));
    let token_bucket = format!("{}x.core.serverless.rate_limit.token_bucket.v1~", serverless("rate_limit"));
    let rows = [
        (entrypoint("function"), example("function")),
        (entrypoint("workflow"), example("workflow")),
        (serverless("entrypoint"), example("function")),
        (serverless("compensation_context"), example("compensation_context")),
        (serverless("invocation"), example("invocation")),
        (serverless("invocation"), example("invocation_result.dry_run")["record"].clone()),
        (serverless("schedule"), example("schedule")),
        (serverless("trigger"), example("trigger")),
        (serverless("tenant_policy"), example("tenant_policy")),
        (token_bucket, example("rate_limit")["config"].clone()),
        (serverless("limits"), example("function")["traits"]["limits"].clone()),
        (serverless("retry_policy"), example("function")["traits"]["retry"].clone()),
        (serverless("owner_ref"), example("function")["owner"].clone()),
        (serverless("io_schema"), example("function")["schema"].clone()),
        (serverless("implementation"), example("function")["implementation"].clone()),
        (serverless("workflow_traits"), example("workflow")["traits"]["workflow"].clone()),
    ];
    for (id, instance) in rows {
        assert!(is_valid(&id, &instance), "{id}");
    }
}

/// SR-121, SR-122: nine statuses, and a derived type for each.
#[test]
fn statuses_have_types() {
    for status in InvocationStatus::ALL {
        let word = json!(status.as_str());
        assert!(is_valid(&serverless("status"), &word));
        let derived = format!("{}x.core.serverless.status.{}.v1~", serverless("status"), status.as_str());
        for other in InvocationStatus::ALL {
            assert_eq!(is_valid(&derived, &json!(other.as_str())), other == status);
        }
    }
    assert!(!is_valid(&serverless("status"), &json!("paused")));
}

/// SR-152, SR-153, SR-160, SR-162, SR-164, SR-165: errors have types.
#[test]
fn errors_have_types() {
    let base = json!({"message": "m", "category": "retryable"});
    assert!(is_valid(&serverless("err"), &base));
    for broken in [
        json!({"message": "m"}),
        json!({"category": "retryable"}),
        json!({"message": 1, "category": "retryable"}),
        json!({"message": "m", "category": "fatal"}),
        json!({"message": "m", "category": "retryable", "details": []}),
    ] {
        assert!(!is_valid(&serverless("err"), &broken), "{broken}");
    }
    for id in errors::ALL {
        assert!(Types::published().get(id).is_some(), "{id}");
    }
    let issue = json!({"error_type": "t", "location": {"path": "$", "line": null}, "message": "m"});
    let error = |issues: Value| json!({"message": "m", "category": "non_retryable", "issues": issues});
    assert!(is_valid(errors::VALIDATION, &error(json!([issue]))));
    assert!(!is_valid(errors::VALIDATION, &error(json!([]))));
    for name in ["error_type", "location", "message"] {
        let mut broken = issue.clone();
        broken.as_object_mut().unwrap().remove(name);
        assert!(!is_valid(errors::VALIDATION, &error(json!([broken]))), "{name}");
    }
}

/// SR-028, SR-032, SR-033, SR-035, SR-036, SR-037, SR-056: the bounds of limits, per adapter.
#[test]
fn limits_have_bounds() {
    assert!(is_valid(&serverless("limits"), &json!({"anything": 1})));
    assert_eq!(Types::published().get(&serverless("rate_limit")).unwrap().get("properties"), None);
    let of = |adapter: &str| format!("{}x.core.serverless.adapter.{adapter}.limits.v1~", serverless("limits"));
    let rows = [
        ("starlark", "memory_mb", vec![json!(1), json!(512)], vec![json!(0), json!(513), json!(1.5)]),
        ("starlark", "cpu", vec![json!(0.1), json!(1.0)], vec![json!(0.05), json!(1.1)]),
        ("lambda", "memory_mb", vec![json!(128), json!(10240)], vec![json!(127), json!(10241)]),
        ("lambda", "ephemeral_storage_mb", vec![json!(512), json!(10240)], vec![json!(511), json!(10241)]),
        ("temporal", "timeout_seconds", vec![json!(1)], vec![json!(0), json!(1.5)]),
        ("starlark", "timeout_seconds", vec![json!(1)], vec![json!(0)]),
        ("lambda", "max_concurrent", vec![json!(1)], vec![json!(0)]),
    ];
    for (adapter, name, good, bad) in rows {
        for value in good {
            assert!(is_valid(&of(adapter), &json!({name: value})), "{adapter} {name} {value}");
        }
        for value in bad {
            assert!(!is_valid(&of(adapter), &json!({name: value})), "{adapter} {name} {value}");
        }
    }
}

/// SR-173, SR-174, SR-177: timeline events.
#[test]
fn timeline_events_have_a_type() {
    let event = json!({"at": "2026-01-01T00:00:00.000Z", "event_type": "started", "status": "running"});
    let id = serverless("timeline_event");
    assert!(is_valid(&id, &event));
    for name in ["at", "event_type", "status"] {
        let mut without = event.clone();
        without.as_object_mut().unwrap().remove(name);
        assert!(!is_valid(&id, &without), "without {name}");
    }
    assert_eq!(TimelineEventType::ALL.len(), 16);
    for event_type in TimelineEventType::ALL {
        let mut of_type = event.clone();
        of_type["event_type"] = event_type.as_str().into();
        assert!(is_valid(&id, &of_type), "{event_type:?}");
    }
    for (name, value) in [("event_type", json!("queued")), ("duration_ms", json!(-1)), ("at", json!("now"))] {
        let mut broken = event.clone();
        broken[name] = value;
        assert!(!is_valid(&id, &broken), "{name}");
    }
}

/// SR-220: a function is what an entrypoint is, and no more.
#[test]
fn a_function_adds_nothing() {
    let (base, function) =
        (serverless("entrypoint"), format!("{}x.core.serverless.function.v1~", serverless("entrypoint")));
    let document = example("function");
    let members: Vec<String> = document.as_object().unwrap().keys().cloned().collect();
    assert!(is_valid(&base, &document) && is_valid(&function, &document));
    for name in members {
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove(&name);
        assert_eq!(is_valid(&base, &without), is_valid(&function, &without), "without {name}");
        let mut wrong = document.clone();
        wrong[&name] = json!(7);
        assert_eq!(is_valid(&base, &wrong), is_valid(&function, &wrong), "{name}");
    }
}

/// SR-066: whole numbers from zero on.
#[test]
fn a_minute_has_whole_requests() {
    let id = format!("{}x.core.serverless.rate_limit.token_bucket.v1~", serverless("rate_limit"));
    for (value, valid) in [(json!(0), true), (json!(5), true), (json!(-1), false), (json!(1.5), false)] {
        assert_eq!(is_valid(&id, &json!({"max_requests_per_minute": value})), valid, "{value}");
    }
    let schema = Types::published().get(&id).unwrap();
    assert_eq!(schema["properties"]["max_requests_per_minute"]["default"], 0);
}

/// Ids of the right family, by `x-gts-ref`.
#[test]
fn references_are_of_a_family() {
    let mut schedule = example("schedule");
    schedule["entrypoint_id"] = json!("gts.x.core.serverless.adapter.starlark.v1~");
    assert!(!is_valid(&serverless("schedule"), &schedule));
    let mut trigger = example("trigger");
    trigger["event_type_id"] = json!("gts.vendor.app.thing.v1~");
    assert!(!is_valid(&serverless("trigger"), &trigger));
    let mut policy = example("tenant_policy");
    policy["policies"]["allowed_runtimes"] = json!(["starlark"]);
    assert!(!is_valid(&serverless("tenant_policy"), &policy));
}
