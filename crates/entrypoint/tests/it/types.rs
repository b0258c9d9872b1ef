//! The types of Rust and the JSON that they become.

use serde_json::{Value, json};
use servo_entrypoint::*;
use servo_model::Timestamp;

use crate::support::{FUNCTION, WORKFLOW, example};

fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(value: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(value.clone()).unwrap()).unwrap()
}

fn is_valid(id: &str, instance: &Value) -> bool {
    Types::published().compile_type(id).unwrap().is_valid(instance)
}

/// SR-490: plain strings.
#[test]
fn ids_are_strings() {
    let text = String::from("x");
    let _: (GtsId, EntrypointId, InvocationId) = (text.clone(), text.clone(), text.clone());
    let _: (ScheduleId, TriggerId, TenantId) = (text.clone(), text.clone(), text);
}

/// SR-506: each enum has the words of its schema and no other.
#[test]
fn enums_have_the_published_words() {
    fn words<T: serde::Serialize>(all: &[T]) -> Vec<Value> {
        all.iter().map(|one| serde_json::to_value(one).unwrap()).collect()
    }
    let types = Types::published();
    let schema = |id: &str| types.get(&format!("gts.x.core.serverless.{id}.v1~")).unwrap();
    assert_eq!(Value::from(words(&DefinitionStatus::ALL)), schema("entrypoint")["properties"]["status"]["enum"]);
    assert_eq!(Value::from(words(&OwnerType::ALL)), schema("owner_ref")["properties"]["owner_type"]["enum"]);
    assert_eq!(Value::from(words(&InvocationStatus::ALL)), schema("status")["enum"]);
    assert_eq!(
        Value::from(words(&TimelineEventType::ALL)),
        schema("timeline_event")["properties"]["event_type"]["enum"]
    );
    let kinds: Vec<_> =
        (0..3).map(|at| schema("implementation")["oneOf"][at]["properties"]["kind"]["const"].clone()).collect();
    assert_eq!(words(&ImplementationKind::ALL), kinds);
    use EntrypointStatusAction as A;
    assert_eq!(words(&A::ALL), ["deprecate", "disable", "enable", "activate", "archive"]);
    // Beside the published five, two that name a step.
    let actions = ["cancel", "suspend", "resume", "retry", "replay", "retry_step", "skip_step"];
    assert_eq!(InvocationControlAction::NAMES, actions);
    assert_eq!(
        words(&[UsageGranularity::Hourly, UsageGranularity::Daily, UsageGranularity::Weekly]),
        ["hourly", "daily", "weekly"]
    );
    for event in TimelineEventType::ALL {
        assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
    }
}

