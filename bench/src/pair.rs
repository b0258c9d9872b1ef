//! `servo-bench pair OLD NEW`: two builds of the server, loaded in turn by the same generator, as ratios with their 95 %
//! intervals. `cargo xtask bench pair` builds what is given as a revision.
//!
//! Every round starts a server of each build on an empty store, because one server differs from its twin by a few percent,
//! and measures each workload on one and then on the other, the first of them by turns. It judges nothing but the interval.

mod interval;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum as _};
use serde_json::{Value, json};

use crate::compare::calm::Calm;
use crate::compare::{note, seconds, servo};
use interval::Interval;
use workload::{Sample, Workload};

/// Below this a build counts as slower, if the whole interval lies there.
const SLOWER: f64 = 0.97;
const PATIENCE: Duration = Duration::from_secs(300);

/// Measures two builds of Servo side by side.
#[derive(Debug, Parser)]
#[command(name = "servo-bench pair")]
struct Args {
    /// The `servo` program before the change; for `cargo xtask bench pair` also a revision.
    old: PathBuf,
    /// The `servo` program with the change.
    new: PathBuf,
    /// Only these workloads.
    #[arg(value_name = "WORKLOAD")]
    only: Vec<Workload>,
    /// Rounds, each with two new servers; an interval needs at least ten to mean much.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u8).range(2..=60))]
    rounds: u8,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 1.5, value_parser = seconds)]
    seconds: f64,
    /// All values as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Only looks at the arguments.
    #[arg(long, hide = true)]
    check: bool,
    /// The folder to measure in; on a disk that really syncs.
    #[arg(long, default_value = "target/bench-data")]
    dir: PathBuf,
}

/// One workload: what both builds showed, round by round.
#[derive(Debug)]
struct Pairs {
    workload: Workload,
    old: Vec<Sample>,
    new: Vec<Sample>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let args = Args::parse_from(std::iter::once("servo-bench pair".to_owned()).chain(arguments.iter().cloned()));
    if args.check {
        return Ok(());
    }
    for program in [&args.old, &args.new] {
        ensure!(program.is_file(), "there is no program {}", program.display());
    }
    std::fs::create_dir_all(&args.dir)?;
    let dir = args.dir.canonicalize()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (pairs, calm) = runtime.block_on(measure(&args, &dir))?;
    if args.json {
        println!("{:#}", document(&pairs));
    } else {
        println!("{}", table(&pairs, &calm.told()));
    }
    Ok(())
}

async fn measure(args: &Args, dir: &Path) -> Result<(Vec<Pairs>, Calm)> {
    let wanted = Workload::value_variants().iter().filter(|one| args.only.is_empty() || args.only.contains(one));
    let mut pairs: Vec<Pairs> =
        wanted.map(|workload| Pairs { workload: *workload, old: Vec::new(), new: Vec::new() }).collect();
    let mut calm = Calm::new(PATIENCE);
    for round in 0..args.rounds {
        note(&format!("pair, round {} of {}", round + 1, args.rounds));
        calm.wait().await?;
        let mut old = servo::start_program(&args.old, dir).await?;
        let mut new = servo::start_program(&args.new, dir).await?;
        for (at, pair) in pairs.iter_mut().enumerate() {
            let (old, new) = (&mut old, &mut new);
            // Neither build is always the first of a pair.
            if (usize::from(round) + at).is_multiple_of(2) {
                pair.old.push(pair.workload.measure(old, args.seconds).await?);
                pair.new.push(pair.workload.measure(new, args.seconds).await?);
            } else {
                pair.new.push(pair.workload.measure(new, args.seconds).await?);
                pair.old.push(pair.workload.measure(old, args.seconds).await?);
            }
        }
        old.stop()?;
        new.stop()?;
    }
    Ok((pairs, calm))
}

impl Pairs {
    /// Above 1: the new build does more in the same time.
    fn speed(&self) -> Interval {
        self.ratios(|old, new| new.speed / old.speed)
    }

