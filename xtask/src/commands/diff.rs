//! `cargo xtask diff`: the same random operations on the memory model, SQLite and Postgres, many more than CI has time for.

use anyhow::Result;

use crate::commands::{only_number, split_passthrough};
use crate::env::{Durability, Environment};
use crate::{process, workspace};

const SEQUENCES: u64 = 10_000;
const STORES: [&str; 2] = ["servo-store-sqlite", "servo-store-postgres"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, passthrough) = split_passthrough(args);
    let sequences = only_number(own, "--sequences", SEQUENCES)?;
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Fast)?;
    let mut command = workspace::campaign(&root, &STORES, "differential", passthrough);
    command.env("SERVO_DIFF_SEQUENCES", sequences.to_string());
    process::run(environment.apply(&mut command))?;
    environment.stop()
}
