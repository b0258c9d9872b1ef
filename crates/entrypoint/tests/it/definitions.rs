//! Documents and what the validation says about them.

use serde_json::{Value, json};
use servo_entrypoint::validate::{Handler, Outline, SourceIssue};
use servo_entrypoint::{DefinitionStatus, EntrypointType, InvocationMode, ValidationError, pin};
use servo_model::Role;
use servo_model::invocation::errors;

use crate::support::{
    LAMBDA, ROLLBACK, STARLARK, TEMPORAL, World, context, function, minimal, with, without, workflow,
};

/// SR-002, SR-218, SR-223, SR-347, SR-365: the published function is valid, and a draft whatever it says.
#[test]
fn the_published_function_is_valid() {
    let world = World::new();
    let valid = world.check(&function()).unwrap();
    assert_eq!(valid.kind, EntrypointType::Function);
    assert_eq!(valid.entrypoint.definition.status, DefinitionStatus::Draft);
    let normal = world.normal(&with(function(), "/id", json!("ep_forged")));
    assert_eq!((normal.get("id"), normal.get("created_at"), normal.get("updated_at")), (None, None, None));
    assert_eq!(normal["status"], "draft");
}

/// SR-022, SR-026, SR-027, SR-032, SR-033, SR-041, SR-042, SR-043, SR-044, SR-187, SR-188, SR-189, SR-190,
/// SR-193, SR-194: defaults.
#[test]
fn what_is_left_out_has_its_default() {
    let world = World::new();
    let normal = world.normal(&minimal());
    assert_eq!(
        normal["traits"],
        json!({
            "invocation": {"supported": ["sync"], "default": "sync"},
            "is_idempotent": false,
            "caching": {"max_age_seconds": 0},
            "rate_limit": null,
            "limits": {"timeout_seconds": 30, "max_concurrent": 100, "memory_mb": 128, "cpu": 0.2},
            "retry": {"max_attempts": 3, "initial_delay_ms": 200, "max_delay_ms": 10000, "backoff_multiplier": 2.0},
        })
    );
    for stored in ["version", "tenant_id", "owner", "status", "title", "schema", "traits", "implementation"] {
        assert!(!normal[stored].is_null(), "{stored}");
    }
    assert_eq!(normal["status"], "draft");
    for (name, wrong) in [
        ("timeout_seconds", json!(0)),
        ("timeout_seconds", json!(1.5)),
        ("max_concurrent", json!(0)),
        ("max_concurrent", json!("1")),
    ] {
        let faults = world.faults(&with(minimal(), "/traits/limits", json!({name: wrong})));
        assert_eq!(faults, [format!("$.traits.limits.{name} schema_mismatch")], "{wrong}");
    }
    assert_eq!(normal["tags"], json!([]));
    assert_eq!(normal["description"], "");
    assert_eq!(normal["schema"], json!({"params": null, "returns": null, "errors": []}));
    assert_eq!(normal["tenant_id"], "t_123");
    let caching = world.normal(&with(minimal(), "/traits/caching", json!({})));
    assert_eq!(caching["traits"]["caching"]["max_age_seconds"], 0);
}

/// SR-003, SR-009, SR-363: the address is required and names a function or a workflow.
#[test]
fn the_address_says_the_kind() {
    let world = World::new();
    assert_eq!(world.faults(&without(minimal(), "/entrypoint_id")), ["$.entrypoint_id missing_field"]);
    for address in ["gts.x.core.serverless.entrypoint.v1~", "calculate_tax", "gts.A.b.c.v1~"] {
        let document = with(minimal(), "/entrypoint_id", json!(address));
        assert_eq!(world.faults(&document), ["$.entrypoint_id invalid_format"], "{address}");
    }
    let number = with(minimal(), "/entrypoint_id", json!(1));
    assert_eq!(world.faults(&number), ["$.entrypoint_id schema_mismatch"]);
}