    /// Above 1: the new build needs less of the processor for the same work.
    fn thrift(&self) -> Interval {
        self.ratios(|old, new| old.cpu / new.cpu)
    }

    fn ratios(&self, of: impl Fn(&Sample, &Sample) -> f64) -> Interval {
        let ratios: Vec<f64> = self.old.iter().zip(&self.new).map(|(old, new)| of(old, new)).collect();
        Interval::of(&ratios)
    }

    fn verdict(&self) -> &'static str {
        if self.speed().high < SLOWER || self.thrift().high < SLOWER { "SLOWER" } else { "" }
    }
}

fn table(pairs: &[Pairs], told: &str) -> String {
    let mut lines = vec![
        "| workload | speed, new ÷ old | 95 % | processor time, old ÷ new | 95 % | |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for pair in pairs {
        let (speed, thrift) = (pair.speed(), pair.thrift());
        lines.push(format!(
            "| {} | {:.3} | {:.3} to {:.3} | {:.3} | {:.3} to {:.3} | {} |",
            pair.workload.title(),
            speed.ratio,
            speed.low,
            speed.high,
            thrift.ratio,
            thrift.low,
            thrift.high,
            pair.verdict(),
        ));
    }
    lines.push(String::new());
    lines.push(format!(
        "{} rounds. SLOWER: a whole interval lies below {SLOWER}. {told}",
        pairs.first().map_or(0, |pair| pair.old.len())
    ));
    lines.join("\n")
}

fn document(pairs: &[Pairs]) -> Value {
    let samples = |samples: &[Sample]| -> Value {
        samples.iter().map(|sample| json!({"speed": sample.speed, "cpuMicros": sample.cpu})).collect()
    };
    let interval = |of: Interval| json!({"ratio": of.ratio, "low": of.low, "high": of.high});
    let rows = pairs.iter().map(|pair| {
        json!({"workload": pair.workload.title(), "speed": interval(pair.speed()), "processorTime": interval(pair.thrift()),
            "slower": !pair.verdict().is_empty(), "old": samples(&pair.old), "new": samples(&pair.new)})
    });
    json!({"below": SLOWER, "workloads": rows.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(old: &[(f64, f64)], new: &[(f64, f64)]) -> Pairs {
        let samples = |values: &[(f64, f64)]| values.iter().map(|&(speed, cpu)| Sample { speed, cpu }).collect();
        Pairs { workload: Workload::Steps, old: samples(old), new: samples(new) }
    }

    #[test]
    fn a_build_is_slower_only_if_the_whole_interval_says_so() {
        let old = [(100.0, 10.0), (200.0, 10.0), (150.0, 10.0), (100.0, 10.0)];
        let slower = pairs(&old, &[(90.0, 10.0), (181.0, 10.0), (134.0, 10.0), (90.0, 10.0)]);
        assert_eq!(slower.verdict(), "SLOWER");
        let unsure = pairs(&old, &[(90.0, 10.0), (220.0, 10.0), (120.0, 10.0), (101.0, 10.0)]);
        assert_eq!(unsure.verdict(), "");
        // As fast, with more of the processor.
        let dearer = pairs(&old, &[(100.0, 12.0), (200.0, 12.1), (150.0, 11.9), (100.0, 12.0)]);
        assert_eq!(dearer.verdict(), "SLOWER");
        assert!(table(&[dearer], "").contains("| ten steps, c=64 | 1.000 |"));
    }

    #[test]
    fn arguments_are_two_programs_and_workloads() {
        let parsed =
            |arguments: &[&str]| Args::try_parse_from(std::iter::once("pair").chain(arguments.iter().copied()));
        assert_eq!(parsed(&["a", "b", "steps", "accepted"]).unwrap().only.len(), 2);
        assert!(parsed(&["a"]).is_err());
        assert!(parsed(&["a", "b", "stps"]).unwrap_err().to_string().contains("steps-one"));
        assert!(parsed(&["a", "b", "--rounds", "1"]).is_err());
    }
}
