//! S9: hostile programs by the thousand. Each ends its own call in time with the limit named, and ends alike when it comes again; a
//! neighbour's call succeeds meanwhile, and this process does not grow.
//!
//! `SERVO_TEST_SCRIPTS=1000` runs as many, the fixed list first; without it one of every third kind. A failure prints its seed and the
//! program. A thousand take about ten minutes, after which nextest would have ended it: `cargo test` does not.

mod bombs;
mod in_process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_adapter::{CapturedLine, FailureKind, HandlerCall, HandlerFailure, Handlers as _, LineSink, Reply};
use servo_model::TenantId;
use servo_model::function::Code;
use servo_model::invocation::{ErrorCategory, Failure};

use crate::hostile::{corpus, resident_kb};
use crate::support::{World, call_of, code, plain};
use bombs::{Bomb, KINDS};

const MEMORY_MB: u64 = 32;
/// What the clock allows. CPU time is over long before, also on a busy machine, so that always the same limit is first.
const WALL: Duration = Duration::from_secs(10);
const CPU_MILLI: u64 = 60;
const GROWTH_KB_MAX: u64 = 10 * 1024;

/// Nobody reads what they write.
struct Nobody;

impl LineSink for Nobody {
    fn line(&self, _line: CapturedLine) {}
}

fn call(source: &str) -> HandlerCall {
    let code = Code { memory_mb: MEMORY_MB, cpu_milli: CPU_MILLI, ..code(source) };
    HandlerCall { timeout: WALL, ..call_of(code, false, "null") }
}

/// All that may be compared: what it cost differs.
fn told(ended: &Result<Reply, HandlerFailure>) -> String {
    match ended {
        Ok(reply) => format!("returned {}", reply.text),
        Err(failure) => format!("{:?} {:?}", failure.kind, failure.error),
    }
}

/// The limit that ended it, an empty one if it was none; or what is wrong with the end.
fn limit_of(ended: &Result<Reply, HandlerFailure>) -> Result<String, String> {
    let Err(ended) = ended else { return Ok(String::new()) };
    let failure = Failure::of(&ended.error);
    let limit = failure.details.get("limit").and_then(|limit| limit.as_str()).unwrap_or_default();
    let expected = if limit.is_empty() { ErrorCategory::NonRetryable } else { ErrorCategory::ResourceLimit };
    if ended.kind == FailureKind::Failed && failure.category == expected {
        return Ok(limit.to_owned());
    }
    Err(format!("it ended as {ended:?}"))
}

#[tokio::test]
async fn hostile_programs_by_the_thousand_end_alike_and_harm_nobody() {
    #[expect(clippy::disallowed_methods, reason = "how many is said by whoever runs the tests")]
    let asked: Option<u64> = std::env::var("SERVO_TEST_SCRIPTS").ok().and_then(|text| text.parse().ok());
    let mut programs: Vec<(String, Bomb)> = Vec::new();
    if asked.is_some() {
        programs.extend(corpus().into_iter().map(|(what, source, limits)| (what.to_owned(), Bomb { source, limits })));
    }
    let seeds: Vec<u64> = match asked {
        Some(asked) => (0..asked.saturating_sub(programs.len() as u64)).collect(),
        None => (0..KINDS).step_by(3).collect(),
    };
    programs.extend(seeds.into_iter().map(|seed| (format!("seed {seed}"), Bomb::of(seed))));

    let world = World::from_parts(|parts| parts.lines = Arc::new(Nobody));
    let neighbour = |number: usize| HandlerCall {
        tenant: TenantId::parse("umbrella").unwrap(),
        ..plain("def main(ctx, input):\n    return input + 1\n", &number.to_string())
    };
    let warm = world.starlark.call(Box::new(neighbour(1))).await.unwrap();
    assert_eq!(warm.text, "2");
    let (before, began) = (resident_kb(), Instant::now());
    let (mut ends, mut longest) = (BTreeMap::<String, usize>::new(), Duration::ZERO);
    let mut wrong: Vec<String> = Vec::new();
    for (number, (what, bomb)) in programs.iter().enumerate() {
        let timed = async {
            let began = Instant::now();
            (world.starlark.call(Box::new(call(&bomb.source))).await, began.elapsed())
        };
        let again = world.starlark.call(Box::new(call(&bomb.source)));
        let beside = world.starlark.call(Box::new(neighbour(number)));
        let ((first, took), second, beside) = tokio::join!(timed, again, beside);
        assert_eq!(beside.unwrap().text, (number + 1).to_string(), "beside {what}\n{}", bomb.source);
        let mut complain = |why: String| {
            let source: String = bomb.source.chars().take(2_000).collect();
            wrong.push(format!("{what}: {why}\n{source}"));
        };
        if took > WALL * 2 {
            complain(format!("it took {took:?}"));
        }
        if told(&first) != told(&second) {
            complain(format!("the same came to two ends: {first:?} and {second:?}"));
        }
        match limit_of(&first) {
            Ok(limit) => {
                if !bomb.limits.contains(&limit.as_str()) {
                    complain(format!("{limit:?} ended it: {first:?}"));
                }
                *ends.entry(limit).or_default() += 1;
            }
            Err(why) => complain(why),
        }
        longest = longest.max(took);
    }
    let grown = resident_kb().saturating_sub(before);
    println!(
        "{} programs in {:?}, the longest {longest:?}; grown by {grown} kB; {ends:?}",
        programs.len(),
        began.elapsed()
    );
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
    assert!(grown < GROWTH_KB_MAX, "this process grew by {grown} kB");
    let all = ["memory_mb", "cpu_ms", "output_bytes", "call_depth", "source_bytes", "stack_mb"];
    for limit in if asked.is_some() { &all[..] } else { &all[..3] } {
        assert!(ends.contains_key(*limit), "nothing came to {limit}: {ends:?}");
    }
}