/// SR-010, SR-011, SR-018, SR-022, SR-040, SR-041, SR-042, SR-043, SR-044, SR-058, SR-081, SR-082, SR-083, SR-084,
/// SR-085, SR-166, SR-186, SR-189, SR-190, SR-191, SR-192, SR-194: one fault, one issue, at its place.
#[test]
fn every_fault_is_named_at_its_place() {
    let world = World::new();
    let put = |pointer: &str, value: Value, fault: &str| {
        let faults = world.faults(&with(minimal(), pointer, value.clone()));
        assert_eq!(faults, [fault], "{pointer} {value}");
    };
    put("/version", json!("1.0"), "$.version invalid_format");
    put("/version", json!("v1.0.0"), "$.version invalid_format");
    put("/version", json!("١.0.0"), "$.version invalid_format");
    put("/tags", json!(["a", 1]), "$.tags[1] schema_mismatch");
    put("/title", json!(1), "$.title schema_mismatch");
    put("/owner/owner_type", json!("group"), "$.owner.owner_type invalid_value");
    put("/owner/id", json!(1), "$.owner.id schema_mismatch");
    put("/owner/id", json!("i".repeat(257)), "$.owner.id limit_exceeded");
    put("/owner/id", json!("a\0"), "$.owner.id invalid_value");
    put("/title", json!("a\0b"), "$.title invalid_value");
    put("/tags", json!(["a", "\0"]), "$.tags[1] invalid_value");
    put("/schema/params", json!(true), "$.schema.params schema_mismatch");
    put("/schema/returns", json!([]), "$.schema.returns schema_mismatch");
    put("/schema/errors", json!(["foo"]), "$.schema.errors[0] invalid_format");
    put("/traits/invocation/supported", json!(["sync", "batch"]), "$.traits.invocation.supported[1] invalid_value");
    put("/traits/invocation/supported", json!([]), "$.traits.invocation.supported invalid_value");
    put("/traits/is_idempotent", json!("yes"), "$.traits.is_idempotent schema_mismatch");
    put("/traits/caching", json!({"max_age_seconds": -1}), "$.traits.caching.max_age_seconds schema_mismatch");
    put("/traits/limits", json!({"timeout_seconds": 0}), "$.traits.limits.timeout_seconds schema_mismatch");
    put("/traits/limits", json!({"timeout_seconds": 1.5}), "$.traits.limits.timeout_seconds schema_mismatch");
    put("/traits/limits", json!({"max_concurrent": 0}), "$.traits.limits.max_concurrent schema_mismatch");
    put("/traits/limits", json!({"max_concurrent": 1e30}), "$.traits.limits.max_concurrent limit_exceeded");
    put("/traits/retry", json!({"max_attempts": -1}), "$.traits.retry.max_attempts schema_mismatch");
    put("/traits/retry", json!({"max_attempts": 1e12}), "$.traits.retry.max_attempts limit_exceeded");
    let retry = |name: &str, value: Value| json!({"max_attempts": 1, name: value});
    for name in ["initial_delay_ms", "max_delay_ms", "backoff_multiplier"] {
        put("/traits/retry", retry(name, json!(1e300)), &format!("$.traits.retry.{name} limit_exceeded"));
    }
    put("/traits/caching", json!({"max_age_seconds": 1e300}), "$.traits.caching.max_age_seconds limit_exceeded");
    put("/traits/limits", json!({"timeout_seconds": 1e300}), "$.traits.limits.timeout_seconds limit_exceeded");
    put("/traits/retry", retry("initial_delay_ms", json!(-1)), "$.traits.retry.initial_delay_ms schema_mismatch");
    put("/traits/retry", retry("max_delay_ms", json!(-1)), "$.traits.retry.max_delay_ms schema_mismatch");
    put("/traits/retry", retry("backoff_multiplier", json!(0.9)), "$.traits.retry.backoff_multiplier schema_mismatch");
    put(
        "/traits/retry",
        retry("non_retryable_errors", json!(["x"])),
        "$.traits.retry.non_retryable_errors[0] invalid_format",
    );
    put("/implementation/adapter", json!("gts.x.core.serverless.err.v1~"), "$.implementation.adapter invalid_format");
    put("/implementation/kind", json!("container"), "$.implementation.kind invalid_value");
    let foreign = with(minimal(), "/implementation/adapter", json!(TEMPORAL));
    let missing = with(foreign, "/implementation/kind", json!("adapter_ref"));
    assert_eq!(world.faults(&missing), ["$.implementation.adapter_ref missing_field"]);
    put(
        "/implementation/code",
        json!({"language": "cobol", "source": "x"}),
        "$.implementation.code.language invalid_value",
    );
    put("/implementation/code", json!({"language": "starlark"}), "$.implementation.code.source missing_field");
    put("/implementation/code", json!({"source": "x"}), "$.implementation.code.language missing_field");
    for (name, fault) in [
        ("/version", "$.version"),
        ("/title", "$.title"),
        ("/owner", "$.owner"),
        ("/owner/id", "$.owner.id"),
        ("/owner/owner_type", "$.owner.owner_type"),
        ("/owner/tenant_id", "$.owner.tenant_id"),
        ("/schema", "$.schema"),
        ("/traits", "$.traits"),
        ("/traits/invocation", "$.traits.invocation"),
        ("/traits/invocation/default", "$.traits.invocation.default"),
        ("/traits/invocation/supported", "$.traits.invocation.supported"),
        ("/traits/limits", "$.traits.limits"),
        ("/traits/retry", "$.traits.retry"),
        ("/implementation", "$.implementation"),
        ("/implementation/adapter", "$.implementation.adapter"),
        ("/implementation/kind", "$.implementation.kind"),
        ("/implementation/code", "$.implementation.code"),
    ] {
        assert_eq!(world.faults(&without(minimal(), name)), [format!("{fault} missing_field")]);
    }
}

