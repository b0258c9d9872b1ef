//! `cargo xtask bench`: measures on a release build and a disk that really syncs. Arguments go to the benchmark program.

use std::process::Command;

use anyhow::Result;

use crate::env::{Durability, Environment};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Real)?;
    // Both in one build: apart, cargo would choose other features for what they share and compile it twice.
    process::run(workspace::cargo_locked(&root, "build").args([
        "--release",
        "--package",
        "servo",
        "--package",
        "servo-bench",
    ]))?;
    let mut command = Command::new(workspace::target(&root).join("release/servo-bench"));
    process::run(environment.apply(command.current_dir(&root).args(args)))?;
    environment.stop()
}
