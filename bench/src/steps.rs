//! Durable functions on Postgres with the engine in the same program: steps per second, the processor time of a step on
//! both sides, and a step's time with one workflow at a time. Beside other work on the machine the processor time says most.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;

use crate::compare::process;
use crate::postgres::Database;
use crate::stats::median;
use crate::{Args, durable};

const LANES: usize = 64;
const STEPS: f64 = 10.0;

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let url = std::env::var("SERVO_TEST_POSTGRES_URL").context("`cargo xtask bench` starts a Postgres and names it")?;
    let (mut rates, mut own, mut theirs, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        let database = Database::create(&url, round)?;
        runtime.block_on(async {
            let servo = durable::start(durable::builder().postgres(&database.url)).await?;
            durable::rate(&servo, LANES, 0.3).await?;
            let all = process::all()?;
            let server = server_of(&all, &database.name).context("no server process serves the database")?;
            let before = cpu(&all, server);
            let (done, rate) = durable::done(&servo, LANES, args.seconds).await?;
            let after = cpu(&process::all()?, server);
            alone.push(durable::step_p50(&servo, args.seconds).await?);
            servo.shutdown().await;
            let micros = |seconds: f64| seconds * 1e6 / (done * STEPS);
            rates.push(rate * STEPS);
            own.push(micros(after.0 - before.0));
            theirs.push(micros(after.1 - before.1));
            anyhow::Ok(())
        })?;
    }
    println!("## Durable functions on Postgres, engine in the program, {LANES} workflows of ten steps at once\n");
    println!(
        "| steps/s | processor time per step, the program, µs | the server, µs | one at a time, p50 per step, µs |"
    );
    println!("|---|---|---|---|");
    println!("| {:.0} | {:.0} | {:.0} | {:.0} |\n", median(&rates), median(&own), median(&theirs), median(&alone));
    Ok(())
}

type All = BTreeMap<u32, (u32, u64)>;

/// Of this program and of the server's processes, in seconds.
fn cpu(all: &All, server: u32) -> (f64, f64) {
    (process::tree_seconds(all, std::process::id()), process::tree_seconds(all, server))
}

/// The parent of the processes that serve a database. Those have its name in their title.
fn server_of(all: &All, database: &str) -> Option<u32> {
    all.iter().find_map(|(id, (parent, _))| {
        let title = std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        (title.starts_with("postgres: ") && title.split(' ').any(|word| word == database)).then_some(*parent)
    })
}
