//! Replay of long executions, engine and handlers in one program: from the answer to a callback to the end of the
//! execution, which is one invocation that reads and passes every recorded operation. Twice the operations must take twice
//! the time.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use servo_embedded::{RuntimeConfig, Servo, Start};
use servo_sdk::{DurableContext, DurableError};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::calm::Calm;
use super::figure::{Figure, Goal, Report};
use super::{Plan, note};
use crate::stats::median;

const FUNCTION: &str = "replay";
const WITHIN: Duration = Duration::from_secs(120);
/// Times a length is replayed; one execution each.
const TIMES: usize = 3;

async fn long(steps: usize, ctx: DurableContext, asked: UnboundedSender<String>) -> Result<usize, DurableError> {
    let result = "x".repeat(98);
    for _ in 0..steps {
        let _: String = ctx.step(|_| Ok(result.clone()), None).await?;
    }
    let callback = ctx.create_callback::<u64>(None).await?;
    let _ = asked.send(callback.callback_id().to_owned());
    callback.result().await?;
    Ok(steps)
}

pub(crate) async fn run(plan: &Plan, dir: &Path, calm: &mut Calm, report: &mut Report) -> Result<()> {
    calm.wait().await?;
    let dir = tempfile::tempdir_in(dir)?;
    let (asked, mut callbacks) = unbounded_channel();
    let handler = move |steps: usize, ctx: DurableContext| long(steps, ctx, asked.clone());
    let servo = Servo::builder().sqlite(dir.path()).function(FUNCTION, handler).config(RuntimeConfig::default());
    let servo = servo.start().await?;
    let mut per_operation = Vec::new();
    for operations in plan.replayed {
        note(&format!("replay of {operations} operations"));
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let execution = servo.start(FUNCTION, Start::with(&operations)?).await?;
            let id = tokio::time::timeout(WITHIN, callbacks.recv()).await?.context("the handler asks")?;
            // The invocation that asked has to end first; else nothing is replayed.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let from = Instant::now();
            servo.callback_succeed(&id, &1).await?;
            let _: usize = tokio::time::timeout(WITHIN, execution.result()).await??;
            times.push(from.elapsed().as_secs_f64() * 1e3);
            // The replay created the callback again, which says the same id.
            while callbacks.try_recv().is_ok() {}
        }
        report.fact(format!("replay of {operations} operations"), median(&times), "ms");
        per_operation.push(median(&times) / operations as f64 * 1e3);
    }
    servo.shutdown().await;
    if let [first, .., last] = per_operation.as_slice() {
        let [short, .., long] = plan.replayed;
        let name = format!("replay, time per operation: {long} beside {short}");
        let (servo, other, peer) = (vec![*last], vec![*first], "itself".to_owned());
        report.figures.push(Figure { name, unit: "µs", peer, servo, other, goal: Goal::AtMost(1.2) });
    }
    Ok(())
}