/// SR-084, SR-085: the other payloads.
#[test]
fn other_payloads_are_checked() {
    let world = World::new();
    let of = |implementation: Value| with(minimal(), "/implementation", implementation);
    let spec = |spec: Value| of(json!({"adapter": TEMPORAL, "kind": "workflow_spec", "workflow_spec": spec}));
    assert_eq!(world.faults(&spec(json!({"spec": {}}))), ["$.implementation.workflow_spec.format missing_field"]);
    assert_eq!(
        world.faults(&spec(json!({"format": "f", "spec": 1}))),
        ["$.implementation.workflow_spec.spec schema_mismatch"]
    );
    assert!(world.check(&spec(json!({"format": "f", "spec": {}}))).is_ok());
    let reference = of(json!({"adapter": LAMBDA, "kind": "adapter_ref", "adapter_ref": {}}));
    assert_eq!(world.faults(&reference), ["$.implementation.adapter_ref.definition_id missing_field"]);
}

/// SR-031, SR-082: what an adapter does not run is not registered, and its code is not read.
#[test]
fn an_adapter_runs_its_own_kind_alone() {
    let world = World::new();
    let payloads = json!({
        "code": {"language": "starlark", "source": "x"},
        "workflow_spec": {"format": "f", "spec": {}},
        "adapter_ref": {"definition_id": "f"},
    });
    for (adapter, runs) in [(STARLARK, Some("code")), (LAMBDA, Some("adapter_ref")), (TEMPORAL, None)] {
        for kind in ["code", "workflow_spec", "adapter_ref"] {
            let implementation = json!({"adapter": adapter, "kind": kind, kind: payloads[kind]});
            let document = with(minimal(), "/implementation", implementation);
            let could = runs.is_none_or(|runs| runs == kind);
            assert_eq!(Outline::of(&document).code.is_some(), could && kind == "code", "{adapter} {kind}");
            if could {
                assert!(world.check(&document).is_ok(), "{adapter} {kind}");
            } else {
                assert_eq!(world.faults(&document), ["$.implementation.kind incompatible"], "{adapter} {kind}");
            }
        }
    }
}

