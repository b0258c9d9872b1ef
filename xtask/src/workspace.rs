//! Where the workspace is and how cargo is called in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The folder that holds the root manifest. Read at run time, not baked in: a shared target folder may hand the same
/// binary to two checkouts.
pub(crate) fn root() -> Result<PathBuf> {
    let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir().context("read the current folder")?,
    };
    let root = start.ancestors().find(|dir| dir.join("xtask/Cargo.toml").is_file());
    root.map(Path::to_owned).context("run this inside the workspace: no folder above has xtask/Cargo.toml")
}

/// `cargo SUBCOMMAND` in the root folder.
///
/// The variables that `cargo run` sets to describe xtask itself are removed: build scripts watch some of them, and
/// would rebuild the world in turn with a plain `cargo build`.
pub(crate) fn cargo(root: &Path, subcommand: &str) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).arg(subcommand);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// [`cargo`] for commands that resolve dependencies: a committed lock file is never changed by a check.
pub(crate) fn cargo_locked(root: &Path, subcommand: &str) -> Command {
    let mut command = cargo(root, subcommand);
    if root.join("Cargo.lock").is_file() {
        command.arg("--locked");
    }
    command
}

pub(crate) fn has_nextest(root: &Path) -> bool {
    process::succeeds(cargo(root, "nextest").arg("--version"))
}

/// Where cargo puts what it builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The binary with its broken variants in it, each off until a test chooses it.
pub(crate) const SABOTAGE: [&str; 2] = ["--features", "servo/sabotage"];

/// `cargo nextest run` for a campaign (release build, hours of patience), or `cargo test` where nextest is missing.
/// `filter` is a substring of test names.
pub(crate) fn campaign(root: &Path, packages: &[&str], filter: &str, extra: &[String]) -> Command {
    let mut command = if has_nextest(root) {
        let mut command = cargo(root, "nextest");
        command.args(["run", "--config-file", "xtask/nextest-campaign.toml"]);
        if root.join("Cargo.lock").is_file() {
            command.arg("--locked");
        }
        command
    } else {
        cargo_locked(root, "test")
    };
    command.arg("--release");
    for package in packages {
        command.args(["--package", package]);
    }
    command.arg(filter).args(extra);
    command
}
