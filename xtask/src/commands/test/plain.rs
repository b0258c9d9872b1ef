//! The build that users get: without the features that the tests turn on. It is linted and compiled, and its server runs a plan.
//!
//! The tests themselves run the build with the broken variants inside, so a mistake that only the plain build has (an import
//! that one feature needs, a variant that is on by accident) would be seen by nobody else.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{process, workspace};

/// The name of a broken variant that loses what was acknowledged; a plain build does not know it.
const VARIANT: (&str, &str) = ("SERVO_SABOTAGE", "sqlite-sync-normal");

pub(super) fn run(root: &Path) -> Result<()> {
    let mut clippy = workspace::cargo_locked(root, "clippy");
    // Chosen out of the whole workspace, so that third-party crates are those that the tests build.
    process::run(clippy.args(["--workspace", "--lib", "--bins", "--", "--deny", "warnings"]))?;
    process::run(workspace::cargo_locked(root, "build").args(["--workspace", "--bin", "servo"]))?;
    let built = workspace::target(root).join("debug/servo");
    // The tests put another build at the same place.
    let dir = std::path::absolute(workspace::target(root).join("plain"))?;
    std::fs::create_dir_all(&dir)?;
    let program = dir.join("servo");
    std::fs::copy(&built, &program).with_context(|| format!("copy {}", built.display()))?;
    smoke(&program, &dir)
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn smoke(program: &Path, dir: &Path) -> Result<()> {
    let mut command = Command::new(program);
    command.current_dir(dir).args([
        "dev",
        "--ephemeral",
        "--no-open",
        "--no-sample",
        "--quiet",
        "--ready-json",
        "--port",
        "0",
    ]);
    command.env(VARIANT.0, VARIANT.1).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Server(command.spawn().context("start the plain build")?);
    let stdout = server.0.stdout.take().context("standard output is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let ready: Value = serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))?;
    let api = ready["api"].as_str().context("the server says where its API is")?;
    let plan = dir.join("plan.json");
    std::fs::write(
        &plan,
        r#"{"planId": "smoke", "planVersion": "1", "schemaVersion": "v1", "steps": [{"stepId": "only"}]}"#,
    )?;
    let mut start = Command::new(program);
    start.current_dir(dir).args(["--server", api, "runs", "start"]).arg(&plan).arg("--wait");
    start.env("SERVO_TOKEN", ready["key"].as_str().unwrap_or_default());
    process::capture(&mut start).context("run a plan on the plain build")?;
    process::run(Command::new("kill").args(["-TERM", &server.0.id().to_string()]))?;
    let status = server.0.wait()?;
    ensure!(status.success(), "the plain build ended with {status}");
    Ok(())
}