/// SR-491: each simple enum has exactly these words, and reads what it writes. A variant that is added here fails to compile.
#[test]
fn simple_enums_have_exactly_their_variants() {
    fn check<T>(all: &[T], word: impl Fn(&T) -> &'static str, expected: &[&str])
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let words: Vec<_> = all.iter().map(&word).collect();
        assert_eq!(words, expected);
        for one in all {
            let written = serde_json::to_value(one).unwrap();
            assert_eq!(written, word(one));
            assert_eq!(serde_json::from_value::<T>(written).unwrap(), *one);
        }
        assert!(serde_json::from_value::<T>(json!("other")).is_err());
    }
    macro_rules! words {
        ($type:ident: $($variant:ident $word:literal),+) => {
            check(
                &[$($type::$variant),+],
                |one| match one { $($type::$variant => $word),+ },
                &[$($word),+],
            )
        };
    }
    words!(DefinitionStatus: Draft "draft", Active "active", Deprecated "deprecated", Disabled "disabled", Archived "archived");
    words!(InvocationMode: Sync "sync", Async "async");
    words!(InvocationStatus: Queued "queued", Running "running", Suspended "suspended", Succeeded "succeeded",
        Failed "failed", Canceled "canceled", Compensating "compensating", Compensated "compensated",
        DeadLettered "dead_lettered");
    words!(ScheduleStatus: Active "active", Paused "paused", Disabled "disabled");
    words!(TriggerStatus: Active "active", Paused "paused", Disabled "disabled");
    words!(MissedSchedulePolicy: Skip "skip", CatchUp "catch_up", Backfill "backfill");
    words!(ImplementationKind: Code "code", WorkflowSpec "workflow_spec", AdapterRef "adapter_ref");
    words!(OwnerType: User "user", Tenant "tenant", System "system");
    words!(CheckpointingStrategy: Automatic "automatic", Manual "manual", Disabled "disabled");
    words!(RuntimeErrorCategory: Retryable "retryable", NonRetryable "non_retryable", ResourceLimit "resource_limit",
        Timeout "timeout", Canceled "canceled");
    words!(UsageGranularity: Hourly "hourly", Daily "daily", Weekly "weekly");
    words!(TimelineEventType: Started "started", StepStarted "step_started", StepCompleted "step_completed",
        StepFailed "step_failed", StepRetried "step_retried", Suspended "suspended", Resumed "resumed",
        SignalReceived "signal_received", CheckpointCreated "checkpoint_created",
        CompensationStarted "compensation_started", CompensationCompleted "compensation_completed",
        CompensationFailed "compensation_failed", Succeeded "succeeded", Failed "failed", Canceled "canceled",
        DeadLettered "dead_lettered");
    let types = Types::published();
    let schema = |id: &str| types.get(&format!("gts.x.core.serverless.{id}.v1~")).unwrap();
    let written = |all: Vec<Value>| Value::from(all);
    let statuses = ScheduleStatus::ALL.map(|one| serde_json::to_value(one).unwrap()).to_vec();
    assert_eq!(written(statuses), schema("schedule")["properties"]["status"]["enum"]);
    let statuses = TriggerStatus::ALL.map(|one| serde_json::to_value(one).unwrap()).to_vec();
    assert_eq!(written(statuses), schema("trigger")["properties"]["status"]["enum"]);
    let policies = MissedSchedulePolicy::ALL.map(|one| serde_json::to_value(one).unwrap()).to_vec();
    assert_eq!(written(policies), schema("schedule")["properties"]["missed_policy"]["enum"]);
}

/// SR-500: schedules and triggers are what their schemas say.
#[test]
fn schedules_and_triggers_match_their_schemas() {
    let (schedule, trigger) = (example("schedule"), example("trigger"));
    assert_eq!(round_trip::<Schedule>(&schedule), schedule);
    let number = |value: &Value| value["dead_letter_queue"]["retry_policy"]["backoff_multiplier"].as_f64();
    let mut written = round_trip::<Trigger>(&trigger);
    assert_eq!(number(&written), number(&trigger), "2 and 2.0 are one number");
    written["dead_letter_queue"]["retry_policy"]["backoff_multiplier"] = json!(2.0);
    assert_eq!(written, trigger);
    let (schedule_id, trigger_id) = ("gts.x.core.serverless.schedule.v1~", "gts.x.core.serverless.trigger.v1~");
    let mut read: Schedule = serde_json::from_value(schedule.clone()).unwrap();
    for expression in
        [ScheduleExpression::Cron("0 * * * *".to_owned()), ScheduleExpression::Interval("PT1H".to_owned())]
    {
        read.expression = expression;
        (read.next_run_at, read.last_run_at) = (None, None);
        assert!(is_valid(schedule_id, &serde_json::to_value(&read).unwrap()));
    }
    for required in ["schedule_id", "tenant_id", "entrypoint_id", "name", "expression", "status"] {
        let mut without = schedule.clone();
        without.as_object_mut().unwrap().remove(required);
        assert!(!is_valid(schedule_id, &without) && serde_json::from_value::<Schedule>(without).is_err(), "{required}");
    }
    for required in ["trigger_id", "tenant_id", "event_type_id", "entrypoint_id", "status"] {
        let mut without = trigger.clone();
        without.as_object_mut().unwrap().remove(required);
        assert!(!is_valid(trigger_id, &without) && serde_json::from_value::<Trigger>(without).is_err(), "{required}");
    }
    for wrong in [json!({"kind": "once", "value": "x"}), json!({"kind": "cron"}), json!({"value": "x"})] {
        assert!(serde_json::from_value::<ScheduleExpression>(wrong.clone()).is_err(), "{wrong}");
    }
    let mut short = schedule;
    for optional in ["timezone", "input_overrides", "missed_policy", "next_run_at", "last_run_at"] {
        short.as_object_mut().unwrap().remove(optional);
    }
    let short: Schedule = serde_json::from_value(short).unwrap();
    assert_eq!((short.timezone.as_str(), short.missed_policy), ("UTC", MissedSchedulePolicy::Skip));
    assert!(short.input_overrides.is_empty() && short.next_run_at.is_none());
    let queue: DeadLetterQueueConfig = serde_json::from_value(json!({})).unwrap();
    assert_eq!(queue, DeadLetterQueueConfig { enabled: true, retry_policy: RetryPolicy::default(), dlq_topic: None });
    let mut plain: Trigger = serde_json::from_value(trigger).unwrap();
    (plain.event_filter_query, plain.dead_letter_queue) = (None, None);
    assert!(is_valid(trigger_id, &serde_json::to_value(&plain).unwrap()), "what is absent stays absent");
}

