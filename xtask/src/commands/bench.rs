//! `cargo xtask bench`: measures on a release build and a disk that really syncs. Arguments go to the benchmark program.

use anyhow::Result;

use crate::env::{Durability, Environment};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Real)?;
    // The server that is measured: the shipped one, without broken variants.
    process::run(workspace::cargo_locked(&root, "build").args(["--release", "--package", "servo"]))?;
    let mut command = workspace::cargo_locked(&root, "run");
    command.args(["--release", "--package", "servo-bench", "--"]).args(args);
    process::run(environment.apply(&mut command))?;
    environment.stop()
}