/// SR-053, SR-168: suggestions name the default, the valid words and what was probably meant.
#[test]
fn issues_say_what_to_do() {
    let world = World::new();
    let suggestion = |document: &Value| world.issues(document)[0].suggestion.clone().unwrap();
    let retry = with(minimal(), "/traits/retry", json!({}));
    assert_eq!(world.faults(&retry), ["$.traits.retry.max_attempts missing_field"]);
    assert!(suggestion(&retry).contains("\"max_attempts\": 3"));
    let days = without(workflow(), "/traits/workflow/max_suspension_days");
    assert_eq!(world.faults(&days), ["$.traits.workflow.max_suspension_days missing_field"]);
    assert!(suggestion(&days).contains("30"), "{}", suggestion(&days));
    let owner = with(minimal(), "/owner/owner_type", json!("tennant"));
    assert_eq!(suggestion(&owner), "did you mean `tenant`? Valid values: user, tenant, system");
    let kind = with(minimal(), "/implementation/kind", json!("container"));
    assert!(suggestion(&kind).contains("code, workflow_spec, adapter_ref"));
    let limits = with(minimal(), "/traits/limits", json!({"timeout_second": 3}));
    assert_eq!(suggestion(&limits), "did you mean `timeout_seconds`?");
    let misspelt = with(without(minimal(), "/title"), "/titel", json!("x"));
    assert_eq!(suggestion(&misspelt), "`titel` is not known here; did you mean `title`?");
    let adapter = with(minimal(), "/implementation/adapter", json!("gts.x.core.serverless.adapter.starlrk.v1~"));
    assert_eq!(suggestion(&adapter), format!("did you mean `{STARLARK}`?"));
}

/// SR-169, SR-424: all faults in one answer, the code's among them.
#[test]
fn one_answer_names_all_faults() {
    let world = World::new();
    let document = with(with(minimal(), "/version", json!("1")), "/traits/limits", json!({"cpu": 9, "disk": 1}));
    assert_eq!(
        world.faults(&document),
        [
            "$.traits.limits.cpu limit_exceeded",
            "$.traits.limits.cpu schema_mismatch",
            "$.traits.limits.disk unknown_field",
            "$.version invalid_format"
        ]
    );
    let source = SourceIssue { line: 3, column: 7, message: "no `)`".to_owned(), suggestion: None };
    let failure = world.check_with(&document, &[source]).unwrap_err();
    let issues = ValidationError::of(&failure).unwrap().issues;
    assert_eq!(issues.len(), 5);
    assert_eq!(issues[0].location.path, "$.implementation.code.source");
    // SR-091, SR-167: code has a line and a column, the rest has none.
    assert_eq!((issues[0].location.line, issues[0].location.column), (Some(3), Some(7)));
    assert_eq!((issues[1].location.line, issues[1].location.column), (None, None));
}

/// The smallest function with what the adapter runs.
fn of_adapter(adapter: &str) -> Value {
    let kind = if adapter == LAMBDA { "adapter_ref" } else { "code" };
    let payload =
        if adapter == LAMBDA { json!({"definition_id": "f"}) } else { json!({"language": "starlark", "source": "x"}) };
    with(minimal(), "/implementation", json!({"adapter": adapter, "kind": kind, kind: payload}))
}

/// SR-031, SR-035, SR-036, SR-087, SR-088, SR-092: the limits are those of the adapter and no others.
#[test]
fn limits_belong_to_the_adapter() {
    let world = World::new();
    let of = |adapter: &str, limits: Value| with(of_adapter(adapter), "/traits/limits", limits);
    let cpu = json!({"cpu": 0.5});
    assert!(world.check(&of(STARLARK, cpu.clone())).is_ok());
    assert_eq!(world.faults(&of(LAMBDA, cpu.clone())), ["$.traits.limits.cpu unknown_field"]);
    assert_eq!(world.faults(&of(TEMPORAL, cpu)), ["$.traits.limits.cpu unknown_field"]);
    assert_eq!(world.faults(&of(TEMPORAL, json!({"memory_mb": 1}))), ["$.traits.limits.memory_mb unknown_field"]);
    let memory = world.faults(&of(STARLARK, json!({"memory_mb": 600})));
    assert_eq!(memory, ["$.traits.limits.memory_mb schema_mismatch"]);
    let limits = |adapter: &str| world.normal(&of(adapter, json!({})))["traits"]["limits"].clone();
    assert_eq!(
        limits(LAMBDA),
        json!({"timeout_seconds": 30, "max_concurrent": 100, "memory_mb": 128, "ephemeral_storage_mb": 512})
    );
    assert_eq!(limits(TEMPORAL), json!({"timeout_seconds": 30, "max_concurrent": 100}));
}

