//! `cargo xtask test`: everything that must be green before a change is done, from an empty machine to the last test.
//!
//! The lane `full` (default) is what CI runs. `fast` leaves out licences, clippy, documentation, the plain build, doc tests
//! and the black-box packages, for the minute between two edits.

mod deny;
mod plain;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::commands::{layers, only_option, split_passthrough, tidy};
use crate::env::{Durability, Environment};
use crate::phases::Phases;
use crate::{process, workspace};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Fast,
    Full,
}

/// Everywhere the same, so that nothing is built twice. With `aws` clippy, doc tests and tests see the client over AWS's crate as well;
/// in a phase of its own all that lies under the SDK would be built once more, because AWS's crates turn on features of shared ones.
const FEATURES: [&str; 2] = ["--features", "servo/sabotage,servo-conformance/aws"];
/// The same without the packages that the fast lane leaves out: cargo refuses a feature of a package that it is not to build.
const FEATURES_FAST: [&str; 2] = [
    "--features",
    "servo-store-sqlite/sabotage,servo-store-postgres/sabotage,servo-runtime/sabotage,servo-server/sabotage,servo-conformance/aws",
];

/// Packages that start whole servers, each test for seconds.
const BLACK_BOX: [&str; 2] = ["servo", "servo-bench"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, passthrough) = split_passthrough(args);
    let lane = match only_option(own, "--lane")? {
        None | Some("full") => Lane::Full,
        Some("fast") => Lane::Fast,
        Some(other) => bail!("--lane is fast or full, not {other:?}"),
    };
    let root = workspace::root()?;
    let mut phases = Phases::default();

    phases.run("format", || process::run(workspace::cargo(&root, "fmt").args(["--all", "--check"])));
    phases.run("layers", || layers::run(&[]));
    phases.run("tidy", || tidy::run(&[]));
    if lane == Lane::Full {
        phases.run("deny", || deny::run(&root));
        phases.run("clippy", || clippy(&root));
        phases.run("docs", || docs(&root));
        phases.run("plain build", || plain::run(&root));
    }
    let mut counts = None;
    if let Some(environment) = phases.run("environment", || Environment::start(Durability::Fast)) {
        if workspace::has_nextest(&root) {
            if lane == Lane::Full {
                phases.run("doc tests", || process::run(environment.apply(&mut doc_tests(&root))));
            }
            // Last, so that the summary of the real tests closes the run.
            phases.run("tests", || nextest(&root, &environment, lane, passthrough));
        } else {
            counts = Some(without_nextest(&root, &environment, lane, passthrough, &mut phases));
        }
        phases.run("shutdown", || environment.stop());
    }
    let verdict = phases.finish();
    if let Some(counts) = counts {
        println!("{} passed, {} failed", counts.passed, counts.failed);
    }
    verdict
}

fn clippy(root: &Path) -> Result<()> {
    let mut command = workspace::cargo_locked(root, "clippy");
    command.args(["--workspace", "--all-targets"]).args(FEATURES);
    process::run(command.args(["--", "--deny", "warnings"]))
}

/// Links between items, and what rustdoc makes of every comment.
fn docs(root: &Path) -> Result<()> {
    let mut command = workspace::cargo_locked(root, "doc");
    command.args(["--workspace", "--no-deps"]).args(FEATURES).env("RUSTDOCFLAGS", "--deny warnings");
    process::run(&mut command)
}

fn nextest(root: &Path, environment: &Environment, lane: Lane, passthrough: &[String]) -> Result<()> {
    let mut command = workspace::cargo(root, "nextest");
    command.arg("run");
    if root.join("Cargo.lock").is_file() {
        command.arg("--locked");
    }
    choose_packages(&mut command, lane);
    process::run(environment.apply(command.args(passthrough)))
}

/// Every package has library or binary tests; `--doc` has a pass of its own because nextest cannot run doc tests.
fn doc_tests(root: &Path) -> Command {
    let mut command = workspace::cargo_locked(root, "test");
    command.args(["--doc", "--workspace", "--no-fail-fast"]).args(FEATURES);
    command
}

fn choose_packages(command: &mut Command, lane: Lane) {
    command.arg("--workspace").args(if lane == Lane::Fast { FEATURES_FAST } else { FEATURES });
    if lane == Lane::Fast {
        for package in BLACK_BOX {
            command.args(["--exclude", package]);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

/// Plain `cargo test` prints one result per binary and no total, so the totals are counted here.
fn without_nextest(
    root: &Path,
    environment: &Environment,
    lane: Lane,
    passthrough: &[String],
    phases: &mut Phases,
) -> Counts {
    let mut counts = Counts::default();
    let mut tests = workspace::cargo_locked(root, "test");
    tests.args(["--tests", "--no-fail-fast"]);
    choose_packages(&mut tests, lane);
    tests.args(passthrough);
    phases.run("tests", || run_counting(environment.apply(&mut tests), &mut counts));
    if lane == Lane::Full {
        phases.run("doc tests", || run_counting(environment.apply(&mut doc_tests(root)), &mut counts));
    }
    counts
}

/// Shows the output as it comes and adds up its result lines.
fn run_counting(command: &mut Command, counts: &mut Counts) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("start cargo test")?;
    let output = child.stdout.take().context("the output was just asked for as a pipe")?;
    let mut terminal = std::io::stdout().lock();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("read the test output")?;
        terminal.write_all(&line).and_then(|()| terminal.write_all(b"\n")).context("show the test output")?;
        if let Some(result) = result_line(&String::from_utf8_lossy(&line)) {
            counts.passed += result.passed;
            counts.failed += result.failed;
        }
    }
    let status = child.wait().context("wait for cargo test")?;
    if status.success() { Ok(()) } else { bail!("cargo test ended with {status}") }
}

/// Reads `test result: ok. 3 passed; 1 failed; 0 ignored; …`.
fn result_line(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut parts = numbers.split("; ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some(Counts { passed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_read_and_other_lines_are_not() {
        let ok = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s";
        assert_eq!(result_line(ok), Some(Counts { passed: 12, failed: 0 }));
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(result_line(bad), Some(Counts { passed: 1, failed: 2 }));
        assert_eq!(result_line("test it ... ok"), None);
        assert_eq!(result_line("test result: who knows"), None);
    }
}
