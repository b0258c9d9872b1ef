//! Runs that are undone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use servo_adapter::{FailureKind, HandlerFailure};
use servo_entrypoint::{
    CompensationContext, EntrypointStatusAction, InvocationControlAction as Action, InvocationStatus as S,
    RestRuntime as _, RuntimeErrorCategory, ServerlessRuntime as _, TimelineEventType as T, errors,
};
use servo_model::invocation::{CompensationTrigger, Failure};
use servo_model::operation::{ChainedInvokeOptions, OperationAction as A, OperationType, OperationUpdate, WaitOptions};

use super::support::{Bed, FUNCTION, WORKFLOW, awaits, definition, me};
use crate::executions::handler::{Answer, pending, step};

type Seen = Arc<Mutex<Vec<Value>>>;

/// A handler that notes what it is started with.
pub(super) fn handler(bed: &Bed, name: &str, succeeds: bool) -> (String, Seen) {
    handler_of(bed, name, succeeds, None)
}

/// The same, of an owner.
pub(super) fn handler_of(bed: &Bed, name: &str, succeeds: bool, owner: Option<&Value>) -> (String, Seen) {
    let seen: Seen = Arc::default();
    let notes = seen.clone();
    let context = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    let address = bed.entrypoint(
        FUNCTION,
        name,
        |document| {
            document["schema"]["params"] = context;
            owned_by(document, owner);
        },
        move |call| {
            notes.lock().unwrap().push(serde_json::from_str(&call.call.payload).unwrap());
            async move {
                let failure = Failure::new(errors::EXECUTION, RuntimeErrorCategory::NonRetryable, "cannot undo");
                if succeeds {
                    Ok("{}".to_owned())
                } else {
                    Err(HandlerFailure::new(FailureKind::Failed, failure.to_error()))
                }
            }
        },
    );
    (address, seen)
}

fn owned_by(document: &mut Value, owner: Option<&Value>) {
    if let Some(owner) = owner {
        document["owner"] = owner.clone();
    }
}

fn named(id: &str, name: &str, action: A) -> OperationUpdate {
    let mut update = step(id, action);
    update.name = Some(name.to_owned());
    if action == A::Fail {
        update.error = Some(Failure::new(errors::EXECUTION, RuntimeErrorCategory::NonRetryable, "no stock").to_error());
    }
    update
}

fn failed(message: &str) -> Answer {
    Ok(json!({"Status": "FAILED", "Error": {"ErrorType": "NoStock", "ErrorMessage": message}}).to_string())
}

/// Reserves, then fails to ship.
pub(super) fn order(bed: &Bed, name: &str, on_failure: &str) -> String {
    order_of(bed, name, on_failure, None)
}

/// The same, of an owner.
pub(super) fn order_of(bed: &Bed, name: &str, on_failure: &str, owner: Option<&Value>) -> String {
    bed.entrypoint(
        WORKFLOW,
        name,
        |document| {
            document["traits"]["workflow"]["compensation"]["on_failure"] = on_failure.into();
            owned_by(document, owner);
        },
        |invocation| async move {
            invocation
                .checkpoint(vec![named("a", "reserve", A::Start), named("a", "reserve", A::Succeed)])
                .await
                .unwrap();
            invocation.checkpoint(vec![named("b", "ship", A::Start), named("b", "ship", A::Fail)]).await.unwrap();
            failed("no stock")
        },
    )
}

