//! `cargo deny`: licences, sources and banned crates of everything that is built, by the rules of `deny.toml`.
//!
//! Known vulnerabilities are not looked up here: their list changes without us, and comes from the network. A hosted workflow
//! does that every day (`.github/workflows/advisories.yml`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

const VERSION: &str = "0.20.2";

pub(super) fn run(root: &Path) -> Result<()> {
    let program = match ensure(root) {
        Ok(program) => program,
        Err(error) => {
            // A machine without a registry can run all the rest.
            println!("NOT CHECKED: cargo-deny {VERSION} could not be installed here: {error:#}");
            return Ok(());
        }
    };
    let mut command = Command::new(program);
    command.current_dir(root).args([
        "--log-level",
        "error",
        "--locked",
        "--all-features",
        "--workspace",
        "check",
        "--hide-inclusion-graph",
    ]);
    process::run(command.args(["bans", "licenses", "sources"]))
}

/// Built once, beside the other tools in the build's folder.
fn ensure(root: &Path) -> Result<PathBuf> {
    let place = workspace::target(root).join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = place.join("bin/cargo-deny");
    if process::is_program(&program) {
        return Ok(program);
    }
    let build = place.join("build");
    let mut install = workspace::cargo(root, "install");
    install.args([
        "cargo-deny",
        "--locked",
        "--quiet",
        "--profile",
        "dev",
        "--version",
        &format!("={VERSION}"),
        "--root",
    ]);
    let installed = process::run(install.arg(&place).arg("--target-dir").arg(&build));
    let _ = std::fs::remove_dir_all(&build);
    installed.map(|()| program)
}
