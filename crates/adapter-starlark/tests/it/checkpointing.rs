//! Where a workflow is recorded: as it goes, where its author says, or nowhere.

use serde_json::json;
use servo_model::function::Code;
use servo_model::invocation::{Checkpointing, ErrorCategory, errors};

use crate::execution::Execution;
use crate::support::{World, code};

/// A line from inside a step is written each time that its body runs.
const STEPS: &str = r#"
def done(ctx, name):
    ctx.log(name)
    return name

def main(ctx, input):
    one = ctx.step("one", done, args = [ctx, "one"])
    two = ctx.map(["two"], lambda name: ctx.step(name, done, args = [ctx, name]))
    if input.says:
        ctx.checkpoint()
    at = ctx.now() > 0
    three = ctx.step("three", done, args = [ctx, "three"])
    return [one, two[0], three, at]
"#;

fn with(source: &str, checkpointing: Checkpointing) -> Code {
    Code { checkpointing, ..code(source) }
}

/// SR-101, SR-102: what an invocation left behind is what the next one need not do again. One that returned and whose answer was
/// lost is the worst case: everything was done.
#[tokio::test]
async fn each_strategy_records_what_it_says() {
    use Checkpointing::{Automatic, Disabled, Manual};
    let all: &[&str] = &["one", "two", "three"];
    let cases: [(Checkpointing, bool, usize, &[&str]); 5] = [
        (Automatic, false, 3, &[]),
        (Automatic, true, 4, &[]),
        (Manual, true, 1, &["three"]),
        (Manual, false, 0, all),
        (Disabled, false, 0, all),
    ];
    for (strategy, says, checkpoints, again) in cases {
        let world = World::new();
        let input = json!({ "says": says }).to_string();
        let execution = Execution::with(&world, with(STEPS, strategy), &input);
        assert_eq!(execution.returns(&world).await, json!(["one", "two", "three", true]));
        assert_eq!(execution.checkpoints(), checkpoints, "{strategy:?}, {says}");
        assert_eq!(world.lines.texts(), all, "{strategy:?}");
        assert_eq!(execution.returns(&world).await, json!(["one", "two", "three", true]));
        assert_eq!(world.lines.texts()[all.len()..], *again, "{strategy:?}, {says}");
    }
}

/// SR-101: whoever waits asks for a record, and so does whoever tells others or must not do a thing twice.
#[tokio::test]
async fn what_needs_a_record_gets_it_in_manual_workflows() {
    let cases = [
        (r#"ctx.sleep("1h")"#, "WAIT/Wait - START", 1),
        (r#"ctx.emit("begun")"#, "STEP/Emit begun SUCCEED", 1),
        (r#"ctx.step("twice", lambda: ctx.fail("no", retryable = True))"#, "STEP/Step twice RETRY", 1),
        // Before it begins, and with its outcome.
        (r#"ctx.step("never twice", lambda: 1, at_most_once = True)"#, "STEP/Step never twice SUCCEED", 2),
    ];
    for (call, last, checkpoints) in cases {
        let world = World::new();
        let source = format!("def main(ctx, input):\n    ctx.step(\"first\", lambda: 1)\n    {call}\n    return 1\n");
        let execution = Execution::with(&world, with(&source, Checkpointing::Manual), "null");
        execution.invoke(&world).await;
        let told = execution.told();
        assert_eq!(told[..2], ["STEP/Step first START", "STEP/Step first SUCCEED"], "{call}");
        assert_eq!(told.last().map(String::as_str), Some(last), "{call}");
        assert_eq!(execution.checkpoints(), checkpoints, "{call}");
    }
}

/// SR-102: what cannot work without a record says so, instead of being forgotten in silence.
#[tokio::test]
async fn what_needs_a_record_is_refused_without_one() {
    let calls = [
        "ctx.sleep(1)",
        r#"ctx.wait_signal("go")"#,
        r#"ctx.wait_event("paid")"#,
        r#"ctx.invoke("gts.x")"#,
        r#"ctx.emit("begun")"#,
        r#"ctx.step("a", lambda: 1, at_most_once = True)"#,
        r#"ctx.step("a", lambda: 1, retry = 3)"#,
        "ctx.checkpoint()",
    ];
    for call in calls {
        let world = World::new();
        let source = format!("def main(ctx, input):\n    {call}\n    return 1\n");
        let execution = Execution::with(&world, with(&source, Checkpointing::Disabled), "null");
        let failure = execution.fails(&world).await;
        assert!(failure.message.contains("keeps no"), "{call}: {}", failure.message);
        assert_eq!(
            (failure.error_type_id.as_str(), failure.category),
            (errors::EXECUTION, ErrorCategory::NonRetryable)
        );
        assert_eq!(execution.checkpoints(), 0, "{call}");
    }
}

/// A step that fails fails the whole, which is tried again by its own policy; what it caught, it goes on from.
#[tokio::test]
async fn a_failure_without_a_record_is_the_workflows() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    caught = ctx.step("caught", lambda: ctx.fail("a", retryable = True), catch = True)
    ctx.step("not caught", lambda: ctx.fail(caught.error.message + "b", retryable = True))
"#;
    let execution = Execution::with(&world, with(source, Checkpointing::Disabled), "null");
    let failure = execution.fails(&world).await;
    assert_eq!((failure.message.as_str(), failure.category), ("ab", ErrorCategory::Retryable));
    assert_eq!(execution.checkpoints(), 0);
}

/// A checkpoint has its place: in a workflow, and not inside a step.
#[tokio::test]
async fn a_checkpoint_has_its_place() {
    let world = World::new();
    let failure = world.failure("def main(ctx, input):\n    ctx.checkpoint()\n", "null").await;
    assert!(failure.message.contains("only in workflows"), "{}", failure.message);
    let source = "def main(ctx, input):\n    ctx.step(\"a\", lambda: ctx.checkpoint())\n";
    let failure = Execution::new(&world, source, "null").fails(&world).await;
    assert!(failure.message.contains("inside a step"), "{}", failure.message);
}