/// SR-154, SR-504: every published error is an id, a message, a category and details, whoever makes it.
#[test]
fn every_error_carries_its_four_parts() {
    let wait = errors::with_wait(errors::quota_exceeded("q"), 3);
    let made: Vec<RuntimeErrorPayload> = errors::KINDS
        .iter()
        .map(|kind| RuntimeErrorPayload::new(kind.id, kind.category, format!("about {}", kind.title)))
        .chain([wait, errors::rate_limited("t", 5), ValidationError::new(vec![]).into()])
        .chain([errors::not_found("m"), errors::not_active("m"), errors::conflict("m"), errors::forbidden("m")])
        .chain([errors::bad_request("m"), errors::internal("m")])
        .collect();
    for error in made {
        let kind =
            errors::find(&error.error_type_id).unwrap_or_else(|| panic!("{} is not published", error.error_type_id));
        assert_eq!(error.category, kind.category, "{}", kind.id);
        let written = serde_json::to_value(&error).unwrap();
        let names: Vec<_> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["category", "details", "error_type_id", "message"]);
        assert!(gts::Gts::parse(&error.error_type_id).is_ok(), "{}", kind.id);
        assert!(written["message"].as_str().is_some_and(|text| !text.is_empty()) && written["details"].is_object());
    }
}

/// SR-494, SR-495, SR-496, SR-519: definitions come back as they went in, in the form of the schema.
#[test]
fn definitions_round_trip() {
    for (name, kind) in [("function", "function"), ("workflow", "workflow")] {
        let mut document = example(name);
        // What is absent there is written out here.
        document["traits"].as_object_mut().unwrap().entry("rate_limit").or_insert(Value::Null);
        assert_eq!(round_trip::<EntrypointDefinition>(&document), document);
        let id = format!("gts.x.core.serverless.entrypoint.v1~x.core.serverless.{kind}.v1~");
        assert!(is_valid(&id, &round_trip::<EntrypointDefinition>(&document)));
    }
    let definition: EntrypointDefinition = serde_json::from_value(example("function")).unwrap();
    assert_eq!(definition.traits.limits.memory_mb(), 128);
    assert_eq!(definition.traits.limits.cpu(), Some(0.2));
    assert_eq!(definition.implementation.kind(), ImplementationKind::Code);
    assert_eq!(definition.traits.retry.rule().backoff_permille, 2_000);
}

/// SR-082: the payload of the kind must be there.
#[test]
fn an_implementation_needs_the_payload_of_its_kind() {
    let mixed = json!({"adapter": "a", "kind": "code", "adapter_ref": {"definition_id": "x"}});
    assert!(serde_json::from_value::<EntrypointImplementation>(mixed).is_err());
    for value in [
        json!({"adapter": "a", "kind": "workflow_spec", "workflow_spec": {"format": "f", "spec": {"do": []}}}),
        json!({"adapter": "a", "kind": "adapter_ref", "adapter_ref": {"definition_id": "x"}}),
    ] {
        assert_eq!(round_trip::<EntrypointImplementation>(&value), value);
    }
}

/// SR-196, SR-493: unknown members are kept; the type is computed and not stored.
#[test]
fn unknown_members_are_kept() {
    let mut document = example("function");
    document["entrypoint_id"] = FUNCTION.into();
    document["id"] = "ep_1".into();
    document["x_note"] = json!({"a": [1, 2.5]});
    document["traits"]["x_trait"] = json!(1);
    assert_eq!(round_trip::<Entrypoint>(&document), document);
    let entrypoint: Entrypoint = serde_json::from_value(document).unwrap();
    assert_eq!(entrypoint.entrypoint_type(), Some(EntrypointType::Function));
    assert_eq!(entrypoint.definition.extra.keys().collect::<Vec<_>>(), ["x_note"]);
    assert_eq!(EntrypointType::from_gts_id(WORKFLOW), Some(EntrypointType::Workflow));
}

