//! Sagas under every crash: what succeeded is undone, newest first, once, and nothing else is.

use std::sync::{Arc, Mutex};

use servo_sdk::{ContextConfig, DurableContext, DurableError, Duration, Saga, StepConfig};
use servo_sdk_testkit::{Kit, Outcome};
use servo_wire::lambda::ExecutionStatus;

/// The last part fails for the destination "nowhere", and panics for "the edge".
async fn travel(to: &str, saga: &mut Saga<'_>) -> Result<Vec<String>, DurableError> {
    let room: String = saga
        .step(|_| Ok("room".to_owned()), StepConfig::named("room"))
        .undo(|_, room| says(&room, "room"), None)
        .await?;
    saga.context().wait(Duration::from_days(2), Some("thinking")).await?;
    let undo_seat = StepConfig::named("return the seat").retry_every(2, Duration::from_seconds(3));
    let seat: String = saga
        .step(async |_| Ok("seat".to_owned()), StepConfig::named("seat"))
        .undo(async |_, seat: String| says(&seat, "seat"), undo_seat)
        .await?;
    let visa: u32 = saga.context().step(|_| Ok(7), StepConfig::named("visa")).await?;
    saga.on_failure("give the visa back", move |_| says(&visa.to_string(), "7"), None);
    // Nothing undoes a look at the weather.
    let weather: String = saga.step(|_| Ok("sun".to_owned()), StepConfig::named("weather")).await?;
    assert_ne!(to, "the edge", "there is no way on");
    let to = to.to_owned();
    let goes = move |_| if to == "nowhere" { Err("there is no such place".into()) } else { Ok(to) };
    let to: String =
        saga.step(goes, StepConfig::named("go").no_retry()).undo(|_, _| Err("unreachable".into()), None).await?;
    Ok(vec![room, seat, weather, to])
}

fn says(value: &str, expected: &str) -> Result<(), servo_sdk::BoxError> {
    if value == expected { Ok(()) } else { Err(format!("undo of {expected} was given {value}").into()) }
}

async fn trip(to: String, ctx: DurableContext) -> Result<Vec<String>, DurableError> {
    let body = async |mut saga: Saga<'_>| Ok(travel(&to, &mut saga).await?);
    let outcome = ctx.saga(body, ContextConfig::named("trip")).await;
    // The handler lives on after the saga, and is replayed over its end.
    ctx.wait(Duration::from_hours(1), Some("afterwards")).await?;
    ctx.step(|_| Ok(()), StepConfig::named("tell")).await?;
    outcome
}

fn names(outcome: &Outcome) -> Vec<&str> {
    let not_names = ["thinking", "afterwards", "trip", "tell"];
    let names = outcome.operations.iter().filter_map(|operation| operation.name.as_deref());
    names.filter(|name| !not_names.contains(name)).collect()
}

fn kit() -> Kit {
    Kit::new().handler("trip", trip)
}

const DONE: [&str; 5] = ["room", "seat", "visa", "weather", "go"];
const UNDONE: [&str; 8] =
    ["room", "seat", "visa", "weather", "go", "give the visa back", "return the seat", "undo room"];

#[test]
fn what_succeeds_is_not_undone() {
    for (n, when, outcome) in kit().run_with_every_crash("trip", "the sea") {
        assert_eq!(outcome.value::<Vec<String>>(), ["room", "seat", "sun", "the sea"], "{when:?} {n}");
        assert_eq!(names(&outcome), DONE, "{when:?} {n}");
        assert!(outcome.reruns.is_empty(), "{when:?} {n}");
    }
}

#[test]
fn what_fails_is_undone_newest_first_whenever_the_program_dies() {
    for kit in [kit(), kit().evict(), kit().fail_step("return the seat", 1, "closed").fail_step("undo room", 1, "too")]
    {
        let crashed = kit.run_with_every_crash("trip", "nowhere");
        assert!(crashed.len() >= 20, "{} crashes", crashed.len());
        for (n, when, outcome) in crashed {
            let error = outcome.error.as_ref().and_then(|error| error.error_message.as_deref());
            assert_eq!(error, Some("there is no such place"), "{when:?} {n}");
            assert_eq!(names(&outcome), UNDONE, "{when:?} {n}");
            assert!(outcome.reruns.is_empty(), "{when:?} {n}");
            assert!(outcome.attempts.values().all(|count| *count <= 2), "{when:?} {n}: {:?}", outcome.attempts);
        }
    }
}

