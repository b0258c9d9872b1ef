//! `cargo xtask ledger`: which requirement rows the tests name. The ledger is kept beside the project, not in it, so on
//! most machines there is nothing to count.

use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = workspace::root()?;
    let tool = root.join("../shared/tools/ledger-coverage");
    if !process::is_program(&tool) {
        println!("the ledger is not here");
        return Ok(());
    }
    process::run(Command::new(tool).current_dir(&root).arg(".").args(args))
}