/// SR-236, SR-242, SR-251, SR-252, SR-499: records and timelines are what their schemas say.
#[test]
fn records_match_their_schema() {
    let id = "gts.x.core.serverless.invocation.v1~";
    for record in [example("invocation"), example("invocation_result.dry_run")["record"].clone()] {
        assert_eq!(round_trip::<InvocationRecord>(&record), record);
    }
    let mut record: InvocationRecord = serde_json::from_value(example("invocation")).unwrap();
    for status in InvocationStatus::ALL {
        record.status = status;
        record.error = Some(errors::internal("m"));
        record.observability.trace_id = None;
        assert!(is_valid(id, &serde_json::to_value(&record).unwrap()));
    }
    let failed = serde_json::to_value(&record).unwrap();
    for name in ["error_type_id", "message", "category"] {
        let mut without = failed.clone();
        without["error"].as_object_mut().unwrap().remove(name);
        assert!(!is_valid(id, &without), "an error without {name}");
    }
    record.observability.metrics.memory_limit_mb = 0;
    let unlimited = serde_json::to_value(&record).unwrap();
    assert_eq!(unlimited["observability"]["metrics"]["memory_limit_mb"], json!(0), "no limit is a number, too");
    let result = example("invocation_result.dry_run");
    assert_eq!(round_trip::<InvocationResult>(&result), result);
    for event_type in TimelineEventType::ALL {
        let event = InvocationTimelineEvent {
            at: Timestamp::EPOCH,
            event_type,
            status: InvocationStatus::Running,
            step_name: None,
            duration_ms: Some(1),
            message: None,
            details: serde_json::Map::new(),
        };
        assert!(is_valid("gts.x.core.serverless.timeline_event.v1~", &serde_json::to_value(&event).unwrap()));
    }
}

/// SR-178, SR-523: what is absent reads as empty.
#[test]
fn absent_members_read_as_empty() {
    let event = json!({"at": "2026-01-01T00:00:00Z", "event_type": "started", "status": "running"});
    assert_eq!(serde_json::from_value::<InvocationTimelineEvent>(event).unwrap().details.len(), 0);
    let mut document = example("function");
    document.as_object_mut().unwrap().remove("description");
    assert_eq!(serde_json::from_value::<EntrypointDefinition>(document).unwrap().description, "");
    let error = json!({"error_type_id": "x", "message": "m", "category": "timeout"});
    assert_eq!(serde_json::from_value::<RuntimeErrorPayload>(error).unwrap().details.len(), 0);
}

/// SR-523: the context of a compensation.
#[test]
fn compensation_contexts_match_their_schema() {
    let context = example("compensation_context");
    let mut read: CompensationContext = serde_json::from_value(context).unwrap();
    let id = "gts.x.core.serverless.compensation_context.v1~";
    assert!(is_valid(id, &serde_json::to_value(&read).unwrap()));
    read.trigger = CompensationTrigger::Cancellation;
    read.failed_step_error = None;
    let value = serde_json::to_value(&read).unwrap();
    assert!(is_valid(id, &value) && value.get("failed_step_error").is_none());
}

/// SR-501: policies; what is left out is the platform's.
#[test]
fn policies_match_their_schema() {
    let policy = example("tenant_policy");
    assert_eq!(round_trip::<TenantRuntimePolicy>(&policy), policy);
    let default = TenantRuntimePolicy::platform_default("t_123");
    assert!(is_valid("gts.x.core.serverless.tenant_policy.v1~", &serde_json::to_value(&default).unwrap()));
    let read: TenantRuntimePolicy =
        serde_json::from_value(json!({"tenant_id": "t_123", "enabled": true, "quotas": {}, "retention": {}})).unwrap();
    assert_eq!(read, default);
    // The example is one tenant's policy; where it says nothing else, an entrypoint may have any legal size and time.
    let example: TenantQuotas = serde_json::from_value(policy["quotas"].clone()).unwrap();
    let shipped =
        TenantQuotas { max_memory_per_execution_mb: 10_240, max_execution_duration_seconds: 31_622_400, ..example };
    assert_eq!(read.quotas, shipped);
    let allows = |list: Option<Vec<&str>>| {
        let allowed_runtimes = list.map(|list| list.into_iter().map(str::to_owned).collect());
        TenantPolicies { allowed_runtimes }.allows("a")
    };
    assert!(allows(None) && allows(Some(vec!["b", "a"])) && !allows(Some(vec![])) && !allows(Some(vec!["b"])));
}

