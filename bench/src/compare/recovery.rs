//! Ten thousand executions in flight, the server killed when half of the steps have run, and started again: everything
//! ends, and no step runs again whose result was recorded. The handlers live on, as other machines would.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::calm::Calm;
use super::figure::{Figure, Goal, Report};
use super::load::{self, Until};
use super::process::until;
use super::subject::{Kind, Subject};
use super::{Plan, note};

const LANES: usize = 64;
const STEPS: u64 = 10;
const WITHIN: Duration = Duration::from_secs(150);

#[derive(Debug)]
struct Recovered {
    /// From the start of the new process: a step runs again, and everything has ended.
    first: f64,
    all: f64,
    lost: u64,
    repeated: u64,
    unrecorded: u64,
}

pub(crate) async fn run(plan: &Plan, dir: &Path, calm: &mut Calm, report: &mut Report) -> Result<()> {
    calm.wait().await?;
    let servo = measure(Kind::Servo, plan.in_flight, dir).await?;
    calm.wait().await?;
    let other = measure(Kind::Restate, plan.in_flight, dir).await?;
    let name = format!("{} in flight, kill -9, start: all ended", plan.in_flight);
    for (name, servo, other) in
        [(name, servo.all, other.all), ("kill -9, start: the first step".to_owned(), servo.first, other.first)]
    {
        let (peer, goal) = (Kind::Restate.name().to_owned(), Goal::None);
        report.figures.push(Figure { name, unit: "s", peer, servo: vec![servo], other: vec![other], goal });
    }
    for (kind, recovered) in [(Kind::Servo, servo), (Kind::Restate, other)] {
        for (what, value) in [
            ("executions lost", recovered.lost),
            ("steps run again after their result was recorded", recovered.repeated),
            ("steps run again whose result was not recorded", recovered.unrecorded),
        ] {
            report.fact(format!("{}: {what}", kind.name()), value as f64, "after kill -9");
        }
    }
    Ok(())
}

async fn measure(kind: Kind, in_flight: usize, dir: &Path) -> Result<Recovered> {
    note(&format!("recovery: {}", kind.name()));
    let mut subject = Subject::start(kind, dir).await?;
    let steps_send = subject.calls.steps_send.clone();
    subject.ask("reset")?;
    subject.ask("hold")?;
    load::run(subject.address, &steps_send, LANES, Until::Calls(in_flight)).await?;
    subject.ask("go")?;
    let all = in_flight as u64;
    let half = all * STEPS / 2;
    until("half of the steps", WITHIN, async || Ok((subject.count("steps")? >= half).then_some(()))).await?;
    subject.server.kill()?;
    let before = subject.count("steps")?;
    let from = Instant::now();
    subject.start_server_again()?;
    let (mut first, mut ended) = (None, false);
    while from.elapsed() < WITHIN && !ended {
        if first.is_none() && subject.count("steps")? > before {
            first = Some(from.elapsed().as_secs_f64());
        }
        // The server's own word counts; the handler's saves asking it while work is left.
        ended = subject.count("finished")? == all && subject.open().await.is_ok_and(|open| open == 0);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seconds = from.elapsed().as_secs_f64();
    let lost = if ended { 0 } else { subject.open().await?.max(all - subject.count("finished")?) };
    let recovered = Recovered {
        first: first.unwrap_or(f64::NAN),
        all: seconds,
        lost,
        repeated: subject.count("repeated")?,
        unrecorded: subject.count("unrecorded")?,
    };
    subject.stop()?;
    Ok(recovered)
}
