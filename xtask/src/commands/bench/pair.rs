//! The two builds of `cargo xtask bench pair`: a program is taken as it is, a revision is built once and kept.
//!
//! All revisions are built in one folder, so that their dependencies are compiled once. Each has a fresh work tree: cargo
//! goes by the files' times, and would take one revision's crates for another's if its files were older.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, workspace};

/// The arguments of `servo-bench`, with programs in place of revisions.
pub(super) fn with_programs(root: &Path, args: &[String]) -> Result<Vec<String>> {
    let [name, old, new, rest @ ..] = args else {
        bail!("usage: cargo xtask bench pair OLD NEW [WORKLOAD...] [--rounds N] [--seconds S] [--json]")
    };
    let mut all = vec![name.clone(), program(root, old)?, program(root, new)?];
    all.extend(rest.iter().cloned());
    Ok(all)
}

fn program(root: &Path, given: &str) -> Result<String> {
    let here = workspace::target(root).join("release/servo");
    let program = match given {
        "." => here,
        path if process::is_program(Path::new(path)) => std::path::absolute(path)?,
        revision => built(root, revision)?,
    };
    program.into_os_string().into_string().ok().context("a path that is no text")
}

fn built(root: &Path, revision: &str) -> Result<PathBuf> {
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(root);
        git
    };
    let commit = process::capture(
        git().args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(format!("{revision}^{{commit}}")),
    )
    .with_context(|| format!("{revision:?} is neither a program nor a revision of this repository"))?;
    let place = workspace::target(root).join("pair");
    let kept = place.join(format!("servo-{commit}"));
    if process::is_program(&kept) {
        return Ok(kept);
    }
    println!("building {revision} ({commit})");
    let tree = place.join("tree");
    std::fs::create_dir_all(&place)?;
    let _ = std::fs::remove_dir_all(&tree);
    process::run(git().args(["worktree", "prune"]))?;
    process::run(git().args(["worktree", "add", "--quiet", "--detach"]).arg(&tree).arg(&commit))?;
    let target = place.join("build");
    let mut build = workspace::cargo_locked(&tree, "build");
    let outcome = process::run(build.args(["--release", "--package", "servo", "--target-dir"]).arg(&target));
    process::run(git().args(["worktree", "remove", "--force"]).arg(&tree))?;
    outcome?;
    std::fs::copy(target.join("release/servo"), &kept).context("keep the program")?;
    Ok(kept)
}
