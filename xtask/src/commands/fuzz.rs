//! `cargo xtask fuzz`: every fuzz target in turn, for a given time each. Needs a nightly compiler and cargo-fuzz, which it
//! does not install: they are large, and nothing else here needs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::commands::only_number;
use crate::{process, workspace};

const SECONDS: u64 = 60;
const HOW_TO_INSTALL: &str = "rustup toolchain install nightly && cargo install --locked cargo-fuzz";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let seconds = only_number(args, "--seconds", SECONDS)?;
    let root = workspace::root()?;
    if !process::succeeds(cargo_fuzz(&root).arg("--version")) {
        bail!("fuzzing needs a nightly compiler and cargo-fuzz; install them with: {HOW_TO_INSTALL}");
    }
    let folders = fuzz_folders(&root)?;
    if folders.is_empty() {
        bail!("there is no fuzz folder in the workspace");
    }
    for folder in folders {
        let list = process::capture(cargo_fuzz(&root).arg("list").arg("--fuzz-dir").arg(&folder))?;
        for target in list.lines() {
            println!("== {target}, {seconds} s");
            let mut command = cargo_fuzz(&root);
            command.arg("run").arg("--fuzz-dir").arg(&folder);
            // Otherwise the build output would lie in the fuzz folder, beside files that are committed.
            command.arg("--target-dir").arg(root.join("target/fuzz")).arg(target);
            process::run(command.arg("--").arg(format!("-max_total_time={seconds}")))?;
        }
    }
    Ok(())
}

/// Through rustup, because the cargo that runs us is bound to the stable toolchain.
fn cargo_fuzz(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo", "fuzz"]);
    command
}

/// `fuzz/` beside the root manifest or beside a crate's.
fn fuzz_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("fuzz")];
    let crates = root.join("crates");
    for entry in std::fs::read_dir(&crates).with_context(|| format!("list {}", crates.display()))? {
        folders.push(entry.context("list the crates")?.path().join("fuzz"));
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    Ok(folders)
}