/// SR-103, SR-105, SR-106, SR-107, SR-108, SR-110, SR-111, SR-114, SR-135, SR-138, SR-183, SR-185, SR-231: the handler gets the whole context, as a run of its own.
#[test]
fn a_failed_workflow_is_undone() {
    let bed = Bed::new(21);
    let (undo, seen) = handler(&bed, "rollback", true);
    let address = order(&bed, "process", &undo);
    let id = bed.start(&address, json!({"order_id": "o7"})).unwrap().record.invocation_id;
    let record = bed.until(&id, S::Compensated);
    assert_eq!(record.error.unwrap().message, "no stock");
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 1);
    let context: CompensationContext = serde_json::from_value(seen[0].clone()).unwrap();
    assert_eq!(context.trigger, CompensationTrigger::Failure);
    assert_eq!(context.original_workflow_invocation_id, id);
    assert_eq!(context.failed_step_id, "ship");
    assert_eq!(context.failed_step_error.unwrap().message, "no stock");
    assert_eq!(Value::Object(context.workflow_state_snapshot), json!({"reserve": 1}));
    assert_eq!(context.invocation_metadata.entrypoint_id, address);
    assert_eq!(Value::Object(context.invocation_metadata.original_input), json!({"order_id": "o7"}));
    assert_eq!(context.invocation_metadata.tenant_id, "default");
    assert_eq!(context.invocation_metadata.correlation_id.as_deref(), Some("c-ada"));
    assert!(context.invocation_metadata.started_at.is_some());
    let told = bed.told(&id);
    let ends =
        [(T::Failed, S::Failed), (T::CompensationStarted, S::Compensating), (T::CompensationCompleted, S::Compensated)];
    assert!(told.ends_with(&ends), "{told:?}");
}

/// What a handler is told of a workflow that makes these updates, one checkpoint each, and fails with this message.
fn told_of(seed: u64, updates: &[OperationUpdate], message: &'static str) -> CompensationContext {
    let bed = Bed::new(seed);
    let (undo, seen) = handler(&bed, "rollback", true);
    let updates = updates.to_vec();
    let address = bed.entrypoint(
        WORKFLOW,
        "process",
        |document| document["traits"]["workflow"]["compensation"]["on_failure"] = undo.into(),
        move |invocation| {
            let updates = updates.clone();
            async move {
                for update in updates {
                    invocation.checkpoint(vec![update]).await.unwrap();
                    invocation.executions.engine().clock().sleep(Duration::from_millis(1)).await;
                }
                failed(message)
            }
        },
    );
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Compensated);
    let context = seen.lock().unwrap()[0].clone();
    serde_json::from_value(context).unwrap()
}

