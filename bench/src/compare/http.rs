//! Over HTTP: empty calls, calls that are only accepted, and executions of ten steps.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::calm::Calm;
use super::figure::{Figure, Goal, Report};
use super::load::{self, Call, Loaded, Until};
use super::process::until;
use super::subject::{Kind, Subject};
use super::{Plan, note};
use crate::stats::median;

const LANES: usize = 64;
const STEPS: f64 = 10.0;
const DRAINED_WITHIN: Duration = Duration::from_secs(90);
const WARM_UP: f64 = 0.7;

/// What is measured of each subject, in the order of the table.
const EMPTY_P50: &str = "empty call, c=1, p50";
const SCRIPT_P50: &str = "empty call in Starlark, c=1, p50";
const SCRIPT_RATE: &str = "empty calls in Starlark, c=64";
const EMPTY_RATE: &str = "empty calls, c=64";
const SENT_RATE: &str = "accepted, c=64";
const STEPS_RATE: &str = "ten steps, c=64";
const STEPS_CPU: &str = "processor time per step, server and handlers";
const STEPS_CPU_SERVER: &str = "processor time per step, server alone";
const STEPS_P50: &str = "ten steps, c=1, p50";

const MEASURED: [(&str, &str); 7] = [
    (STEPS_RATE, "executions/s"),
    (STEPS_CPU, "µs"),
    (STEPS_CPU_SERVER, "µs"),
    (STEPS_P50, "µs"),
    (EMPTY_P50, "µs"),
    (EMPTY_RATE, "calls/s"),
    (SENT_RATE, "calls/s"),
];

/// What only we have, beside what comes nearest to it.
const SCRIPTS: [(&str, &str, &str, Goal); 2] =
    [(SCRIPT_P50, EMPTY_P50, "µs", Goal::AtMost(0.5)), (SCRIPT_RATE, EMPTY_RATE, "calls/s", Goal::AtLeast(4.0))];

const OURS: [Kind; 2] = [Kind::Servo, Kind::ServoTogether];
const PEERS: [Kind; 2] = [Kind::Restate, Kind::RestateTuned];

type Sample = BTreeMap<&'static str, f64>;

/// Every subject in every round, each with a store of its own.
pub(crate) async fn run(plan: &Plan, dir: &Path, calm: &mut Calm, report: &mut Report) -> Result<()> {
    let mut samples: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for round in 1..=plan.rounds {
        for kind in OURS.into_iter().chain(PEERS) {
            calm.wait().await?;
            note(&format!("http, round {round}: {}", kind.name()));
            let mut subject = Subject::start(kind, dir).await?;
            samples.entry(kind.name()).or_default().push(measure(&mut subject, plan.seconds).await?);
            subject.stop()?;
        }
    }
    let values = |kind: Kind, name: &str| -> Vec<f64> {
        let rounds = samples.get(kind.name()).into_iter().flatten();
        rounds.filter_map(|sample| sample.get(name).copied()).collect()
    };
    for peer in PEERS {
        for ours in OURS {
            for (name, unit) in MEASURED {
                let (servo, other, goal) = (values(ours, name), values(peer, name), goal(name, peer));
                let shown = if ours == Kind::Servo { name.to_owned() } else { format!("{name} (handlers inside)") };
                report.figures.push(Figure { name: shown, unit, peer: peer.name().to_owned(), servo, other, goal });
            }
        }
        for (name, theirs, unit, goal) in SCRIPTS {
            let goal = if peer == Kind::Restate { goal } else { Goal::None };
            let (servo, other) = (values(Kind::Servo, name), values(peer, theirs));
            let name = name.to_owned();
            report.figures.push(Figure { name, unit, peer: peer.name().to_owned(), servo, other, goal });
        }
    }
    Ok(())
}

fn goal(name: &str, peer: Kind) -> Goal {
    match (name, peer) {
        (STEPS_RATE, Kind::Restate) => Goal::AtLeast(4.0),
        (STEPS_RATE, _) => Goal::AtLeast(2.0),
        (STEPS_CPU, Kind::Restate) => Goal::AtMost(1.0 / 3.0),
        (STEPS_P50 | EMPTY_P50, _) => Goal::AtMost(1.0),
        (SENT_RATE, Kind::Restate) => Goal::AtLeast(4.0),
        (EMPTY_RATE | SENT_RATE, _) => Goal::AtLeast(1.0),
        _ => Goal::None,
    }
}

async fn measure(subject: &mut Subject, seconds: f64) -> Result<Sample> {
    let calls = subject.calls.clone();
    let mut sample = Sample::new();
    loaded(subject, &calls.empty, LANES, WARM_UP).await?;
    sample.insert(EMPTY_P50, median(&loaded(subject, &calls.empty, 1, seconds).await?.times));
    sample.insert(EMPTY_RATE, loaded(subject, &calls.empty, LANES, seconds).await?.per_second);
    if let Some(script) = &calls.script {
        loaded(subject, script, LANES, WARM_UP).await?;
        sample.insert(SCRIPT_P50, median(&loaded(subject, script, 1, seconds).await?.times));
        sample.insert(SCRIPT_RATE, loaded(subject, script, LANES, seconds).await?.per_second);
    }
    loaded(subject, &calls.steps, LANES, WARM_UP).await?;
    sample.insert(STEPS_P50, median(&loaded(subject, &calls.steps, 1, seconds).await?.times));
    let (server, handler) = subject.cpu()?;
    let steps = loaded(subject, &calls.steps, LANES, seconds).await?;
    let (server, handler) = {
        let now = subject.cpu()?;
        (now.0 - server, now.1 - handler)
    };
    sample.insert(STEPS_RATE, steps.per_second);
    let per_step = |cpu: f64| cpu * 1e6 / (steps.calls as f64 * STEPS);
    sample.insert(STEPS_CPU, per_step(server + handler));
    sample.insert(STEPS_CPU_SERVER, per_step(server));
    subject.ask("reset")?;
    let sent = loaded(subject, &calls.empty_send, LANES, seconds).await?;
    sample.insert(SENT_RATE, sent.per_second);
    // What was accepted also runs, before anything else is measured.
    let ended = async || Ok((subject.count("ended")? >= sent.calls as u64).then_some(()));
    until("accepted calls run", DRAINED_WITHIN, ended).await?;
    Ok(sample)
}

async fn loaded(subject: &Subject, call: &Call, lanes: usize, seconds: f64) -> Result<Loaded> {
    load::run(subject.address, call, lanes, Until::Seconds(seconds)).await
}