/// SR-089: the adapter is there, and the tenant may use it.
#[test]
fn the_adapter_is_registered_and_allowed() {
    let mut world = World::new();
    let unknown = with(minimal(), "/implementation/adapter", json!("gts.x.core.serverless.adapter.unknown.v1~"));
    assert_eq!(world.faults(&unknown), ["$.implementation.adapter unknown_reference"]);
    for (allowed, valid) in
        [(None, true), (Some(vec![]), false), (Some(vec![LAMBDA]), false), (Some(vec![STARLARK]), true)]
    {
        world.policy.policies.allowed_runtimes =
            allowed.clone().map(|allowed| allowed.into_iter().map(str::to_owned).collect());
        match world.check(&minimal()) {
            Ok(_) => assert!(valid, "{allowed:?}"),
            Err(_) => {
                assert!(!valid, "{allowed:?}");
                assert_eq!(world.faults(&minimal()), ["$.implementation.adapter not_allowed"]);
            }
        }
    }
}

/// The tenant's defaults come before those of the schema, and stay inside adapter and quota.
#[test]
fn tenant_defaults_outrank_the_schema() {
    let mut world = World::new();
    world.policy.defaults.timeout_seconds = 60;
    world.policy.defaults.memory_mb = 64;
    world.policy.defaults.cpu = 0.7;
    let limits = |world: &World, adapter: &str| world.normal(&of_adapter(adapter))["traits"]["limits"].clone();
    let expected = json!({"timeout_seconds": 60, "memory_mb": 64, "cpu": 0.7, "max_concurrent": 100});
    assert_eq!(limits(&world, STARLARK), expected);
    // Lambda starts at 128, and has no `cpu`.
    assert_eq!(
        limits(&world, LAMBDA),
        json!({"timeout_seconds": 60, "memory_mb": 128, "ephemeral_storage_mb": 512, "max_concurrent": 100})
    );
    world.policy.quotas.max_memory_per_execution_mb = 32;
    assert_eq!(limits(&world, STARLARK)["memory_mb"], 32);
    let own = with(minimal(), "/traits/limits", json!({"timeout_seconds": 5}));
    assert_eq!(world.normal(&own)["traits"]["limits"]["timeout_seconds"], 5);
}

/// Nobody asks for more than the tenant's quota.
#[test]
fn quotas_bound_the_limits() {
    let mut world = World::new();
    world.policy.quotas.max_memory_per_execution_mb = 100;
    world.policy.quotas.max_cpu_per_execution = 0.2;
    world.policy.quotas.max_execution_duration_seconds = 50;
    let of = |limits: Value| with(minimal(), "/traits/limits", limits);
    assert!(world.check(&of(json!({"memory_mb": 100, "cpu": 0.2, "timeout_seconds": 50}))).is_ok());
    assert_eq!(
        world.faults(&of(json!({"memory_mb": 101, "cpu": 0.21, "timeout_seconds": 51}))),
        [
            "$.traits.limits.cpu limit_exceeded",
            "$.traits.limits.memory_mb limit_exceeded",
            "$.traits.limits.timeout_seconds limit_exceeded"
        ]
    );
}

/// SR-058, SR-060, SR-061, SR-079: the limiter exists and its configuration is right.
#[test]
fn rate_limits_are_checked_by_their_strategy() {
    let world = World::new();
    let bucket = "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~";
    let of = |limit: Value| with(minimal(), "/traits/rate_limit", limit);
    assert!(world.check(&of(Value::Null)).is_ok());
    assert!(world.check(&of(json!({"strategy": bucket, "config": {}}))).is_ok());
    let faults = |limit: Value| world.faults(&of(limit));
    assert_eq!(faults(json!({"config": {}})), ["$.traits.rate_limit.strategy missing_field"]);
    assert_eq!(faults(json!({"strategy": bucket})), ["$.traits.rate_limit.config missing_field"]);
    assert_eq!(faults(json!({"strategy": bucket, "config": []})), ["$.traits.rate_limit.config schema_mismatch"]);
    assert_eq!(faults(json!({"strategy": bucket, "config": {}, "x": 1})), ["$.traits.rate_limit.x unknown_field"]);
    assert_eq!(faults(json!({"strategy": "other", "config": {}})), ["$.traits.rate_limit.strategy unknown_reference"]);
    assert_eq!(
        faults(json!({"strategy": bucket, "config": {"burst_size": 0, "max_requests_per_second": -1}})),
        [
            "$.traits.rate_limit.config.burst_size schema_mismatch",
            "$.traits.rate_limit.config.max_requests_per_second schema_mismatch"
        ]
    );
    // The configuration is not touched.
    let config = json!({"max_requests_per_minute": 5.0, "note": "x"});
    let normal = world.normal(&of(json!({"strategy": bucket, "config": config})));
    assert_eq!(normal["traits"]["rate_limit"]["config"], config);
}

