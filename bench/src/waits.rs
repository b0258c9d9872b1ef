//! Waits: how late their ends are recorded and the next invocation comes.

use std::time::{Duration, Instant};

use anyhow::Result;
use servo_embedded::Start;
use servo_model::event::EventBody;
use servo_model::operation::OperationType;
use servo_store::{Position, Store};
use tokio::runtime::Runtime;

use crate::Args;
use crate::durable::{self, FUNCTION};
use crate::stats::percentile;

const WAITS: usize = 10_000;
const OVER: Duration = Duration::from_secs(10);
const SECONDS: i64 = 2;

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let (early, ends, invocations) = runtime.block_on(async {
        let servo = durable::start(durable::builder().sqlite(dir.path())).await?;
        let store = servo.runtime().engine().store().clone();
        let from = Instant::now();
        for number in 0..WAITS {
            let due = OVER.mul_f64(number as f64 / WAITS as f64);
            tokio::time::sleep(due.saturating_sub(from.elapsed())).await;
            let (servo, start) = (servo.clone(), Start::with(&-SECONDS)?);
            tokio::spawn(async move { servo.start(FUNCTION, start).await });
        }
        let measured = loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let measured = measure(store.as_ref()).await?;
            if measured.2.len() >= WAITS || from.elapsed() > OVER * 6 {
                break measured;
            }
        };
        servo.shutdown().await;
        anyhow::Ok(measured)
    })?;
    println!("## Waits (SQLite): {WAITS} of {SECONDS} s, started over {} s\n", OVER.as_secs());
    println!("| | p50 ms | p99 ms | goal |\n|---|---|---|---|");
    println!("| the end is recorded late by | {:.0} | {:.0} | ≤ 50 |", percentile(&ends, 0.5), percentile(&ends, 0.99));
    let (p50, p99) = (percentile(&invocations, 0.5), percentile(&invocations, 0.99));
    println!("| the next invocation is late by | {p50:.0} | {p99:.0} | ≤ 250 |");
    println!("\n{} of {WAITS} ended, {early} early.\n", ends.len());
    Ok(())
}

/// Ends that were early, and how late ends and next invocations were, by the store's clock.
async fn measure(store: &dyn Store) -> Result<(usize, Vec<f64>, Vec<f64>)> {
    let (mut due, mut ends, mut invocations, mut early) = (std::collections::HashMap::new(), Vec::new(), Vec::new(), 0);
    let mut position = Position::START;
    loop {
        let page = store.read_log(position, 10_000).await?;
        if page.events.is_empty() {
            return Ok((early, ends, invocations));
        }
        for stored in &page.events {
            let event = stored.decode().map_err(|invalid| anyhow::anyhow!("{invalid}"))?;
            match &event.body {
                EventBody::OperationUpdated(body) if body.operation_type == OperationType::Wait => {
                    let end = event.at().as_millis() + i64::try_from(body.seconds.unwrap_or(0))? * 1_000;
                    due.insert(event.run_id.clone(), end);
                }
                EventBody::OperationResolved(_) => {
                    if let Some(end) = due.get(&event.run_id) {
                        let late = event.emitted_at.as_millis() - end;
                        early += usize::from(late < 0);
                        ends.push(late as f64);
                    }
                }
                EventBody::HandlerInvoked(body) if body.invocation == 2 => {
                    if let Some(end) = due.get(&event.run_id) {
                        invocations.push((event.emitted_at.as_millis() - end) as f64);
                    }
                }
                _ => {}
            }
        }
        position = page.next;
    }
}