/// SR-111: steps that share a name have all their results in the context, in order; text that is no JSON stays text.
#[test]
fn the_snapshot_loses_no_result() {
    let done = |id: &str, name: &str, result: &str| {
        let mut update = named(id, name, A::Succeed);
        update.payload = Some(result.to_owned());
        [named(id, name, A::Start), update]
    };
    let updates = [
        done("a", "charge", r#"{"txn":"a"}"#),
        done("b", "reserve", "[1,2]"),
        done("c", "charge", r#"{"txn":"c"}"#),
        done("d", "charge", "null"),
        done("e", "label", "not json"),
    ];
    let context = told_of(29, &updates.concat(), "no stock");
    let expected = json!({
        "charge": [{"txn": "a"}, {"txn": "c"}, null],
        "reserve": [1, 2],
        "label": "not json",
    });
    assert_eq!(Value::Object(context.workflow_state_snapshot), expected);
}

/// SR-108: a failure that the workflow has lived through is not what has failed it; where no step has, it is the last begun.
#[test]
fn the_failed_step_is_the_one_that_failed_the_run() {
    let done = |name: &str| vec![named(name, name, A::Start), named(name, name, A::Succeed)];
    let fails = |name: &str| vec![named(name, name, A::Start), named(name, name, A::Fail)];
    let open = |name: &str| vec![named(name, name, A::Start)];
    let rows: [(Vec<Vec<OperationUpdate>>, &str, &str); 7] = [
        (vec![done("a"), fails("b")], "no stock", "b"),
        (vec![fails("try"), done("use"), done("charge")], "customer vanished", "charge"),
        (vec![fails("try"), done("charge")], "no stock", "charge"),
        (vec![done("a"), fails("try")], "wrapped in another error", "try"),
        (vec![fails("try"), done("a"), open("ship")], "crashed", "ship"),
        // Side by side: `late` was begun before `bad` had failed.
        (vec![open("bad"), open("late"), vec![named("bad", "bad", A::Fail)]], "no stock", "bad"),
        (vec![], "no stock", "unknown"),
    ];
    for (number, (updates, message, expected)) in rows.into_iter().enumerate() {
        let context = told_of(30, &updates.concat(), message);
        assert_eq!(context.failed_step_id, expected, "row {number}");
    }
}

/// SR-119, SR-139, SR-185: a handler that fails, or cannot be called any more, leaves a dead letter.
#[test]
fn what_cannot_be_undone_is_a_dead_letter() {
    for disabled in [false, true] {
        let bed = Bed::new(22);
        let (undo, _) = handler(&bed, "rollback", false);
        let address = order(&bed, "process", &undo);
        if disabled {
            bed.act(&undo, EntrypointStatusAction::Disable).unwrap();
        }
        let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
        bed.until(&id, S::DeadLettered);
        let told = bed.told(&id);
        let ends = [
            (T::CompensationStarted, S::Compensating),
            (T::CompensationFailed, S::Compensating),
            (T::DeadLettered, S::DeadLettered),
        ];
        assert!(told.ends_with(&ends), "{told:?}");
        assert_eq!(bed.control(&id, Action::Cancel).unwrap_err().error_type_id, errors::CONFLICT);
    }
}

/// SR-139, R22: a context that is too large for the log will never fit. The dead letter names the limit.
#[test]
fn what_is_too_large_to_undo_is_a_dead_letter() {
    let bed = Bed::new(28);
    let (undo, seen) = handler(&bed, "rollback", true);
    let address = bed.entrypoint(
        WORKFLOW,
        "large",
        |document| document["traits"]["workflow"]["compensation"]["on_failure"] = undo.into(),
        |invocation| async move {
            for number in 0..14 {
                let id = format!("s{number}");
                let mut done = step(&id, A::Succeed);
                done.payload = Some(format!("\"{}\"", "x".repeat(1024 * 1024 - 2)));
                invocation.checkpoint(vec![step(&id, A::Start), done]).await.unwrap();
            }
            failed("no stock")
        },
    );
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::DeadLettered);
    let asked = id.clone();
    let told = bed.run(|serverless| async move { serverless.get_invocation_timeline(&me(), &asked).await }).unwrap();
    let failed = told.iter().find(|event| event.event_type == T::CompensationFailed).unwrap();
    let message = failed.message.clone().unwrap();
    assert!(message.contains("an event's payload exceeds the limit of"), "{message}");
    assert!(seen.lock().unwrap().is_empty());
}

/// SR-119, ADR 10: undoing asks neither the handler's rate limit nor the tenant's quota.
#[test]
fn a_tenant_at_its_limits_takes_back_what_it_has_done() {
    let bed = Bed::with(29, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let seen: Seen = Arc::default();
    let notes = seen.clone();
    let undo = bed.entrypoint(
        FUNCTION,
        "rollback",
        |document| {
            document["schema"]["params"] = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
            document["traits"]["rate_limit"] = json!({
                "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
                "config": {"max_requests_per_minute": 1},
            });
        },
        move |call| {
            notes.lock().unwrap().push(serde_json::from_str(&call.call.payload).unwrap());
            async move { Ok("{}".to_owned()) }
        },
    );
    let address = bed.entrypoint(
        WORKFLOW,
        "process",
        |document| document["traits"]["workflow"]["compensation"]["on_failure"] = undo.clone().into(),
        |invocation| async move {
            if invocation.known("s").is_none() {
                invocation.checkpoint(vec![awaits("go")]).await.unwrap();
                return pending();
            }
            failed("no stock")
        },
    );
    let hangs = bed.function("hangs", |_| std::future::pending());
    let suspended = || {
        let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
        bed.until(&id, S::Suspended);
        id
    };
    let first = suspended();
    bed.signal(&first, "m", "go", json!({})).unwrap();
    bed.until(&first, S::Compensated);
    let context = seen.lock().unwrap()[0].clone();
    let second = suspended();
    // The handler's only call of this minute, and the tenant's only place.
    let call = bed.start(&undo, context.clone()).unwrap().record.invocation_id;
    bed.until(&call, S::Succeeded);
    assert_eq!(bed.start(&undo, context.clone()).unwrap_err().error_type_id, errors::RATE_LIMITED);
    bed.start(&hangs, json!({})).unwrap();
    assert_eq!(bed.start(&hangs, json!({})).unwrap_err().error_type_id, errors::QUOTA_EXCEEDED);
    bed.signal(&second, "m", "go", json!({})).unwrap();
    bed.until(&second, S::Compensated);
    assert_eq!(bed.start(&undo, context).unwrap_err().error_type_id, errors::RATE_LIMITED, "it is still at its limit");
    assert_eq!(bed.start(&hangs, json!({})).unwrap_err().error_type_id, errors::QUOTA_EXCEEDED);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// SR-106, SR-108, SR-109, SR-137, SR-150: a cancel is undone by its own handler, without an error in the context.
#[test]
fn a_cancelled_workflow_is_undone_by_its_own_handler() {
    let bed = Bed::new(23);
    let (undo, seen) = handler(&bed, "undo", true);
    let address = bed.entrypoint(
        WORKFLOW,
        "waits",
        |document| document["traits"]["workflow"]["compensation"]["on_cancel"] = undo.into(),
        |invocation| async move {
            let mut wait = OperationUpdate::new("w", OperationType::Wait, A::Start);
            wait.wait_options = Some(WaitOptions { wait_seconds: Some(3_600) });
            let after = vec![wait, named("n", "note", A::Start), named("n", "note", A::Succeed)];
            invocation.checkpoint(after).await.unwrap();
            pending()
        },
    );
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    assert_eq!(bed.control(&id, Action::Cancel).unwrap().status, S::Compensating);
    bed.until(&id, S::Compensated);
    let context = seen.lock().unwrap()[0].clone();
    assert_eq!(context["trigger"], "cancellation");
    assert!(context.get("failed_step_error").is_none());
    assert_eq!(context["failed_step_id"], "w", "what was active, whatever was begun later");
    assert_eq!(context["workflow_state_snapshot"], json!({"note": 1}));
}

/// SR-115, SR-116, SR-117, SR-118: handlers are there, active, and take the context, when a workflow is registered and when its
/// draft is changed.
#[test]
fn handlers_are_checked_when_a_workflow_is_registered() {
    let bed = Bed::new(24);
    let unfit = bed.entrypoint(
        FUNCTION,
        "unfit",
        |document| document["schema"]["params"] = json!({"type": "object", "required": ["order"]}),
        |_| async move { Ok("{}".to_owned()) },
    );
    let (draft, _) = handler(&bed, "fit", true);
    bed.act(&draft, EntrypointStatusAction::Deprecate).unwrap();
    let missing = format!("{FUNCTION}vendor.app.missing.v1~");
    bed.functions.define(&bed.world, "w", |_| async move { pending() });
    let mut unchanged = definition(WORKFLOW, "w");
    unchanged["traits"]["workflow"]["compensation"]["on_failure"] = Value::Null;
    let registered = bed.register(&unchanged).unwrap().id.unwrap();
    for handler in [unfit, draft, missing] {
        let mut document = definition(WORKFLOW, "w");
        document["traits"]["workflow"]["compensation"]["on_failure"] = handler.clone().into();
        let changed = (registered.clone(), document.clone());
        let put =
            bed.run(|serverless| async move { serverless.update_registration(&me(), &changed.0, changed.1).await });
        document["entrypoint_id"] = format!("{WORKFLOW}vendor.app.other.v1~").into();
        for failure in [bed.register(&document).unwrap_err(), put.unwrap_err()] {
            assert_eq!(failure.error_type_id, errors::VALIDATION, "{handler}");
            let issues = failure.details["issues"].as_array().unwrap();
            assert_eq!(issues[0]["location"]["path"], "$.traits.workflow.compensation.on_failure", "{issues:?}");
        }
    }
}

/// Who started the run is who undoes it: a handler that belongs to somebody else is not there for it.
#[test]
fn a_handler_of_somebody_else_is_not_called() {
    let bed = Bed::new(25);
    let seen: Seen = Arc::default();
    let notes = seen.clone();
    let undo = bed.entrypoint(
        FUNCTION,
        "private",
        |document| {
            document["schema"]["params"] = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
            document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"});
        },
        move |call| {
            notes.lock().unwrap().push(serde_json::from_str(&call.call.payload).unwrap());
            async move { Ok("{}".to_owned()) }
        },
    );
    let address = order(&bed, "process", &undo);
    let bob = super::support::caller("bob", "default");
    let id = bed.start_as(&bob, super::support::request(&address, json!({}))).unwrap().record.invocation_id;
    bed.until(&id, S::DeadLettered);
    assert!(seen.lock().unwrap().is_empty());
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Compensated);
}

/// SR-098: without a handler nothing is undone.
#[test]
fn nothing_is_undone_without_a_handler() {
    let bed = Bed::new(26);
    let address = bed.entrypoint(
        WORKFLOW,
        "plain",
        |document| {
            document["traits"]["workflow"]["compensation"] = json!({"on_failure": null, "on_cancel": null});
        },
        |invocation| async move {
            let input = &invocation.input.initial_execution_state.operations[0];
            let input = input.execution_details.as_ref().and_then(|details| details.input_payload.clone());
            if input.is_some_and(|input| input.contains("hang")) { std::future::pending().await } else { failed("no") }
        },
    );
    let failing = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&failing, S::Failed);
    let hanging = bed.start(&address, json!({"do": "hang"})).unwrap().record.invocation_id;
    bed.until(&hanging, S::Running);
    assert_eq!(bed.control(&hanging, Action::Cancel).unwrap().status, S::Canceled);
    bed.world.pass(Duration::from_secs(5));
    for (id, status) in [(failing, S::Failed), (hanging, S::Canceled)] {
        assert_eq!(bed.get(&id).status, status);
        assert!(!bed.timeline(&id).contains(&T::CompensationStarted));
    }
}

/// SR-099, SR-104, SR-112, SR-113, SR-120: a handler of either kind is a run like any other, with a record of its own; a run
/// without input or checkpoint has empty ones in the context.
#[test]
fn a_handler_of_either_kind_is_a_run_of_its_own() {
    let bed = Bed::new(27);
    let context = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    for (kind, name) in [(FUNCTION, "undo-f"), (WORKFLOW, "undo-w")] {
        let takes = context.clone();
        let undo = bed.entrypoint(
            kind,
            &name.replace('-', "_"),
            |document| document["schema"]["params"] = takes,
            move |_| async move {
                if kind == WORKFLOW { crate::executions::handler::succeeded("{}") } else { Ok("{}".to_owned()) }
            },
        );
        let address = bed.entrypoint(
            WORKFLOW,
            &format!("order_{}", &name[5..]),
            |document| {
                document["schema"]["params"] = Value::Null;
                document["traits"]["workflow"]["compensation"]["on_failure"] = undo.clone().into();
            },
            |_| async move { failed("no stock") },
        );
        let before = bed.world.now();
        let id = bed.start(&address, Value::Null).unwrap().record.invocation_id;
        bed.until(&id, S::Compensated);
        let filter = servo_entrypoint::InvocationListFilter {
            entrypoint_id: Some(undo.clone()),
            ..servo_entrypoint::InvocationListFilter::default()
        };
        use servo_entrypoint::ServerlessRuntime as _;
        let me = me();
        let found = bed.run(|serverless| async move { serverless.list_invocations(&me, filter).await }).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        assert_ne!(found[0].invocation_id, id);
        assert_eq!((found[0].entrypoint_id.as_str(), found[0].status), (undo.as_str(), S::Succeeded));
        let context: CompensationContext = serde_json::from_value(found[0].params.clone()).unwrap();
        assert!(context.workflow_state_snapshot.is_empty());
        assert_eq!(Value::Object(context.invocation_metadata.original_input), json!({}));
        assert!(before <= context.timestamp && context.timestamp <= bed.world.now());
    }
}

/// SR-535: who started a run is known to whatever runs for it: its handler, each time it is invoked, what it calls, and what
/// undoes it.
#[test]
fn the_caller_is_known_wherever_its_run_goes() {
    let bed = Bed::new(28);
    let (undo, _) = handler(&bed, "rollback", true);
    let callee = bed.function("callee", |_| async move { Ok("{}".to_owned()) });
    let address = bed.entrypoint(
        WORKFLOW,
        "caller",
        |document| document["traits"]["workflow"]["compensation"]["on_failure"] = undo.clone().into(),
        move |invocation| {
            let callee = callee.clone();
            async move {
                if invocation.known("c").is_none() {
                    let mut call = OperationUpdate::new("c", OperationType::ChainedInvoke, A::Start);
                    call.chained_invoke_options =
                        Some(ChainedInvokeOptions { function_name: callee, ..Default::default() });
                    call.payload = Some("{}".to_owned());
                    invocation.checkpoint(vec![call]).await.unwrap();
                    return pending();
                }
                failed("no stock")
            }
        },
    );
    let bob = super::support::caller("bob", "default");
    let id = bed.start_as(&bob, super::support::request(&address, json!({}))).unwrap().record.invocation_id;
    bed.until(&id, S::Compensated);
    let calls = bed.functions.calls.lock().unwrap().clone();
    let seen: Vec<_> =
        calls.iter().map(|call| (call.function.as_str(), call.tenant.as_str(), call.subject.as_deref())).collect();
    let of_bob = |function: &'static str| (function, "default", Some("bob"));
    assert_eq!(seen, ["caller", "callee", "caller", "rollback"].map(of_bob));
}

/// What undoes a run belongs to its family, and is not cancelled by what has cancelled that run; what the run has started is.
#[test]
fn a_cancelled_family_is_undone() {
    let bed = Bed::new(31);
    let waits = |name: &'static str| {
        move |invocation: Arc<crate::executions::handler::Invocation>| async move {
            match invocation.known("s") {
                None => {
                    invocation.checkpoint(vec![awaits(name)]).await.unwrap();
                    pending()
                }
                Some(_) => Ok(json!({"Status": "SUCCEEDED", "Result": "{}"}).to_string()),
            }
        }
    };
    let context = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    let undo = bed.entrypoint(WORKFLOW, "undo", |document| document["schema"]["params"] = context, waits("undone"));
    let child = bed.workflow("child", waits("never"));
    let address = bed.entrypoint(
        WORKFLOW,
        "parent",
        |document| document["traits"]["workflow"]["compensation"]["on_cancel"] = undo.clone().into(),
        move |invocation| {
            let child = child.clone();
            async move {
                if invocation.known("c").is_none() {
                    invocation.checkpoint(vec![super::calls::calls("c", &child)]).await.unwrap();
                }
                pending()
            }
        },
    );
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let below = || {
        let rows = bed.world.rows().into_iter();
        rows.filter(|row| row.root.as_ref().is_some_and(|root| root.as_str() == id)).collect::<Vec<_>>()
    };
    bed.world.wait_until("the child waits", || below().iter().any(|row| row.visible == S::Suspended));
    bed.control(&id, Action::Cancel).unwrap();
    bed.world.wait_until("the child is cancelled", || below().iter().any(|row| row.visible == S::Canceled));
    let undoing = || below().into_iter().find(|row| row.visible != S::Canceled);
    bed.world.wait_until("it is being undone", || undoing().is_some_and(|row| row.visible == S::Suspended));
    bed.world.pass(Duration::from_secs(60));
    let undoing = undoing().unwrap().run_id;
    assert_eq!((below().len(), bed.get(undoing.as_str()).status), (2, S::Suspended));
    let signal = servo_machine::SignalKind::Message { name: "undone".to_owned(), payload: None };
    bed.world.signal(bed.node(), &undoing, "go", signal).unwrap();
    bed.until(&id, S::Compensated);
}