/// SR-217: the default mode is one of those that are supported.
#[test]
fn the_default_mode_is_supported() {
    let document = with(minimal(), "/traits/invocation", json!({"supported": ["async"], "default": "sync"}));
    assert_eq!(World::new().faults(&document), ["$.traits.invocation.default invalid_value"]);
}

/// SR-093, SR-094, SR-095, SR-096, SR-097, SR-225, SR-234: workflow traits.
#[test]
fn workflows_have_traits() {
    let world = World::new();
    assert!(world.check(&workflow()).is_ok());
    assert_eq!(world.faults(&without(workflow(), "/traits/workflow")), ["$.traits.workflow missing_field"]);
    for name in ["compensation", "checkpointing", "max_suspension_days"] {
        let document = without(workflow(), &format!("/traits/workflow/{name}"));
        assert_eq!(world.faults(&document), [format!("$.traits.workflow.{name} missing_field")]);
    }
    let put = |pointer: &str, value: Value| with(workflow(), &format!("/traits/workflow/{pointer}"), value);
    for days in [json!(0), json!(1.5)] {
        assert_eq!(
            world.faults(&put("max_suspension_days", days)),
            ["$.traits.workflow.max_suspension_days schema_mismatch"]
        );
    }
    let never = put("checkpointing", json!({"strategy": "never"}));
    assert_eq!(world.faults(&never), ["$.traits.workflow.checkpointing.strategy invalid_value"]);
    // SR-101: in Starlark the program decides where it is recorded.
    for strategy in ["manual", "disabled"] {
        assert!(world.check(&put("checkpointing", json!({ "strategy": strategy }))).is_ok(), "{strategy}");
    }
    for handler in ["on_failure", "on_cancel"] {
        let adapter = put("compensation", json!({handler: STARLARK}));
        assert_eq!(world.faults(&adapter), [format!("$.traits.workflow.compensation.{handler} invalid_format")]);
    }
    let normal = world.normal(&put("compensation", json!({})));
    assert_eq!(normal["traits"]["workflow"]["compensation"], json!({"on_failure": null, "on_cancel": null}));
    let normal = world.normal(&put("checkpointing", json!({})));
    assert_eq!(normal["traits"]["workflow"]["checkpointing"], json!({"strategy": "automatic"}));
}

/// SR-044, SR-054: what tries the steps of a durable function again is its own code, so no policy is promised for them.
#[test]
fn a_durable_function_takes_no_retry_policy() {
    let implementation = json!({"adapter": LAMBDA, "kind": "adapter_ref", "adapter_ref": {"definition_id": "f"}});
    let document = with(with(workflow(), "/traits/limits", json!({})), "/implementation", implementation.clone());
    let retry = |policy: Value| with(document.clone(), "/traits/retry", policy);
    let world = World::new();
    for refused in [
        json!({"max_attempts": 1}),
        json!({"max_attempts": 3, "initial_delay_ms": 1_000}),
        json!({"max_attempts": 3, "max_delay_ms": 60_000}),
        json!({"max_attempts": 3, "backoff_multiplier": 1.5}),
        json!({"max_attempts": 3, "non_retryable_errors": ["gts.a.b.declined.v1~"]}),
    ] {
        assert_eq!(world.faults(&retry(refused.clone())), ["$.traits.retry not_allowed"], "{refused}");
        let plain = with(with(minimal(), "/implementation", implementation.clone()), "/traits/retry", refused.clone());
        assert!(world.check(&plain).is_ok(), "a function is tried again by it: {refused}");
        assert!(world.check(&with(workflow(), "/traits/retry", refused)).is_ok(), "and so are steps of Starlark");
    }
    for default in [
        json!({"max_attempts": 3}),
        json!({"max_attempts": 3, "initial_delay_ms": 200, "max_delay_ms": 10_000, "backoff_multiplier": 2.0,
            "non_retryable_errors": []}),
    ] {
        assert!(world.check(&retry(default.clone())).is_ok(), "{default}");
    }
}

