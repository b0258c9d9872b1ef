//! The published interface, through the trait that programs see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_entrypoint::{
    Entrypoint, EntrypointListFilter, EntrypointStatusAction, InvocationControlAction as Action, InvocationListFilter,
    InvocationMode, InvocationRequest, InvocationStatus as S, ServerlessRuntime, TimelineEventType as T, errors,
};

use super::support::{Bed, FUNCTION, caller, definition, me, request};
use crate::executions::handler::{step, succeeded};

/// SR-508, SR-509, SR-520: every method by a trait object; entrypoints are named by their addresses.
#[test]
fn every_method_is_called_through_the_trait() {
    let bed = Bed::new(91);
    bed.function("other", |_| std::future::pending());
    let mut document = definition(FUNCTION, "mine");
    document["implementation"]["adapter_ref"]["definition_id"] = "other".into();
    document["tenant_id"] = "default".into();
    document["status"] = "draft".into();
    let runtime: Arc<dyn ServerlessRuntime> = Arc::new(bed.serverless.clone());
    let told = bed.world.block_on(async move {
        let ctx = me();
        let valid = bed_entrypoint(&document);
        runtime.validate_entrypoint(&ctx, valid.clone()).await.unwrap();
        let address = valid.entrypoint_id.clone();
        assert_eq!(runtime.get_entrypoint(&ctx, &address).await.unwrap_err().error_type_id, errors::NOT_FOUND);
        let registered = runtime.register_entrypoint(&ctx, valid.clone()).await.unwrap();
        assert_eq!(registered.entrypoint_id, address);
        let mut changed = valid;
        changed.definition.title = "Changed".to_owned();
        let updated = runtime.update_entrypoint(&ctx, &address, changed).await.unwrap();
        assert_eq!((updated.definition.title.as_str(), &updated.id), ("Changed", &registered.id));
        let active = runtime.update_entrypoint_status(&ctx, &address, EntrypointStatusAction::Activate).await.unwrap();
        assert_eq!(runtime.get_entrypoint(&ctx, &address).await.unwrap(), active);
        let listed = runtime.list_entrypoints(&ctx, EntrypointListFilter::default()).await.unwrap();
        assert_eq!(listed.len(), 2);
        let started = runtime.start_invocation(&ctx, request(&address, json!({}))).await.unwrap().record;
        let id = started.invocation_id.clone();
        assert_eq!(runtime.get_invocation(&ctx, &id).await.unwrap().invocation_id, id);
        assert_eq!(runtime.list_invocations(&ctx, InvocationListFilter::default()).await.unwrap().len(), 1);
        let cancelled = runtime.control_invocation(&ctx, &id, Action::Cancel).await.unwrap();
        assert_eq!(cancelled.status, S::Canceled);
        let told = runtime.get_invocation_timeline(&ctx, &id).await.unwrap();
        runtime.update_entrypoint_status(&ctx, &address, EntrypointStatusAction::Disable).await.unwrap();
        runtime.delete_entrypoint(&ctx, &address).await.unwrap();
        let status = runtime.get_entrypoint(&ctx, &address).await.unwrap().definition.status;
        assert_eq!(status.as_str(), "archived");
        told
    });
    assert_eq!(told.last().unwrap().event_type, T::Canceled);
}

fn bed_entrypoint(document: &serde_json::Value) -> Entrypoint {
    let mut whole = document.clone();
    whole["description"] = "".into();
    whole["tags"] = json!([]);
    whole["schema"]["errors"] = json!([]);
    whole["traits"]["is_idempotent"] = false.into();
    whole["traits"]["caching"] = json!({"max_age_seconds": 0});
    whole["traits"]["limits"]["max_concurrent"] = 100.into();
    whole["traits"]["retry"] =
        json!({"max_attempts": 3, "initial_delay_ms": 200, "max_delay_ms": 10_000, "backoff_multiplier": 2.0});
    serde_json::from_value(whole).unwrap()
}