/// SR-502: usage and its shares.
#[test]
fn usage_is_a_share_of_the_quotas() {
    let document = example("usage");
    let usage: TenantUsage = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(UsageUtilization::of(&usage.current, &usage.quotas), usage.utilization_percent);
    let written = serde_json::to_value(&usage).unwrap();
    assert_eq!(written["current"], document["current"]);
    assert_eq!(written["utilization_percent"], document["utilization_percent"]);
    assert_eq!(written["quotas"].as_object().unwrap().len(), 8);
    let none = TenantQuotas { max_schedules: 0, max_triggers: 0, ..TenantQuotas::default() };
    let current = UsageMetrics { total_triggers: 1, ..UsageMetrics::default() };
    let share = UsageUtilization::of(&current, &none);
    assert!((share.schedules, share.triggers) == (0.0, 100.0));
}

/// Requests and actions as they are sent.
#[test]
fn requests_read_as_published() {
    let request: InvocationRequest = serde_json::from_value(example("invocation_request")).unwrap();
    assert_eq!((request.mode, request.dry_run), (Some(InvocationMode::Async), false));
    let short: InvocationRequest = serde_json::from_value(json!({"entrypoint_id": "x"})).unwrap();
    assert_eq!((short.mode, short.dry_run, short.params), (None, false, json!({})));
    let action = |value: Value| serde_json::from_value::<InvocationControlAction>(value);
    assert_eq!(action(example("control_action")).unwrap(), InvocationControlAction::Cancel);
    for name in ["suspend", "resume", "retry", "replay"] {
        assert_eq!(action(json!({"action": name})).unwrap().as_str(), name);
    }
    let step = action(json!({"action": "retry_step", "step_id": "s"})).unwrap();
    assert_eq!(step, InvocationControlAction::RetryStep { step_id: "s".to_owned() });
    for wrong in [json!({"action": "pause"}), json!({}), json!({"action": "skip_step"})] {
        assert!(action(wrong.clone()).is_err(), "{wrong}");
    }
    let status: Value = example("status_action");
    assert_eq!(
        EntrypointStatusAction::parse(status["action"].as_str().unwrap()),
        Some(EntrypointStatusAction::Deprecate)
    );
}

/// SR-170, SR-503, SR-522: a validation error travels as an error with its issues in the details.
#[test]
fn validation_errors_travel() {
    let issue = ValidationIssue::new("missing_field", "$.a", "m").suggest("s").at(3, 4);
    let error = ValidationError::new(vec![issue.clone(), ValidationIssue::new("t", "$.b", "n")]);
    let value = serde_json::to_value(&error).unwrap();
    assert!(is_valid(servo_model::invocation::errors::VALIDATION, &value));
    assert_eq!(value["category"], "non_retryable");
    let payload = RuntimeErrorPayload::from(error.clone());
    assert_eq!(payload.details["issues"][0], serde_json::to_value(&issue).unwrap());
    assert_eq!(ValidationError::of(&payload), Some(error));
    assert_eq!(ValidationError::of(&errors::internal("m")), None);
}

/// What the lists do with such filters is shown where they are answered.
#[test]
fn filters_ask_for_no_page_by_default() {
    assert!(!EntrypointListFilter::default().page.is_cut() && !InvocationListFilter::default().page.is_cut());
    assert_eq!(InvocationListFilter::default().page.limit(), 25);
    assert_eq!(PageQuery { limit: Some(1_000), ..PageQuery::default() }.limit(), 200);
    assert_eq!(UsageHistoryFilter::default().granularity, None);
}

/// SR-326: the shape of a list.
#[test]
fn pages_have_the_published_shape() {
    let list = example("list");
    assert_eq!(round_trip::<Page<Value>>(&list), list);
}

/// SR-507: the trait is one that any adapter can stand behind.
#[test]
fn the_traits_are_objects() {
    fn is_object(_: Option<std::sync::Arc<dyn ServerlessRuntime>>, _: Option<Box<dyn RestRuntime>>) {}
    is_object(None, None);
}
