//! Plain functions: values, errors, what they keep and what they can.

use serde_json::json;
use servo_adapter::FailureKind;
use servo_adapter_starlark::Settings;
use servo_model::invocation::{ErrorCategory, errors};

use crate::support::{World, settings};

/// The seed's function, as it is written there.
const CALCULATE_TAX: &str =
    "def main(ctx, input):\n  return {\"tax\": input.amount * 0.1, \"total\": input.amount * 1.1}\n";

/// SR-223: an amount of 100.0 gives a tax of about 10 and a total of about 110.
#[tokio::test]
async fn the_seeds_function_runs_as_written() {
    let world = World::new();
    let result = world.result(CALCULATE_TAX, r#"{"amount": 100.0}"#).await;
    let number = |name: &str| result[name].as_f64().unwrap();
    assert!((number("tax") - 10.0).abs() < 1e-9 && (number("total") - 110.0).abs() < 1e-9, "{result}");
    assert_eq!(world.starlark.check(CALCULATE_TAX).await, Ok(()));
}

#[tokio::test]
async fn input_reads_as_attributes_and_as_keys() {
    let source = r#"
def main(ctx, input):
    order = input.order
    return [order.items[0].sku, input["order"]["items"][0]["sku"], input.get("none", 7), "order" in input, len(input),
            [key for key in input], input.order == {"items": [{"sku": "a"}]}, [k for k, v in input.order.keys.items()]]
"#;
    let input = r#"{"order": {"items": [{"sku": "a"}], "keys": {"x": 1}}}"#;
    let source = source.replace(r#"input.order == {"items": [{"sku": "a"}]}"#, r#"input.order.keys == {"x": 1}"#);
    let result = World::new().result(&source, input).await;
    assert_eq!(result, json!(["a", "a", 7, true, 1, ["order"], true, ["x"]]));
}

/// Text comes back as it was sent, whatever the numbers are.
#[tokio::test]
async fn values_survive_the_way_there_and_back() {
    let world = World::new();
    let same = "def main(ctx, input):\n    return input\n";
    for text in [
        "null",
        "true",
        "0",
        "-1",
        "9223372036854775808",
        "123456789012345678901234567890",
        "0.1",
        "1e300",
        "1.0",
        "5e-324",
        r#""""#,
        r#""\u0000é\n\"😀""#,
        "[]",
        "{}",
        r#"{"b":1,"a":[1,2.5,{"c":null}]}"#,
    ] {
        let reply = world.call(same, text).await.unwrap();
        let [there, back] = [text, &reply.text].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(there, back, "{text}");
    }
    assert_eq!(world.call(same, r#"{"a":1,"a":2}"#).await.unwrap().text, r#"{"a":2}"#);
    for exact in ["123456789012345678901234567890", "-9223372036854775809", "1.0", "0.1"] {
        assert_eq!(world.call(same, exact).await.unwrap().text, exact);
    }
}

#[tokio::test]
async fn what_has_no_json_is_refused_with_the_reason() {
    let world = World::new();
    for (value, word) in [
        ("float('nan')", "NaN"),
        ("float('inf')", "inf"),
        ("main", "function"),
        ("{1: 2}", "key"),
        ("ctx.secret('x')", "secret"),
        ("range(3)", "range"),
    ] {
        let failure = world.failure(&format!("def main(ctx, input):\n    return {value}\n"), "null").await;
        assert_eq!(failure.category, ErrorCategory::NonRetryable);
        assert!(failure.message.contains(word), "{value}: {}", failure.message);
    }
}

/// SR-221: what one call leaves in globals is not there for the next, in the same child.
#[tokio::test]
async fn nothing_is_kept_between_calls() {
    let world = World::new();
    let source = "seen = []\ndef main(ctx, input):\n    seen.append(1)\n    return len(seen)\n";
    for _ in 0..2 {
        let failure = world.failure(source, "null").await;
        assert!(failure.message.contains("Immutable") || failure.message.contains("frozen"), "{}", failure.message);
    }
    let source = "def main(ctx, input):\n    seen = []\n    seen.append(1)\n    return len(seen)\n";
    for _ in 0..3 {
        assert_eq!(world.result(source, "null").await, json!(1));
    }
}

#[tokio::test]
async fn errors_tell_where_and_whether_to_try_again() {
    let world = World::new();
    let source = "def inner(x):\n    for i in range(2): x.missing\n\ndef main(ctx, input):\n    return inner(input)\n";
    let failure = world.call(source, "1").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Failed);
    let trace = failure.error.stack_trace.clone().unwrap();
    assert!(trace.iter().any(|line| line.contains("in main, line 5")), "{trace:?}");
    assert!(trace.last().unwrap().contains("in inner, line 2"), "{trace:?}");
    let of = |failure: servo_adapter::HandlerFailure| servo_model::invocation::Failure::of(&failure.error);
    let failure = of(failure);
    assert_eq!((failure.error_type_id.as_str(), failure.category), (errors::EXECUTION, ErrorCategory::NonRetryable));
    let place = |function: &str, line: u64, column: u64| json!({"function": function, "file": "main.star", "line": line, "column": column});
    assert_eq!(failure.details["call_trace"], json!([place("main", 5, 12), place("inner", 2, 24)]));

    let source = "def main(ctx, input):\n    ctx.fail('no', type='gts.a.b.c.v1~', retryable=input, details={'a': 1})\n";
    for (input, category) in [("true", ErrorCategory::Retryable), ("false", ErrorCategory::NonRetryable)] {
        let failure = world.failure(source, input).await;
        assert_eq!((failure.error_type_id.as_str(), failure.category), ("gts.a.b.c.v1~", category));
        assert_eq!((failure.message.as_str(), &failure.details["a"]), ("no", &json!(1)));
    }
    // A name that is no id is kept beside what the program said, and the id is that of any error of a program.
    let source = "def main(ctx, input):\n    ctx.fail('no', type='CardDeclined', details={'card': 4711})\n";
    let failure = world.failure(source, "null").await;
    assert_eq!((failure.error_type_id.as_str(), failure.user_type()), (errors::EXECUTION, Some("CardDeclined")));
    assert_eq!(
        (&failure.details["card"], &failure.details["call_trace"]),
        (&json!(4711), &json!([place("main", 2, 5)]))
    );
    // However deep it was, the trace has an end, and its end is the place of the error.
    let deep = "def down(n):\n    return 1 // 0 if n == 0 else down(n - 1)\n\ndef main(ctx, input):\n    down(300)\n";
    let trace = world.failure(deep, "null").await.details["call_trace"].clone();
    assert_eq!(trace.as_array().unwrap().len(), 64);
    assert_eq!((&trace[0], &trace[63]), (&place("main", 5, 5), &place("down", 2, 12)));

    let failure = world.failure("def main(ctx, input):\n    fail('plain')\n", "1").await;
    assert!(failure.message.contains("plain"), "{}", failure.message);
}

#[tokio::test]
async fn functions_have_time_numbers_and_lines() {
    let world = World::new();
    let source = r#"
def main(ctx, input):
    ctx.log("hello")
    ctx.log("order", id = 7, tags = ["a"])
    return [ctx.now(), ctx.uuid(), ctx.uuid(), ctx.random()]
"#;
    let result = world.result(source, "null").await;
    assert_eq!(result[0], json!(1_767_225_600.25));
    assert_ne!(result[1], result[2]);
    assert_eq!(result[1].as_str().unwrap().len(), 36);
    assert!((0.0..1.0).contains(&result[3].as_f64().unwrap()));
    assert_eq!(world.lines.texts(), ["hello", r#"{"message":"order","id":7,"tags":["a"]}"#]);
    let line = world.lines.0.lock().unwrap()[0].clone();
    assert_eq!(line.run_id.unwrap().as_str(), "inv_1");
}

#[tokio::test]
async fn durable_primitives_are_a_clear_error_in_functions() {
    let world = World::new();
    for call in [
        "ctx.step('a', lambda: 1)",
        "ctx.sleep(1)",
        "ctx.wait_signal('a')",
        "ctx.wait_event('a')",
        "ctx.invoke('f')",
        "ctx.map([1], lambda x: x)",
        "ctx.parallel([lambda: 1])",
        "ctx.emit('a', 1)",
    ] {
        let failure = world.failure(&format!("def main(ctx, input):\n    return {call}\n"), "null").await;
        assert!(failure.message.contains("only in workflows"), "{call}: {}", failure.message);
        assert_eq!(failure.category, ErrorCategory::NonRetryable);
    }
}

/// SR-091, SR-167: line and column of what is wrong.
#[tokio::test]
async fn sources_are_checked() {
    let world = World::new();
    let table = [
        ("def main(ctx, input):\n    return (1 +\n", 3, "Parse error"),
        ("def main(ctx, input):\n    return foo\n", 2, "foo"),
        ("load('x.star', 'y')\ndef main(ctx, input):\n    return 1\n", 1, "load"),
        ("x = 1\n", 1, "no function main"),
        ("x = 1\ndef main(ctx):\n    return 1\n", 2, "two parameters"),
        ("main = 3\n", 1, "not a function"),
        ("def main(ctx, input):\n    return 1\nx = 1 // 0\n", 3, "zero"),
    ];
    for (source, line, word) in table {
        let issues = world.starlark.check(source).await.unwrap_err();
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].line, line, "{issues:?}");
        assert!(issues[0].column >= 1 && issues[0].message.contains(word), "{issues:?}");
    }
    let issues = world.starlark.check("def main(ctx, input):\n    return foo\n").await.unwrap_err();
    assert_eq!(issues[0].column, 12);
    let issues = world.starlark.check("def main(ctx, input):\n    print(1)\n").await.unwrap_err();
    assert_eq!(issues[0].suggestion.as_deref(), Some("use ctx.log(message)"));
}

#[tokio::test]
async fn calls_are_measured() {
    let world = World::new();
    let source = "def main(ctx, input):\n    n = 0\n    for i in range(1000000):\n        n += i\n    return n\n";
    let reply = world.call(source, "null").await.unwrap();
    assert!(reply.usage.cpu_ms.unwrap() >= 1 && reply.usage.memory_mb.unwrap() >= 1, "{:?}", reply.usage);
    let source = "def main(ctx, input):\n    return len('a' * 20000000)\n";
    let large = world.call(source, "null").await.unwrap();
    let small = world.call("def main(ctx, input):\n    return 1\n", "null").await.unwrap();
    assert!(large.usage.memory_mb.unwrap() >= small.usage.memory_mb.unwrap() + 15, "{large:?} {small:?}");
}

#[tokio::test]
async fn a_call_is_charged_for_itself_alone() {
    let world = World::new();
    let source = "def main(ctx, input):\n    return len('a' * input)\n";
    let mut used = Vec::new();
    // All in one child, which grows too little to be replaced: small, small again, large, and two that meet what that has left.
    for length in ["1", "1", "20000000", "1", "1"] {
        let usage = world.call(source, length).await.unwrap().usage;
        used.push((usage.cpu_ms.unwrap(), usage.memory_mb.unwrap()));
    }
    let [_, second, large, third, fourth] = used[..] else { panic!("{used:?}") };
    assert!(large.1 >= second.1 + 15, "{used:?}");
    assert!(third.1 <= second.1 + 5 && fourth.1 <= second.1 + 5, "{used:?}");
    // What a child has used to start is no call's. A busy machine may disturb some of them.
    let mut first = u32::MAX;
    for number in 0..5 {
        let source = format!("def main(ctx, input):\n    return {number}\n");
        first = first.min(world.call(&source, "1").await.unwrap().usage.cpu_ms.unwrap());
    }
    assert!(first <= second.0 + 3, "{first} {used:?}");
}

#[tokio::test]
async fn nobody_waits_for_the_turn_of_a_program_that_takes_long() {
    let world = World::with(Settings { turns: 1, ..settings() });
    let long = "def main(ctx, input):\n    n = 0\n    for i in range(1000000000):\n        n += i\n    return n\n";
    let hangs = world.call(long, "null");
    let mut hangs = std::pin::pin!(hangs);
    for number in 0..20 {
        let source = "def main(ctx, input):\n    return input\n";
        let quick = world.result(source, "7");
        tokio::select! {
            _ = &mut hangs => panic!("the long one ended before quick call {number}"),
            result = quick => assert_eq!(result, 7),
        }
    }
}
