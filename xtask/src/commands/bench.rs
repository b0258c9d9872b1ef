//! `cargo xtask bench`: measures on a release build and a disk that really syncs. Arguments go to the benchmark program.
//! `cargo xtask bench compare` also brings the peers that it measures beside Servo, `cargo xtask bench pair` builds of Servo itself.

mod pair;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::env::{Durability, Environment, peers};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = workspace::root()?;
    // Both in one build: apart, cargo would choose other features for what they share and compile it twice.
    process::run(workspace::cargo_locked(&root, "build").args([
        "--release",
        "--package",
        "servo",
        "--package",
        "servo-bench",
    ]))?;
    let mut command = Command::new(workspace::target(&root).join("release/servo-bench"));
    if args.first().is_some_and(|first| first == "pair") {
        process::run(Command::new(command.get_program()).args(args).arg("--check"))?;
        return process::run(command.current_dir(&root).args(pair::with_programs(&root, args)?));
    }
    if args.first().is_some_and(|first| first == "compare") {
        // A mistake in the arguments is told before minutes are spent on the peers.
        process::run(Command::new(command.get_program()).args(args).arg("--check"))?;
        command.env("SERVO_BENCH_RESTATE", peers::restate()?);
        command.env("SERVO_BENCH_PEERS", build_peers(&root)?);
    }
    let environment = Environment::start(Durability::Real)?;
    process::run(environment.apply(command.current_dir(&root).args(args)))?;
    environment.stop()
}

/// The peers' programs; gives the folder they are in. Their dependencies are not the workspace's.
fn build_peers(root: &Path) -> Result<PathBuf> {
    let target = workspace::target(root).join("peers/bench");
    let mut build = workspace::cargo_locked(root, "build");
    build.args(["--release", "--manifest-path", "bench/peers/Cargo.toml", "--target-dir"]).arg(&target);
    process::run(&mut build)?;
    Ok(target.join("release"))
}