/// SR-224: a function with workflow traits would promise what it does not do.
#[test]
fn functions_have_no_workflow_traits() {
    let traits = workflow()["traits"]["workflow"].clone();
    let document = with(function(), "/traits/workflow", traits);
    assert_eq!(World::new().faults(&document), ["$.traits.workflow not_allowed"]);
}

/// SR-115, SR-116, SR-117, SR-118, SR-234: handlers exist, are active, and take the context.
#[test]
fn handlers_can_do_their_work() {
    let mut world = World::new();
    let path = "$.traits.workflow.compensation.on_failure";
    let handler = world.registry.handler.take();
    assert_eq!(world.faults(&workflow()), [format!("{path} unknown_reference")]);
    for status in DefinitionStatus::ALL {
        world.registry.handler = Some(Handler { status, ..handler.clone().unwrap() });
        match status {
            DefinitionStatus::Active => assert!(world.check(&workflow()).is_ok()),
            _ => assert_eq!(world.faults(&workflow()), [format!("{path} not_allowed")]),
        }
    }
    let reference = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    for (params, fits) in [
        (reference.clone(), true),
        (json!({"allOf": [reference, {"type": "object"}]}), true),
        (json!({"allOf": [reference, {"required": ["order_id"]}]}), false),
        (json!({"$ref": reference["$ref"], "required": ["order_id"]}), false),
        (json!({"type": "object"}), true),
        (json!({"type": "object", "required": ["trigger"]}), true),
        (json!({"type": "object", "required": ["trigger", "order_id"]}), false),
        (json!({"type": "object", "required": ["failed_step_error"]}), false),
        (json!({"type": "object", "properties": {"trigger": {"type": "integer"}}}), false),
        (Value::Null, false),
    ] {
        world.registry.handler = Some(Handler { status: DefinitionStatus::Active, params: params.clone() });
        match world.check(&workflow()) {
            Ok(_) => assert!(fits, "{params}"),
            Err(_) => {
                assert!(!fits, "{params}");
                assert_eq!(world.faults(&workflow()), [format!("{path} incompatible")]);
            }
        }
    }
    // Both handlers are looked at.
    let cancel = with(workflow(), "/traits/workflow/compensation/on_cancel", json!(ROLLBACK));
    assert_eq!(world.faults(&cancel).len(), 2);
}

/// SR-019: schemas are valid ones and refer to what is registered.
#[test]
fn schemas_of_params_and_returns_compile() {
    let mut world = World::new();
    let of = |name: &str, schema: Value| with(minimal(), &format!("/schema/{name}"), schema);
    assert_eq!(world.faults(&of("params", json!({"type": "nope"}))), ["$.schema.params invalid_schema"]);
    assert_eq!(world.faults(&of("returns", json!({"minimum": "x"}))), ["$.schema.returns invalid_schema"]);
    let own = json!({"$ref": "gts://gts.vendor.app.money.v1~"});
    assert_eq!(world.faults(&of("params", own.clone())), ["$.schema.params invalid_schema"]);
    assert_eq!(
        world.faults(&of("params", json!({"$ref": "https://example.com/x"}))),
        ["$.schema.params invalid_schema"]
    );
    assert_eq!(world.faults(&of("params", json!({"$ref": "file:///etc/passwd"}))), ["$.schema.params invalid_schema"]);
    world.types = servo_entrypoint::Types::with_more(std::sync::Arc::new(|id: &str| {
        (id == "gts.vendor.app.money.v1~").then(|| json!({"type": "object", "required": ["amount"]}))
    }));
    let valid = world.check(&of("params", own)).unwrap();
    assert!(valid.compiled.check_params(Some(&json!({"amount": 1}))).is_ok());
    assert!(valid.compiled.check_params(Some(&json!({}))).is_err());
}

