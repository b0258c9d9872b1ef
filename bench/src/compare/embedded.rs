//! Engine and handlers in one program: Servo on SQLite and on Postgres beside dbos, which has Postgres only. Workflows of
//! ten steps with results of 100 bytes, 64 at once.

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
    for round in 1..=plan.rounds {
        calm.wait().await?;
        note(&format!("embedded, round {round}: servo on SQLite"));
        let folder = tempfile::tempdir_in(dir)?;
        let servo = durable::start(durable::builder().sqlite(folder.path())).await?;
        sqlite.push(durable::rate(&servo, LANES, plan.seconds).await? * STEPS);
        servo.shutdown().await;

        calm.wait().await?;
        note(&format!("embedded, round {round}: servo on Postgres"));
        let database = Database::create(&url, round)?;
        let servo = durable::start(durable::builder().postgres(&database.url)).await?;
        postgres.push(durable::rate(&servo, LANES, plan.seconds).await? * STEPS);
        servo.shutdown().await;

        let mut best: f64 = 0.0;
        for connections in CONNECTIONS {
            calm.wait().await?;
            note(&format!("embedded, round {round}: dbos with {connections} connections"));
            let database = Database::create(&url, round + connections * 1_000)?;
            best = best.max(dbos_rate(&database.url, connections, plan.seconds, dir)? * STEPS);
        }
        dbos.push(best);
    }
    for (name, servo, goal) in [("SQLite", sqlite, 6.0), ("Postgres", postgres, 2.0)] {
        report.figures.push(Figure {
            name: format!("embedded, 64 workflows of ten steps, servo on {name}"),
            unit: "steps/s",
            peer: "dbos 0.5 (Rust) on Postgres".to_owned(),
            servo,
            other: dbos.clone(),
            goal: Goal::AtLeast(goal),
        });
    }
    Ok(())
}

fn dbos_rate(url: &str, connections: usize, seconds: f64, dir: &Path) -> Result<f64> {
    let mut command = Command::new(Path::new(&variable(PEERS)?).join("dbos_load"));
    command.args([url, &LANES.to_string(), &seconds.to_string(), &connections.to_string()]);
    let mut process = Process::start(&mut command, &dir.join("dbos.log"))?;
    let said = process.line().context("dbos.log in the benchmark's folder says more")?;
    process.stop()?;
    said["perSecond"].as_f64().with_context(|| format!("no rate in {said}"))
}