/// The control of the above: only a body that died before its outcome was recorded runs again.
#[test]
fn without_crashes_everything_runs_once() {
    let outcome = kit().run("trip", "nowhere");
    assert_eq!(outcome.attempts.len(), UNDONE.len() + 1, "{:?}", outcome.attempts);
    assert!(outcome.attempts.values().all(|count| *count == 1), "{:?}", outcome.attempts);
}

#[test]
fn a_panic_is_undone_too() {
    for (n, when, outcome) in kit().run_with_every_crash("trip", "the edge") {
        assert_eq!(outcome.status, ExecutionStatus::Failed, "{when:?} {n}");
        assert_eq!(outcome.error.as_ref().and_then(|error| error.error_type.as_deref()), Some("Panic"), "{when:?} {n}");
        let undone: Vec<&str> = UNDONE.into_iter().filter(|name| *name != "go").collect();
        assert_eq!(names(&outcome), undone, "{when:?} {n}");
    }
}

#[test]
fn an_undo_that_fails_keeps_no_other_from_running() {
    let kit = kit().fail_step("return the seat", 1, "closed").fail_step("return the seat", 2, "still closed");
    for (n, when, outcome) in kit.run_with_every_crash("trip", "nowhere") {
        let error = outcome.error.clone().unwrap();
        assert_eq!(error.error_type.as_deref(), Some("SagaUndoError"), "{when:?} {n}");
        let message = "there is no such place; not undone: return the seat: still closed";
        assert_eq!(error.error_message.as_deref(), Some(message), "{when:?} {n}");
        assert_eq!(names(&outcome), UNDONE, "{when:?} {n}");
    }
}

/// A part that fails in the middle undoes what was before it, and a saga in a branch undoes its own.
#[test]
fn sagas_of_branches_are_apart() {
    async fn many(numbers: Vec<u32>, ctx: DurableContext) -> Result<Vec<u32>, DurableError> {
        let item = async |ctx: DurableContext, number: u32, _: usize| {
            let body = async move |mut saga: Saga<'_>| {
                let done: u32 = saga.step(move |_| Ok(number), None).undo(|_, _| Ok(()), None).await?;
                let odd = move |_| if number % 2 == 1 { Err("odd".into()) } else { Ok(()) };
                let () = saga.step(odd, StepConfig::named("even").no_retry()).await?;
                Ok(done)
            };
            Ok(ctx.saga(body, None).await?)
        };
        let batch = ctx.map(numbers, item, None).await?;
        Ok(batch.items.into_iter().filter_map(|item| item.result).collect())
    }
    for (n, when, outcome) in Kit::new().handler("many", many).run_with_every_crash("many", [1, 2, 3, 4]) {
        assert_eq!(outcome.value::<Vec<u32>>(), [2, 4], "{when:?} {n}");
        assert_eq!(outcome.operations_named("undo step").count(), 2, "{when:?} {n}");
    }
}

/// What undoes may borrow from the handler.
#[test]
fn undoing_borrows_from_the_handler() {
    async fn handler(log: Arc<Mutex<Vec<String>>>, ctx: DurableContext) -> Result<(), DurableError> {
        ctx.saga(
            async |mut saga| {
                let undo = |_, n: u32| {
                    log.lock().unwrap().push(format!("undo {n}"));
                    Ok(())
                };
                let _: u32 = saga.step(|_| Ok(1), None).undo(undo, None).await?;
                let _: u32 = saga.step(|_| Ok(2), None).undo(undo, None).await?;
                Err("on purpose".into())
            },
            None,
        )
        .await
    }
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let outcome = Kit::new().handler("h", move |(): (), ctx| handler(seen.clone(), ctx)).run("h", ());
    assert_eq!(outcome.status, ExecutionStatus::Failed);
    assert_eq!(*log.lock().unwrap(), ["undo 2", "undo 1"]);
}
