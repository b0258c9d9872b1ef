//! Durable workflows: every primitive, over suspension and replay.

use serde_json::json;
use servo_adapter_starlark::Settings;
use servo_model::function::Code;
use servo_model::invocation::{ErrorCategory, errors};
use servo_model::operation::ErrorObject;

use crate::execution::Execution;
use crate::support::{World, code, settings};

/// The seed's workflow, as it is written there.
const PROCESS_ORDER: &str = "def main(ctx, input):\n  # workflow steps...\n  return {\"status\": \"completed\"}\n";

#[tokio::test]
async fn the_seeds_workflow_runs_as_written() {
    let world = World::new();
    let execution = Execution::new(&world, PROCESS_ORDER, r#"{"order_id": "o-1"}"#);
    assert_eq!(execution.returns(&world).await, json!({"status": "completed"}));
    assert_eq!(execution.checkpoints(), 0);
}

/// What is recorded is kept by the server, and counts against what the program may have: many small records, and some large ones.
#[tokio::test]
async fn what_a_call_records_counts_as_its_memory() {
    let many = ["ctx.now()", "ctx.emit('e', 'x' * 1000)", "ctx.step('s', lambda: 1)", "ctx.checkpoint() or ctx.now()"];
    let large = ["ctx.step('s', lambda: 'x' * 900000)", "ctx.step('s', lambda: 'x' * 900000, catch = True)"];
    let programs = many.iter().map(|what| (what, 50_000)).chain(large.iter().map(|what| (what, 500)));
    for (what, times) in programs {
        let world = World::new();
        let source = format!("def main(ctx, input):\n    for i in range({times}):\n        {what}\n    return None\n");
        let code = Code { memory_mb: 4, cpu_milli: 10_000, ..code(&source) };
        let execution = Execution::with(&world, code, "null");
        let failure = execution.fails(&world).await;
        assert_eq!(failure.category, ErrorCategory::ResourceLimit, "{what}: {failure:?}");
        assert_eq!(failure.details["limit"], "memory_mb", "{what}: {failure:?}");
        let recorded: usize =
            execution.updates().iter().map(|update| update.payload.as_ref().map_or(0, String::len)).sum();
        assert!(recorded < 13 << 20 && execution.updates().len() < 2 * (12 << 20) / 4096, "{what}: {recorded}");
    }
}

/// Where all calls share too little, a call is tried again and does not fail.
#[tokio::test]
async fn a_call_that_finds_no_room_for_its_records_comes_again() {
    let world = World::with(Settings { records_bytes_max: 8 * 1024, ..settings() });
    let source = "def main(ctx, input):\n    ctx.step('a', lambda: 1)\n    return ctx.step('b', lambda: 2)\n";
    let execution = Execution::new(&world, source, "null");
    let failure = execution.try_invoke(&world).await.unwrap_err();
    assert_eq!(failure.kind, servo_adapter::FailureKind::Crashed);
    assert_eq!(execution.told(), ["STEP/Step a START", "STEP/Step a SUCCEED"]);
    assert_eq!(execution.returns(&world).await, json!(2), "what is recorded is not done again, and the room is free");
}

/// A step's body runs once; its record drives every replay. One call for each step, START and outcome together.
#[tokio::test]
async fn steps_are_recorded_and_replayed() {
    let world = World::new();
    let source = r#"
def charge(order, amount):
    return {"order": order, "charged": amount}

def main(ctx, input):
    ctx.log("begins")
    receipt = ctx.step("charge", charge, args = [input.order, 5])
    ctx.log("charged")
    ctx.sleep("10m")
    ctx.log("woke")
    last = ctx.step("last", lambda: [receipt.charged, receipt["order"]])
    return last
"#;
    let execution = Execution::new(&world, source, r#"{"order": "o-1"}"#);
    execution.suspends(&world).await;
    assert_eq!(execution.told(), ["STEP/Step charge START", "STEP/Step charge SUCCEED", "WAIT/Wait - START"]);
    assert_eq!(execution.checkpoints(), 2);
    // Too early: nothing is written or recorded again.
    execution.suspends(&world).await;
    assert_eq!(execution.checkpoints(), 2);
    execution.advance(600);
    assert_eq!(execution.returns(&world).await, json!([5, "o-1"]));
    assert_eq!(execution.checkpoints(), 3);
    // Lines of the past are not written again.
    assert_eq!(world.lines.texts(), ["begins", "charged", "woke"]);
}

/// SR-054: the rule of the entrypoint is each step's.
#[tokio::test]
async fn a_retryable_failure_of_a_step_is_tried_again_by_the_rule() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    return ctx.step("flaky", lambda: ctx.fail("not now", retryable = True))
"#;
    let execution = Execution::new(&world, source, "null");
    for attempt in 1..3_u32 {
        execution.suspends(&world).await;
        let retry = execution.updates().pop().unwrap();
        assert_eq!(retry.step_options.unwrap().next_attempt_delay_seconds, Some(u64::from(attempt)));
        execution.suspends(&world).await;
        execution.advance(i64::from(attempt));
    }
    let failure = execution.fails(&world).await;
    assert_eq!((failure.message.as_str(), failure.category), ("not now", ErrorCategory::Retryable));
    let told = execution.told();
    assert_eq!(told.iter().filter(|update| update.ends_with("START")).count(), 3);
    assert_eq!(told.last().unwrap(), "STEP/Step flaky FAIL");
}

#[tokio::test]
async fn steps_have_rules_of_their_own() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    return ctx.step("a", lambda: ctx.fail("no", retryable = True), retry = input)
"#;
    let once = Execution::new(&world, source, "1");
    assert_eq!(once.fails(&world).await.message, "no");
    let world = World::new();
    let slow = Execution::new(&world, source, r#"{"max_attempts": 2, "initial_delay_ms": 30500}"#);
    slow.suspends(&world).await;
    // SR-047: to the millisecond for whoever knows them, and in whole seconds for the rest.
    let options = slow.updates().pop().unwrap().step_options.unwrap();
    assert_eq!((options.next_attempt_delay_seconds, options.next_attempt_delay_millis), (Some(31), Some(30_500)));
    let world = World::new();
    let wrong = Execution::new(&world, source, r#"{"attempts": 2}"#);
    assert!(wrong.fails(&world).await.message.contains("max_attempts"));
    // An evaluation error fails in the same way every time.
    let world = World::new();
    let broken = Execution::new(&world, "def main(ctx, input):\n    ctx.step('a', lambda: 1 // 0)\n", "null");
    assert_eq!(broken.fails(&world).await.category, ErrorCategory::NonRetryable);
    assert_eq!(broken.told(), ["STEP/Step a START", "STEP/Step a FAIL"]);
}

/// The start is recorded before the body; an attempt that was interrupted is not run again.
#[tokio::test]
async fn at_most_once_steps_do_not_run_twice() {
    let world = World::new();
    let source = "def main(ctx, input):\n    return ctx.step('pay', lambda: ctx.now(), at_most_once = True)\n";
    let execution = Execution::new(&world, source, "null");
    // The process dies between START and the outcome: the service does not take the second call.
    let stale = ErrorObject::new("InvalidParameterValueException", "Invalid checkpoint token: stale");
    execution.refuse_after(1, stale);
    execution.suspends(&world).await;
    assert_eq!(execution.told(), ["STEP/Step pay START"]);
    execution.suspends(&world).await;
    let retry = execution.updates().pop().unwrap();
    assert!(retry.error.unwrap().error_message.unwrap().contains("interrupted"));
}

#[tokio::test]
async fn signals_and_events_bring_their_payload_or_nothing() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    approval = ctx.wait_signal("approve")
    event = ctx.wait_event("order.paid", timeout = "1h")
    late = ctx.wait_signal("late", timeout = 5)
    return [approval.by, event, late]
"#;
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    execution.answer("approve", Ok(r#"{"by": "ann"}"#));
    execution.suspends(&world).await;
    execution.answer("order.paid", Ok("[1]"));
    execution.suspends(&world).await;
    execution.advance(5);
    assert_eq!(execution.returns(&world).await, json!(["ann", [1], null]));
    assert_eq!(
        execution.told(),
        ["CALLBACK/Signal approve START", "CALLBACK/Event order.paid START", "CALLBACK/Signal late START"]
    );
    let timeouts: Vec<_> = execution.updates().iter().map(|u| u.callback_options.unwrap().timeout_seconds).collect();
    assert_eq!(timeouts, [None, Some(3_600), Some(5)]);
}

#[tokio::test]
async fn other_entrypoints_are_invoked() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    first = ctx.invoke("gts.x.core.a.v1~", {"n": 1})
    second = ctx.invoke("other", catch = True)
    return [first.n, second.ok, second.error.message, second.error.category]
"#;
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    let update = execution.updates().pop().unwrap();
    assert_eq!(update.chained_invoke_options.unwrap().function_name, "gts.x.core.a.v1~");
    assert_eq!(update.payload.as_deref(), Some(r#"{"n":1}"#));
    execution.answer("", Ok(r#"{"n": 2}"#));
    execution.suspends(&world).await;
    execution.answer("", Err(ErrorObject::new("ValueError", "bad")));
    assert_eq!(execution.returns(&world).await, json!([2, false, "bad", "retryable"]));
}

#[tokio::test]
async fn time_and_numbers_are_the_same_on_every_replay() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    before = [ctx.now(), ctx.uuid(), ctx.random(), ctx.uuid()]
    seen = ctx.step("seen", lambda: before)
    ctx.sleep(1)
    return [before == seen, before[1] != before[3], before[0]]
"#;
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    // The time rides along with the next call.
    assert_eq!(execution.told()[..2], ["STEP/Step now START", "STEP/Step now SUCCEED"]);
    assert_eq!(execution.checkpoints(), 2);
    execution.advance(1);
    assert_eq!(execution.returns(&world).await, json!([true, true, 1_767_225_600.25]));
}

#[tokio::test]
async fn events_are_recorded_before_the_answer() {
    let world = World::new();
    let source = "def main(ctx, input):\n    ctx.emit('order.shipped', {'id': 1})\n    return 1\n";
    let execution = Execution::new(&world, source, "null");
    assert_eq!(execution.returns(&world).await, json!(1));
    assert_eq!(execution.told(), ["STEP/Emit order.shipped START", "STEP/Emit order.shipped SUCCEED"]);
    assert_eq!(execution.updates()[1].payload.as_deref(), Some(r#"{"id":1}"#));
}

#[tokio::test]
async fn failures_can_be_caught_where_the_program_says_so() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    paid = ctx.step("pay", lambda: ctx.fail("declined", type = "gts.a.b.declined.v1~"), catch = True)
    if not paid.ok:
        ctx.step("release", lambda: 1)
        ctx.fail("order failed", details = {"because": paid.error.type})
    return paid.value
"#;
    let execution = Execution::new(&world, source, "null");
    let failure = execution.fails(&world).await;
    assert_eq!(
        (failure.message.as_str(), &failure.details["because"]),
        ("order failed", &json!("gts.a.b.declined.v1~"))
    );
    assert_eq!(execution.told().len(), 4);
}

/// Names that a program made up are what it sees and what its rules go by; only the outside sees ids.
#[tokio::test]
async fn made_up_names_of_errors_are_the_programs_own() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    rule = {"max_attempts": 3, "initial_delay_ms": 1000, "non_retryable_errors": ["CardDeclined"]}
    paid = ctx.step("pay", lambda: ctx.fail("no", type = input, retryable = True, details = {"a": 1}), retry = rule, catch = True)
    return [paid.error.type, paid.error.details.a, len(paid.error.details)]
"#;
    let declined = Execution::new(&world, source, r#""CardDeclined""#);
    assert_eq!(declined.returns(&world).await, json!(["CardDeclined", 1, 2]));
    // The same on replay.
    assert_eq!(declined.returns(&world).await, json!(["CardDeclined", 1, 2]));
    let world = World::new();
    let asleep = Execution::new(&world, source, r#""BankAsleep""#);
    asleep.suspends(&world).await;
    assert_eq!(asleep.told().last().unwrap(), "STEP/Step pay RETRY");
}

/// Changed code does not go on with another program's record.
#[tokio::test]
async fn divergence_is_final_and_names_both_operations() {
    let world = World::new();
    let source = "def main(ctx, input):\n    ctx.step('a', lambda: 1)\n    ctx.sleep(1)\n";
    let mut execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    execution.change_source(
        "def main(ctx, input):\n    ctx.map([1], lambda n: 1, name = 'b', catch = True)\n    ctx.sleep(1)\n",
    );
    let failure = execution.fails(&world).await;
    assert_eq!((failure.error_type_id.as_str(), failure.category), (errors::EXECUTION, ErrorCategory::NonRetryable));
    assert!(failure.details["expected"].as_str().unwrap().contains("STEP/Step \"a\""), "{failure:?}");
    assert!(failure.details["actual"].as_str().unwrap().contains("CONTEXT/Map \"b\""), "{failure:?}");
}

#[tokio::test]
async fn durable_operations_do_not_work_inside_steps() {
    let world = World::new();
    let source = "def main(ctx, input):\n    return ctx.step('a', lambda: ctx.sleep(1))\n";
    let execution = Execution::new(&world, source, "null");
    assert!(execution.fails(&world).await.message.contains("inside a step"));
}

#[tokio::test]
async fn a_long_history_comes_in_pages() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    total = 0
    for n in range(40):
        total += ctx.step("s%d" % n, lambda: n)
    ctx.sleep(1)
    return total
"#;
    let execution = Execution::new(&world, source, "null").paged(7);
    execution.suspends(&world).await;
    execution.advance(1);
    assert_eq!(execution.returns(&world).await, json!(780));
    assert_eq!(execution.checkpoints(), 41);
}

#[tokio::test]
async fn a_withdrawn_right_ends_the_invocation_quietly() {
    let world = World::new();
    let source = "def main(ctx, input):\n    return ctx.step('a', lambda: 1)\n";
    let execution = Execution::new(&world, source, "null");
    execution.refuse_next(ErrorObject::new("InvalidParameterValueException", "Invalid checkpoint token"));
    execution.suspends(&world).await;
    execution.refuse_next(ErrorObject::new("ServiceException", "busy"));
    assert_eq!(execution.returns(&world).await, json!(1));
    let world = World::new();
    let execution = Execution::new(&world, source, "null");
    execution.refuse_next(ErrorObject::new("InvalidParameterValueException", "too large"));
    assert_eq!(execution.fails(&world).await.message, "too large");
}

#[tokio::test]
async fn names_and_durations_are_checked() {
    let world = World::new();
    for (call, word) in [
        ("ctx.step('', lambda: 1)", "no name"),
        ("ctx.step('ä', lambda: 1)", "no name"),
        ("ctx.sleep(0)", "1 to"),
        ("ctx.sleep('10x')", "number of seconds"),
        ("ctx.sleep(1e12)", "number of seconds"),
        ("ctx.wait_signal('a', timeout = 0)", "timeout"),
        ("ctx.map([1], lambda n: 1, max_concurrency = 0)", "max_concurrency"),
        ("ctx.step('a', lambda: main)", "function"),
        ("ctx.step('a', lambda: 'x' * 2000000)", "payload_bytes"),
    ] {
        let world_ = World::new();
        let execution = Execution::new(&world_, &format!("def main(ctx, input):\n    return {call}\n"), "null");
        let failure = execution.fails(&world_).await;
        assert!(failure.message.contains(word), "{call}: {}", failure.message);
    }
    drop(world);
}

/// The first to come decides, and what comes after it changes nothing.
#[tokio::test]
async fn an_invoke_has_a_timeout() {
    let source = r#"
def main(ctx, input):
    called = ctx.invoke("slow", {"n": 1}, timeout = "1m", catch = True)
    ctx.sleep(600)
    return [called.ok, called.value, called.error.category if called.error else None]
"#;
    // In time.
    let world = World::new();
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    let told = ["CONTEXT/RunInChildContext - START", "CHAINED_INVOKE/ChainedInvoke - START", "WAIT/Wait timeout START"];
    assert_eq!((execution.told(), execution.checkpoints()), (told.map(str::to_owned).to_vec(), 1));
    execution.answer("slow", Ok("{\"n\": 2}"));
    execution.suspends(&world).await;
    // The time that was not used up passes, too.
    execution.advance(700);
    assert_eq!(execution.returns(&world).await, json!([true, {"n": 2}, null]));

    // Too late: the failure is recorded, and stays what it is when the result comes after all.
    let world = World::new();
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    execution.advance(59);
    execution.suspends(&world).await;
    execution.advance(1);
    execution.suspends(&world).await;
    execution.answer("slow", Ok("{\"n\": 2}"));
    execution.advance(600);
    assert_eq!(execution.returns(&world).await, json!([false, null, "timeout"]));

    // Not caught, it is the run's own failure.
    let world = World::new();
    let execution =
        Execution::new(&world, "def main(ctx, input):\n    return ctx.invoke('slow', timeout = 5)\n", "null");
    execution.suspends(&world).await;
    execution.advance(5);
    let failure = execution.fails(&world).await;
    assert_eq!((failure.error_type_id.as_str(), failure.category), (errors::TIMEOUT, ErrorCategory::Timeout));
    assert!(failure.message.contains("`slow` has not ended within 5 seconds"), "{}", failure.message);
    let world = World::new();
    let wrong = Execution::new(&world, "def main(ctx, input):\n    return ctx.invoke('slow', timeout = 0)\n", "null");
    assert!(wrong.fails(&world).await.message.contains("timeout"));
}
