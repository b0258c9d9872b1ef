//! Running handlers: time, callbacks, failures, looking at operations.

use std::time::Duration as Time;

use serde_json::json;
use servo_sdk::{DurableContext, DurableError, Duration, OperationStatus, StepConfig, WaitForCallbackConfig};
use servo_sdk_testkit::{Answer, Kit};
use servo_wire::lambda::ExecutionStatus;

fn named(name: &str) -> Option<StepConfig> {
    Some(StepConfig { name: Some(name.into()), ..StepConfig::default() })
}

/// DX-001: the published example runs in the test kit.
#[test]
fn the_usage_example_runs() {
    let kit = Kit::new().handler("process_order", crate::usage_example::on_json);
    let outcome = kit.run("process_order", json!({"order_id": "o-1", "amount": 12.5}));
    assert_eq!(outcome.value::<serde_json::Value>()["tracking_number"], "TRK123456");
    assert_eq!(outcome.invocations, 2);
    assert!(outcome.elapsed >= Time::from_secs(5));
}

/// DX-100: a wait of a year takes no time.
#[test]
fn a_year_passes_at_once() {
    async fn patient(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
        ctx.wait(Duration::from_years(1), Some("long")).await?;
        Ok(7)
    }
    let began = std::time::Instant::now();
    let outcome = Kit::new().handler("patient", patient).run("patient", ());
    assert_eq!(outcome.value::<u32>(), 7);
    assert!(outcome.elapsed >= Time::from_secs(365 * 86_400), "{:?}", outcome.elapsed);
    // Far more than it takes, and far less than a loop that looks every second would.
    assert!(began.elapsed() < Time::from_secs(5), "{:?}", began.elapsed());
    assert_eq!((outcome.operation("long").status, outcome.invocations), (OperationStatus::Succeeded, 2));
}

async fn flaky(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
    ctx.step(|step| Ok(step.attempt()), named("flaky")).await
}

/// DX-100: the n-th attempt of a named step fails, and the step's own rule decides what follows.
#[test]
fn an_attempt_fails_on_demand() {
    let kit = Kit::new().handler("flaky", flaky).fail_step("flaky", 1, "first").fail_step("flaky", 2, "second");
    let outcome = kit.run("flaky", ());
    assert_eq!(outcome.value::<u32>(), 3);
    assert_eq!((outcome.runs_of("flaky"), outcome.invocations), (1, 3));
    let mut kit = kit;
    for attempt in 3..=6 {
        kit = kit.fail_step("flaky", attempt, "always");
    }
    let outcome = kit.run("flaky", ());
    assert_eq!((outcome.status, outcome.runs_of("flaky")), (ExecutionStatus::Failed, 0));
    assert_eq!(outcome.error.unwrap().error_message.as_deref(), Some("always"));
}

async fn approval(_: (), ctx: DurableContext) -> Result<String, DurableError> {
    let config = WaitForCallbackConfig {
        name: Some("approval".into()),
        timeout_seconds: Some(3_600),
        ..WaitForCallbackConfig::default()
    };
    ctx.wait_for_callback(|_, _: String| Ok(()), Some(config)).await
}

/// DX-100: callbacks are answered, refused, late, or left alone.
#[test]
fn callbacks_are_answered_as_asked() {
    let kit = Kit::new().handler("approval", approval);
    let yes = kit.clone().on_callback("approval", Answer::succeed(&"yes")).run("approval", ());
    assert_eq!(yes.value::<String>(), "yes");
    let no = kit.clone().on_callback("approval", Answer::fail("Denied", "no")).run("approval", ());
    assert_eq!(no.error.unwrap().error_message.as_deref(), Some("no"));
    let after = Time::from_secs(1_800);
    let later = kit.clone().on_callback_after("approval", after, Answer::succeed(&"late")).run("approval", ());
    assert_eq!((later.value::<String>(), later.elapsed >= after), ("late".to_owned(), true));
    let too_late = Time::from_secs(7_200);
    let missed = kit.clone().on_callback_after("approval", too_late, Answer::succeed(&"late")).run("approval", ());
    assert_eq!(missed.status, ExecutionStatus::Failed);
    let ignored = kit.run("approval", ());
    assert_eq!(ignored.status, ExecutionStatus::Failed);
    assert!((3_600..3_700).contains(&ignored.elapsed.as_secs()), "{:?}", ignored.elapsed);
}

/// DX-100: a callback that must show signs of life lives as long as it does.
#[test]
fn heartbeats_come_as_asked() {
    async fn watched(_: (), ctx: DurableContext) -> Result<String, DurableError> {
        let config = WaitForCallbackConfig {
            name: Some("work".into()),
            heartbeat_timeout_seconds: Some(60),
            ..WaitForCallbackConfig::default()
        };
        ctx.wait_for_callback(|_, _: String| Ok(()), Some(config)).await
    }
    let done = (Time::from_secs(130), Answer::succeed(&"done"));
    let kit = Kit::new().handler("watched", watched).on_callback_after("work", done.0, done.1);
    let silent = kit.clone().run("watched", ());
    assert_eq!(silent.status, ExecutionStatus::Failed);
    assert!((60..70).contains(&silent.elapsed.as_secs()), "{:?}", silent.elapsed);
    let once = kit.clone().heartbeat_after("work", Time::from_secs(50)).run("watched", ());
    assert!((110..120).contains(&once.elapsed.as_secs()), "{:?}", once.elapsed);
    let twice = kit.heartbeat_after("work", Time::from_secs(50)).heartbeat_after("work", Time::from_secs(100));
    assert_eq!(twice.run("watched", ()).value::<String>(), "done");
}

#[test]
fn functions_of_the_kit_invoke_each_other() {
    async fn outer(number: u32, ctx: DurableContext) -> Result<u32, DurableError> {
        ctx.invoke("inner", number, None).await
    }
    async fn inner(number: u32, ctx: DurableContext) -> Result<u32, DurableError> {
        ctx.wait(Duration::from_days(3), None).await?;
        Ok(number + 1)
    }
    let kit = Kit::new().handler("outer", outer).handler("inner", inner);
    assert_eq!(kit.run("outer", 4).value::<u32>(), 5);
}

#[test]
#[should_panic(expected = "no handler `flakey`; the kit has: flaky")]
fn a_typing_error_says_what_there_is() {
    Kit::new().handler("flaky", flaky).run("flakey", ());
}

/// What the kit says of a run is what the engine recorded.
#[test]
fn operations_and_history_can_be_looked_at() {
    let outcome = Kit::new().handler("flaky", flaky).fail_step("flaky", 1, "first").run("flaky", ());
    let details = outcome.operation("flaky").step_details.clone().unwrap();
    assert_eq!((details.attempt, details.result.as_deref()), (2, Some("2")));
    let kinds: Vec<String> = outcome
        .history
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["EventType"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("ExecutionStarted"));
    assert!(kinds.contains(&"StepFailed".to_owned()), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("ExecutionSucceeded"));
}
