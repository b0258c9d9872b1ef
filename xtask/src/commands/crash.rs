//! `cargo xtask crash`: kills processes and cuts the power under real servers, on a disk that really syncs.
//!
//! Without `--full` it runs as many rounds as CI does; with it, as many as the published figures need.

use anyhow::{Result, bail};

use crate::commands::split_passthrough;
use crate::env::{Durability, Environment};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, passthrough) = split_passthrough(args);
    let full = match own {
        [] => false,
        [flag] if flag == "--full" => true,
        other => bail!("expected --full, got {other:?}"),
    };
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Real)?;
    let mut command = workspace::campaign(&root, &["servo", "servo-store-sqlite"], "crash", passthrough);
    command.args(workspace::SABOTAGE);
    if full {
        command.env("SERVO_CRASH_FULL", "1");
    }
    process::run(environment.apply(&mut command))?;
    environment.stop()
}