/// SR-249, SR-514: each condition of a list restricts it.
#[test]
fn each_condition_finds_its_own() {
    let bed = Bed::new(92);
    let works = bed.function("works", |_| async move { Ok("{}".to_owned()) });
    let hangs = bed.function("hangs", |_| std::future::pending());
    let sync = InvocationRequest { mode: Some(InvocationMode::Sync), ..request(&works, json!({})) };
    let done = bed.start_as(&me(), sync).unwrap().record.invocation_id;
    let running = bed.start_as(&caller("bob", "default"), request(&hangs, json!({}))).unwrap().record.invocation_id;
    bed.until(&running, S::Running);
    let found = |filter: InvocationListFilter| {
        let found = bed.run(|serverless| async move { serverless.list_invocations(&me(), filter).await }).unwrap();
        found.into_iter().map(|record| record.invocation_id).collect::<BTreeSet<_>>()
    };
    let none = InvocationListFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let both = BTreeSet::from([done.clone(), running.clone()]);
    let (first, second) = (BTreeSet::from([done]), BTreeSet::from([running]));
    assert_eq!(found(none()), both);
    for (filter, expected) in [
        (InvocationListFilter { tenant_id: text("default"), ..none() }, &both),
        (InvocationListFilter { tenant_id: text("other"), ..none() }, &BTreeSet::new()),
        (InvocationListFilter { entrypoint_id: Some(works.clone()), ..none() }, &first),
        (InvocationListFilter { entrypoint_id: text("gts.none"), ..none() }, &BTreeSet::new()),
        (InvocationListFilter { status: Some(S::Running), ..none() }, &second),
        (InvocationListFilter { mode: Some(InvocationMode::Sync), ..none() }, &first),
        (InvocationListFilter { correlation_id: text("c-bob"), ..none() }, &second),
        (InvocationListFilter { correlation_id: text("c-ada"), ..none() }, &first),
    ] {
        assert_eq!(found(filter.clone()), *expected, "{filter:?}");
    }
}

/// SR-195: a draft's change is seen in its times, and the time of its making stays.
#[test]
fn a_change_moves_one_of_two_times() {
    let bed = Bed::new(93);
    bed.functions.define_as(
        &bed.world,
        "f",
        &servo_model::function::FunctionSpec {
            durable: false,
            ..servo_model::function::FunctionSpec::new(servo_model::function::Reach::InProcess)
        },
        |_| async move { Ok("{}".to_owned()) },
    );
    let mut document = definition(FUNCTION, "f");
    let made = bed.register(&document).unwrap();
    bed.world.pass(Duration::from_secs(5));
    document["title"] = "Other".into();
    document["created_at"] = "2001-01-01T00:00:00.000Z".into();
    let id = made.id.clone().unwrap();
    let changed = bed.run(|serverless| async move {
        use servo_entrypoint::RestRuntime as _;
        serverless.update_registration(&me(), &id, document).await.unwrap()
    });
    assert_eq!(changed.definition.created_at, made.definition.created_at);
    assert!(changed.definition.updated_at > made.definition.updated_at);
}

/// SR-176, SR-247: steps are named in the timeline, and a record has all its metrics.
#[test]
fn steps_are_named_and_runs_measured() {
    let bed = Bed::new(94);
    let address = bed.workflow("w", |invocation| async move {
        let named = |action| {
            let mut update = step("1", action);
            update.name = Some("reserve".to_owned());
            update
        };
        use servo_model::operation::OperationAction as A;
        invocation.checkpoint(vec![named(A::Start), named(A::Succeed)]).await.unwrap();
        succeeded("{}")
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let record = bed.until(&id, S::Succeeded);
    let metrics = serde_json::to_value(record.observability.metrics).unwrap();
    let names: Vec<&String> = metrics.as_object().unwrap().keys().collect();
    let expected =
        ["billed_duration_ms", "cpu_time_ms", "duration_ms", "max_memory_used_mb", "memory_limit_mb", "step_count"];
    assert_eq!(BTreeSet::from_iter(names.into_iter().map(String::as_str)), BTreeSet::from(expected));
    assert!(metrics.as_object().unwrap().values().all(|value| value.is_null() || value.is_u64()), "{metrics}");
    assert!(metrics["duration_ms"].is_u64() && metrics["step_count"] == 1, "{metrics}");
    let told = bed.run(|serverless| async move { serverless.get_invocation_timeline(&me(), &id).await }).unwrap();
    let steps = told.iter().filter(|event| event.step_name.is_some()).count();
    assert_eq!(steps, 2, "begun and ended");
    for event in told {
        let is_step = event.event_type.as_str().starts_with("step_");
        assert_eq!(event.step_name.as_deref(), is_step.then_some("reserve"), "{event:?}");
    }
}
