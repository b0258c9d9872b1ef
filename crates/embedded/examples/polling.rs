//! Waiting for something that calls nobody back: ask, wait, ask again. Between two questions nothing runs.
//!
//! `cargo run -p servo-embedded --example polling`
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use serde::{Deserialize, Serialize};
use servo_embedded::{Error, Servo};
use servo_sdk::{DurableContext, DurableError, Duration, StepConfig, WaitDecision, WaitForConditionConfig};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Export {
    job: String,
    percent: u32,
}

/// Stands for a request to the system that does the work.
fn progress(export: Export) -> Export {
    Export { percent: (export.percent + 50).min(100), ..export }
}

pub(crate) async fn export(table: String, ctx: DurableContext) -> Result<String, DurableError> {
    let job: String = ctx.step(|_| Ok(format!("export-{table}")), StepConfig::named("begin")).await?;
    let until_done = WaitForConditionConfig::new(Export { job, percent: 0 }, |export: &Export, _checks| {
        if export.percent == 100 { WaitDecision::Done } else { WaitDecision::Continue(Duration::from_seconds(1)) }
    });
    let done = ctx.wait_for_condition(|export, _| Ok(progress(export)), until_done.named("exported")).await?;
    Ok(format!("{} is ready", done.job))
}

pub(crate) async fn demo() -> Result<String, Error> {
    let servo = Servo::builder().in_memory().function("export", export).start().await?;
    let said = servo.call("export", &"orders").await?;
    servo.shutdown().await;
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    println!("{}", demo().await?);
    Ok(())
}