/// SR-017: another tenant's or the platform's entrypoint is not registered by just anybody.
#[test]
fn a_definition_belongs_to_the_caller() {
    let mut world = World::new();
    let refused = |world: &World, document: &Value| world.check(document).unwrap_err().error_type_id;
    let other = with(minimal(), "/tenant_id", json!("t_other"));
    assert_eq!(refused(&world, &other), errors::FORBIDDEN);
    let owner = with(minimal(), "/owner/tenant_id", json!("t_other"));
    assert_eq!(refused(&world, &owner), errors::FORBIDDEN);
    let system = with(minimal(), "/owner/owner_type", json!("system"));
    assert_eq!(refused(&world, &system), errors::FORBIDDEN);
    let private = |id: &str| with(with(minimal(), "/owner/owner_type", json!("user")), "/owner/id", json!(id));
    assert_eq!(refused(&world, &private("somebody-else")), errors::FORBIDDEN);
    assert!(world.check(&private(&world.ctx.subject)).is_ok());
    world.ctx = context("t_123", Role::PlatformAdmin);
    assert_eq!(refused(&world, &other), errors::FORBIDDEN, "of which of the two?");
    assert_eq!(world.check(&owner).unwrap().entrypoint.definition.tenant_id, "t_other");
    assert!(world.check(&system).is_ok() && world.check(&private("somebody-else")).is_ok());
    for none in [String::new(), "not a tenant!".to_owned(), "t".repeat(5_000)] {
        let document = with(minimal(), "/owner/tenant_id", json!(none));
        let faults = ["$.owner.tenant_id invalid_format", "$.tenant_id invalid_format"];
        assert_eq!(world.faults(&document), faults, "{none:.20}");
    }
    world.policy.enabled = false;
    assert_eq!(refused(&world, &minimal()), errors::FORBIDDEN);
}

/// SR-364: an address that is taken is a conflict, but only for a definition that is valid.
#[test]
fn a_taken_address_is_a_conflict() {
    let mut world = World::new();
    world.registry.taken = true;
    assert_eq!(world.check(&minimal()).unwrap_err().error_type_id, errors::CONFLICT);
    assert_eq!(world.faults(&without(minimal(), "/title")), ["$.title missing_field"]);
}

/// SR-219: the version of a definition and that of its address are two things.
#[test]
fn versions_are_independent_of_addresses() {
    let address = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.f.v2~";
    let document = with(with(minimal(), "/entrypoint_id", json!(address)), "/version", json!("1.3.0"));
    assert!(World::new().check(&document).is_ok());
}

#[test]
fn a_run_keeps_what_decides_about_it() {
    let world = World::new();
    let mut entrypoint = world.check(&workflow()).unwrap().entrypoint;
    assert_eq!(pin::of(&entrypoint, InvocationMode::Async, "c", 60), None);
    entrypoint.id = Some("ep_1".to_owned());
    let kept = pin::of(&entrypoint, InvocationMode::Async, "c", 60).unwrap();
    assert_eq!((kept.id.as_str(), kept.kind, kept.memory_limit_mb), ("ep_1", EntrypointType::Workflow, 256));
    assert_eq!((kept.on_failure.as_deref(), kept.on_cancel.as_deref()), (Some(ROLLBACK), None));
    assert_eq!((kept.max_suspension_seconds, kept.dead_letter_grace_seconds), (Some(30 * 86_400), 60));
    assert_eq!((kept.retry.max_attempts, kept.retry.backoff_permille), (5, 2_000));
    let mut function = world.check(&function()).unwrap().entrypoint;
    function.id = Some("ep_2".to_owned());
    let kept = pin::of(&function, InvocationMode::Sync, "c", 60).unwrap();
    assert_eq!((kept.on_failure, kept.max_suspension_seconds), (None, None));
}

#[test]
fn an_outline_names_what_to_look_up() {
    let document = workflow();
    let outline = Outline::of(&document);
    assert_eq!(outline.adapter, Some(STARLARK));
    assert_eq!(outline.handlers(), [ROLLBACK]);
    assert_eq!(outline.code.map(|(language, _)| language), Some("starlark"));
    assert_eq!(Outline::of(&json!([1])), Outline::default());
}
