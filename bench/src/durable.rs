//! Durable functions with the engine in the same program: steps per second, and what a step costs when a run is long.

use std::time::{Duration, Instant};

use anyhow::Result;
use servo_embedded::{Builder, Servo};
use servo_sdk::{DurableContext, DurableError};
use tokio::runtime::Runtime;

use crate::Args;
use crate::stats::median;

pub(crate) const FUNCTION: &str = "bench";
const STEPS: i64 = 10;
const LONG: i64 = 1_000;
const CONCURRENT: usize = 64;

/// As many steps as its input says, each with a result of 100 bytes, and the time of each hundred. A negative number is a
/// wait of so many seconds.
async fn workflow(steps: i64, ctx: DurableContext) -> Result<Vec<u64>, DurableError> {
    if steps < 0 {
        ctx.wait(servo_sdk::Duration::from_seconds(steps.unsigned_abs()), None).await?;
        return Ok(Vec::new());
    }
    let result = "x".repeat(98);
    let mut times = Vec::new();
    let mut start = Instant::now();
    for step in 1..=steps {
        let _: String = ctx.step(|_| Ok(result.clone()), None).await?;
        if step % 100 == 0 {
            times.push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
            start = Instant::now();
        }
    }
    Ok(times)
}

/// An engine with the measured function; the store is still to be chosen.
pub(crate) fn builder() -> Builder {
    Servo::builder().function(FUNCTION, workflow)
}

/// Started, with its authority.
pub(crate) async fn start(builder: Builder) -> Result<Servo> {
    let servo = builder.start().await?;
    while servo.runtime().fence().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(servo)
}

/// Workflows one after the other in so many lanes, for a while; gives workflows per second.
async fn lanes(servo: &Servo, lanes: usize, seconds: f64) -> Result<(f64, Vec<f64>)> {
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..lanes {
        let servo = servo.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while start.elapsed().as_secs_f64() < seconds {
                let one = Instant::now();
                let _: Vec<u64> = servo.call(FUNCTION, &STEPS).await?;
                times.push(one.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok((times.len() as f64 / start.elapsed().as_secs_f64(), times))
}

/// Workflows of ten steps: how many in all, and per second.
pub(crate) async fn done(servo: &Servo, many: usize, seconds: f64) -> Result<(f64, f64)> {
    let (rate, times) = lanes(servo, many, seconds).await?;
    Ok((times.len() as f64, rate))
}

/// Workflows of ten steps per second, warm.
pub(crate) async fn rate(servo: &Servo, many: usize, seconds: f64) -> Result<f64> {
    lanes(servo, many, 0.7).await?;
    Ok(lanes(servo, many, seconds).await?.0)
}

/// One workflow of ten steps after the other: the median time of a step, in microseconds.
pub(crate) async fn step_p50(servo: &Servo, seconds: f64) -> Result<f64> {
    let (_, times) = lanes(servo, 1, seconds).await?;
    Ok(median(&times) / STEPS as f64)
}

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let seconds = args.seconds;
    let (many, one, times, long) = runtime.block_on(async {
        let servo = start(builder().sqlite(dir.path())).await?;
        let many = rate(&servo, CONCURRENT, seconds).await?;
        let (one, times) = lanes(&servo, 1, seconds).await?;
        let long: Vec<u64> = servo.call(FUNCTION, &LONG).await?;
        servo.shutdown().await;
        anyhow::Ok((many, one, times, long))
    })?;
    let steps = STEPS as f64;
    println!("## Durable functions, engine in the program (SQLite)\n");
    println!("| {STEPS}-step workflows, results of 100 bytes | steps/s | p50 per step µs |\n|---|---|---|");
    println!("| {CONCURRENT} at once | {:.0} | |", many * steps);
    println!("| one at a time | {:.0} | {:.0} |\n", one * steps, median(&times) / steps);
    let (first, last) = (long.first().copied().unwrap_or(0), long.last().copied().unwrap_or(0));
    println!("| one workflow of {LONG} steps | µs per step |\n|---|---|");
    println!("| first 100 | {:.0} |\n| last 100 | {:.0} |\n", first as f64 / 100.0, last as f64 / 100.0);
    Ok(())
}
