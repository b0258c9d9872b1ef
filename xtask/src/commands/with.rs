//! `cargo xtask with -- COMMAND`: any command with the test servers running beside it, for the loop on one crate.

use std::process::Command;

use anyhow::{Result, bail};

use crate::commands::split_passthrough;
use crate::env::{Durability, Environment};
use crate::process;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, line) = split_passthrough(args);
    let durability = match own {
        [] => Durability::Fast,
        [flag] if flag == "--real" => Durability::Real,
        other => bail!("expected --real, got {other:?}"),
    };
    let Some((program, arguments)) = line.split_first() else { bail!("no command given after --") };
    let environment = Environment::start(durability)?;
    process::run(environment.apply(Command::new(program).args(arguments)))?;
    environment.stop()
}
