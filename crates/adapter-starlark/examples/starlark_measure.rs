//! How long calls take: `cargo run --release -p servo-adapter-starlark --example starlark_measure`. The children are the example
//! `starlark_worker` beside it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_adapter::{CapturedLine, HandlerCall, Handlers as _, LineSink, Right};
use servo_adapter_starlark::{NoSecrets, Parts, Settings, Starlark};
use servo_model::function::{Code, FunctionSpec, Reach};
use servo_model::invocation::{Checkpointing, RetryRule};
use servo_model::{RunId, TenantId, Timestamp};

struct NoLines;

impl LineSink for NoLines {
    fn line(&self, _line: CapturedLine) {}
}

fn call(source: &str) -> Result<Box<HandlerCall>, servo_model::Invalid> {
    let code = Code {
        language: "starlark".to_owned(),
        source: source.into(),
        memory_mb: 128,
        cpu_milli: 200,
        retry: RetryRule::never(),
        checkpointing: Checkpointing::Automatic,
    };
    Ok(Box::new(HandlerCall {
        tenant: TenantId::default_tenant(),
        subject: None,
        function: "f".to_owned(),
        version: "1".to_owned(),
        spec: FunctionSpec { durable: false, ..FunctionSpec::new(Reach::Code(code)) },
        function_arn: String::new(),
        request_id: "r".to_owned(),
        payload: "{\"amount\": 100.0}".to_owned(),
        timeout: Duration::from_secs(30),
        tenant_id: None,
        client_context: None,
        trace: None,
        run_id: RunId::parse("inv_1")?,
        is_awaited: true,
        right: Right::unlimited(),
    }))
}

#[expect(clippy::print_stdout, reason = "it prints what it measured")]
fn say(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{what}: {} calls, p50 {:?}, p99 {:?}", times.len(), at(50), at(99));
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?.with_file_name("starlark_worker");
    let starlark = Starlark::new(Parts {
        settings: Settings::new(program, []),
        lines: Arc::new(NoLines),
        secrets: Arc::new(NoSecrets),
        now: Arc::new(|| Timestamp::from_millis(0)),
    })?;
    let tax = "def main(ctx, input):\n  return {\"tax\": input.amount * 0.1, \"total\": input.amount * 1.1}\n";
    let mut warm = Vec::new();
    for _ in 0..5_000 {
        let began = Instant::now();
        starlark.call(call(tax)?).await.map_err(|failure| format!("{failure:?}"))?;
        warm.push(began.elapsed());
    }
    say("warm, one after the other", warm);
    let mut fresh = Vec::new();
    for n in 0..50 {
        let source = format!("def main(ctx, input):\n  return {n}\n");
        let began = Instant::now();
        starlark.call(call(&source)?).await.map_err(|failure| format!("{failure:?}"))?;
        fresh.push(began.elapsed());
    }
    say("first call of a source", fresh);
    let began = Instant::now();
    let mut many = Vec::new();
    for _ in 0..200 {
        let batch = (0..16).map(|_| async {
            let began = Instant::now();
            let done = starlark.call(call(tax).map_err(|error| error.to_string())?).await;
            done.map_err(|failure| format!("{failure:?}"))?;
            Ok::<_, String>(began.elapsed())
        });
        many.extend(futures_util::future::try_join_all(batch).await?);
    }
    say("warm, 16 at once", many);
    say("whole batch of 3200", vec![began.elapsed()]);
    Ok(())
}
