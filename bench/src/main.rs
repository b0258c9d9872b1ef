//! Benchmarks: every figure is a ratio to something bare, measured in the same run on the same disk.
//!
//! `cargo xtask bench` runs all of it and prints Markdown tables; `docs/benchmarks.md` keeps the last published ones.
//! Nothing here is a test: a loaded machine gives worse figures, not a red build.
#![expect(clippy::print_stdout, reason = "a command line program")]
#![expect(clippy::disallowed_methods, reason = "benchmarks read the clock and the environment")]

mod compare;
mod durable;
mod fair;
mod fold;
mod handler;
mod history;
mod lists;
mod machine;
mod pair;
mod postgres;
mod rows;
mod server;
mod sqlite;
mod stats;
mod steps;
mod suspended;
mod waits;

use anyhow::Result;
use clap::Parser;

/// Measures Servo beside bare databases. `servo-bench compare` measures it beside its peers.
#[derive(Debug, Parser)]
struct Args {
    /// Only these: machine, sqlite, postgres, fold, history, lists, durable, steps, waits, suspended, server, fair.
    #[arg(value_name = "NAME")]
    only: Vec<String>,
    /// Seconds per measurement; several are taken in turn.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Rounds, each measuring both sides.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The folder to measure in; on a disk that really syncs.
    #[arg(long, default_value = "target/bench-data")]
    dir: std::path::PathBuf,
    /// The servo program; beside this one if not given.
    #[arg(long)]
    servo: Option<std::path::PathBuf>,
    /// Open runs before the kill.
    #[arg(long, default_value_t = 10_000)]
    open_runs: usize,
    /// Invocations of the tenant that floods, and of the one beside it.
    #[arg(long, default_value_t = 100_000)]
    flood: usize,
    #[arg(long, default_value_t = 400)]
    probes: usize,
}

/// As in the product.
#[global_allocator]
static ALLOCATOR: servo_heap::Heap = servo_heap::Heap;

/// Both sides of every comparison use as many.
pub(crate) const APPENDERS: usize = 64;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let _ = rustls::crypto::ring::default_provider().install_default();
    match arguments.split_first() {
        Some((first, rest)) if first == "compare" => return compare::run(rest),
        Some((first, rest)) if first == "pair" => return pair::run(rest),
        Some((first, rest)) if first == "handler" => return handler::run(rest),
        Some((first, rest)) if first == "together" => return handler::together::run(rest),
        Some((first, rest)) if first == "load" => return compare::load::alone(rest),
        _ => {}
    }
    let args = Args::parse();
    std::fs::create_dir_all(&args.dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    machine::print(&args)?;
    if wanted("sqlite") {
        sqlite::run(&args, &runtime)?;
    }
    if wanted("history") {
        history::run(&args, &runtime)?;
    }
    if wanted("lists") {
        lists::run(&args, &runtime)?;
    }
    if wanted("durable") {
        durable::run(&args, &runtime)?;
    }
    if wanted("steps") {
        steps::run(&args, &runtime)?;
    }
    if wanted("waits") {
        waits::run(&args, &runtime)?;
    }
    if wanted("suspended") {
        suspended::run(&args, &runtime)?;
    }
    if wanted("postgres") {
        postgres::run(&args, &runtime)?;
    }
    if wanted("fold") {
        fold::run()?;
    }
    if wanted("server") {
        server::run(&args, &runtime)?;
    }
    if wanted("fair") {
        fair::run(&args, &runtime)?;
    }
    Ok(())
}
