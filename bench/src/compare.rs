//! `servo-bench compare`: Servo side by side with its peers, in one run on one machine, as ratios. `cargo xtask bench
//! compare` installs and builds the peers and starts a Postgres. Everything it starts is a child process on loopback that
//! ends with it.

pub(crate) mod calm;
mod embedded;
mod figure;
mod http;
mod lane;
pub(crate) mod load;
pub(crate) mod process;
mod recovery;
mod replay;
mod restate;
pub(crate) mod servo;
pub(crate) mod subject;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};

use calm::Calm;
use figure::Report;

/// The Restate server, and the folder of the programs of `bench/peers`.
const RESTATE: &str = "SERVO_BENCH_RESTATE";
const PEERS: &str = "SERVO_BENCH_PEERS";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Http,
    Embedded,
    Recovery,
    Replay,
}

/// Measures Servo beside Restate and dbos.
#[derive(Debug, Parser)]
#[command(name = "servo-bench compare")]
struct Args {
    /// Only these parts.
    #[arg(value_name = "PART")]
    only: Vec<Part>,
    /// One short round: shows that everything works, not how fast.
    #[arg(long)]
    quick: bool,
    /// All values as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Only looks at the arguments.
    #[arg(long, hide = true)]
    check: bool,
    /// Rounds, each measuring every subject.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// The folder to measure in; on a disk that really syncs.
    #[arg(long, default_value = "target/bench-data")]
    dir: std::path::PathBuf,
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("is a number of seconds from 0.1 to 60".to_owned()),
    }
}

/// How much is measured.
#[derive(Debug)]
struct Plan {
    rounds: usize,
    seconds: f64,
    in_flight: usize,
    replayed: [usize; 3],
    /// Of the whole run, for waiting until others leave the machine alone.
    patience: Duration,
}

impl Plan {
    fn of(args: &Args) -> Self {
        if args.quick {
            let patience = Duration::ZERO;
            return Self { rounds: 1, seconds: 1.0, in_flight: 1_000, replayed: [100, 500, 1_000], patience };
        }
        let (rounds, seconds) = (args.rounds.into(), args.seconds);
        let patience = Duration::from_secs(150);
        Self { rounds, seconds, in_flight: 10_000, replayed: [1_000, 5_000, 10_000], patience }
    }
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set; `cargo xtask bench compare` sets it"))
}

/// Progress, where it does not disturb what is read from standard output.
#[expect(clippy::print_stderr, reason = "a command line program")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let args = Args::parse_from(std::iter::once("servo-bench compare".to_owned()).chain(arguments.iter().cloned()));
    let plan = Plan::of(&args);
    if args.check {
        return Ok(());
    }
    std::fs::create_dir_all(&args.dir)?;
    let dir = args.dir.canonicalize()?;
    let wanted = |part: Part| args.only.is_empty() || args.only.contains(&part);
    let (mut report, mut calm) = (Report::default(), Calm::new(plan.patience));
    let sync = crate::machine::fdatasync(&dir)?;
    report.fact("fdatasync of 4 KiB, p50", sync.0, "µs");
    report.fact("fdatasync of 4 KiB, p99", sync.1, "µs");
    // One thread: the load generator takes no more of the machine than it must.
    let loading = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // As many as the peer's program has.
    let working = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut failed = Vec::new();
    for part in [Part::Http, Part::Embedded, Part::Recovery, Part::Replay].into_iter().filter(|part| wanted(*part)) {
        let (plan, dir, calm, report) = (&plan, dir.as_path(), &mut calm, &mut report);
        let measured = match part {
            Part::Http => loading.block_on(http::run(plan, dir, calm, report)),
            Part::Embedded => working.block_on(embedded::run(plan, dir, calm, report)),
            Part::Recovery => loading.block_on(recovery::run(plan, dir, calm, report)),
            Part::Replay => working.block_on(replay::run(plan, dir, calm, report)),
        };
        // Minutes of measuring are not thrown away because a later part fails.
        failed.extend(measured.err().map(|error| format!("{part:?}: {error:#}")));
    }
    calm.tell(&mut report);
    if args.json {
        println!("{:#}", report.json());
    } else {
        println!("{}", report.table());
    }
    if failed.is_empty() { Ok(()) } else { bail!("not everything could be measured: {}", failed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Args, String> {
        let arguments = std::iter::once("compare").chain(arguments.iter().copied());
        Args::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_arguments_are_refused_with_what_is_right() {
        let part = parsed(&["htp"]).unwrap_err();
        assert!(part.contains("http, embedded, recovery, replay"), "{part}");
        assert!(parsed(&["--rounds", "0"]).unwrap_err().contains("1..=20"));
        assert!(parsed(&["--seconds", "900"]).unwrap_err().contains("from 0.1 to 60"));
        assert!(parsed(&["--fast"]).is_err());
    }

    #[test]
    fn a_quick_run_is_short_and_a_full_one_owes_the_whole_figures() {
        let quick = Plan::of(&parsed(&["--quick"]).unwrap());
        assert!(quick.rounds == 1 && quick.in_flight < 10_000);
        let full = Plan::of(&parsed(&["http", "--rounds", "5"]).unwrap());
        assert_eq!((full.rounds, full.in_flight, full.replayed), (5, 10_000, [1_000, 5_000, 10_000]));
    }
}
