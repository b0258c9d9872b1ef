//! Engine and handlers in one program: Servo on SQLite and on Postgres beside dbos, which has Postgres only. Workflows of
//! ten steps with results of 100 bytes, 64 at once and one after the other.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::calm::Calm;
use super::figure::{Figure, Goal, Report};
use super::process::Process;
use super::{PEERS, Plan, note, variable};
use crate::durable;
use crate::postgres::Database;

const LANES: usize = 64;
const STEPS: f64 = 10.0;
/// Its own default, and as many as there are workflows at once; the better one of a round counts.
const CONNECTIONS: [usize; 2] = [10, 64];

pub(crate) async fn run(plan: &Plan, dir: &Path, calm: &mut Calm, report: &mut Report) -> Result<()> {
    let url = std::env::var("SERVO_TEST_POSTGRES_URL").context("`cargo xtask bench` starts a Postgres and names it")?;
    let (mut sqlite, mut postgres, mut dbos) = (Vec::new(), Vec::new(), Vec::new());
    // A step's median time with one workflow at a time.
    let (mut alone_sqlite, mut alone_postgres, mut alone_dbos) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        calm.wait().await?;
        note(&format!("embedded, round {round}: servo on SQLite"));
        let folder = tempfile::tempdir_in(dir)?;
        let servo = durable::start(durable::builder().sqlite(folder.path())).await?;
        sqlite.push(durable::rate(&servo, LANES, plan.seconds).await? * STEPS);
        alone_sqlite.push(durable::step_p50(&servo, plan.seconds).await?);
        servo.shutdown().await;

        calm.wait().await?;
        note(&format!("embedded, round {round}: servo on Postgres"));
        let database = Database::create(&url, round)?;
        let servo = durable::start(durable::builder().postgres(&database.url)).await?;
        postgres.push(durable::rate(&servo, LANES, plan.seconds).await? * STEPS);
        alone_postgres.push(durable::step_p50(&servo, plan.seconds).await?);
        servo.shutdown().await;

        let (mut best, mut soonest) = (0.0_f64, f64::INFINITY);
        for connections in CONNECTIONS {
            calm.wait().await?;
            note(&format!("embedded, round {round}: dbos with {connections} connections"));
            let database = Database::create(&url, round + connections * 1_000)?;
            let load = Dbos { url: &database.url, connections, seconds: plan.seconds, dir };
            best = best.max(load.run(LANES, "perSecond")? * STEPS);
            soonest = soonest.min(load.run(1, "p50Us")? / STEPS);
        }
        dbos.push(best);
        alone_dbos.push(soonest);
    }
    let rate = ("64 workflows of ten steps", "steps/s", dbos);
    let alone = ("one workflow of ten steps at a time, p50 per step", "µs", alone_dbos);
    for ((what, unit, other), name, servo, goal) in [
        (rate.clone(), "SQLite", sqlite, Goal::AtLeast(6.0)),
        (rate, "Postgres", postgres, Goal::AtLeast(2.0)),
        (alone.clone(), "SQLite", alone_sqlite, Goal::AtMost(1.0)),
        (alone, "Postgres", alone_postgres, Goal::AtMost(1.0)),
    ] {
        let (name, peer) = (format!("embedded, {what}, servo on {name}"), "dbos 0.5 (Rust) on Postgres".to_owned());
        report.figures.push(Figure { name, unit, peer, servo, other, goal });
    }
    Ok(())
}

/// One program of dbos.
struct Dbos<'a> {
    url: &'a str,
    connections: usize,
    seconds: f64,
    dir: &'a Path,
}

impl Dbos<'_> {
    /// What it says under a name.
    fn run(&self, lanes: usize, name: &str) -> Result<f64> {
        let Self { url, connections, seconds, dir } = self;
        let mut command = Command::new(Path::new(&variable(PEERS)?).join("dbos_load"));
        command.args([url, &lanes.to_string() as &str, &seconds.to_string(), &connections.to_string()]);
        let mut process = Process::start(&mut command, &dir.join("dbos.log"))?;
        let said = process.line().context("dbos.log in the benchmark's folder says more")?;
        process.stop()?;
        said[name].as_f64().with_context(|| format!("no {name} in {said}"))
    }
}
