//! Map and parallel: fan-out, waits that overlap, failures, large results.

use serde_json::json;

use crate::execution::Execution;
use crate::support::World;

/// SR-228: a workflow branches, fans out and joins; waits of branches overlap.
#[tokio::test]
async fn branches_fan_out_and_join() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    def slow(n):
        ctx.sleep(60)
        return ctx.step("double", lambda: n * 2)
    if input.parallel:
        return ctx.parallel([lambda: slow(1), lambda: 7, lambda: slow(3)], name = "all")
    return ctx.map([1, 2, 3], slow)
"#;
    for (input, expected) in [(r#"{"parallel": false}"#, json!([2, 4, 6])), (r#"{"parallel": true}"#, json!([2, 7, 6]))]
    {
        let world = World::new();
        let execution = Execution::new(&world, source, input);
        execution.suspends(&world).await;
        // One call starts all waits.
        assert_eq!(execution.checkpoints(), 1, "{:?}", execution.told());
        execution.advance(60);
        assert_eq!(execution.returns(&world).await, expected);
        assert!(execution.updates().iter().all(|update| update.id.len() == 64));
    }
    drop(world);
}

/// Branches inside branches, with waits and retries at every level.
#[tokio::test]
async fn branches_nest() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    def inner(n):
        ctx.sleep(5)
        tried = ctx.step("try", lambda: ctx.fail("later", retryable = True) if n == 3 else n, catch = True)
        return tried.value
    def outer(n):
        first, second = ctx.parallel([lambda: inner(n), lambda: ctx.map([n, n + 1], inner)])
        return [first, second]
    return ctx.map([1, 2], outer)
"#;
    let execution = Execution::new(&world, source, "null");
    let mut invocations = 0;
    let result = loop {
        invocations += 1;
        let output = execution.invoke(&world).await;
        if let Some(result) = output.result {
            break serde_json::from_str::<serde_json::Value>(&result).unwrap();
        }
        assert_eq!(output.error, None);
        execution.advance(5);
    };
    assert_eq!(result, json!([[1, [1, 2]], [2, [2, null]]]));
    // All waits together, then the two retries of one step.
    assert_eq!(invocations, 4);
}

#[tokio::test]
async fn branches_wait_in_turns_under_a_limit() {
    let world = World::new();
    let source =
        "def main(ctx, input):\n    return ctx.map(range(4), lambda n: [n, ctx.sleep(10)], max_concurrency = 2)\n";
    let execution = Execution::new(&world, source, "null");
    for waits in [2, 4] {
        execution.suspends(&world).await;
        assert_eq!(execution.told().iter().filter(|update| update.starts_with("WAIT")).count(), waits);
        execution.advance(10);
    }
    assert_eq!(execution.returns(&world).await, json!([[0, null], [1, null], [2, null], [3, null]]));
}

#[tokio::test]
async fn a_failed_branch_fails_the_whole_or_is_part_of_it() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    def work(n):
        if n == 2:
            ctx.fail("two is wrong", details = {"n": n})
        return n
    outcomes = ctx.map([1, 2, 3], work, catch = input)
    return [[o.ok, o.value, o.error.message if o.error else None] for o in outcomes]
"#;
    let execution = Execution::new(&world, source, "true");
    assert_eq!(
        execution.returns(&world).await,
        json!([[true, 1, null], [false, null, "two is wrong"], [true, 3, null]])
    );
    let world = World::new();
    let execution = Execution::new(&world, source, "false");
    let failure = execution.fails(&world).await;
    assert_eq!((failure.message.as_str(), &failure.details["n"]), ("two is wrong", &json!(2)));
    assert_eq!(execution.told().last().unwrap(), "CONTEXT/Map - FAIL");
    // The same on replay, from the record.
    assert_eq!(execution.fails(&world).await, failure);
}

/// A result that is too large for one record is put together again from its parts.
#[tokio::test]
async fn large_results_of_branches_come_from_their_steps_again() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    parts = ctx.map([1, 2], lambda n: ctx.step("make", lambda: "x" * 200000))
    ctx.sleep(1)
    return [len(part) for part in parts]
"#;
    let execution = Execution::new(&world, source, "null");
    execution.suspends(&world).await;
    let closed = execution.updates().into_iter().find(|update| update.context_options.is_some()).unwrap();
    assert_eq!((closed.context_options.unwrap().replay_children, closed.payload.as_deref()), (Some(true), Some("")));
    execution.advance(1);
    assert_eq!(execution.returns(&world).await, json!([200_000, 200_000]));
}
