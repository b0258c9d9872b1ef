//! The command line over the real binary: every command, for people and for programs, against a real server.
//!
//! The cases are a table. The tree of commands is walked, so that a new command without a case fails here.

mod cases;
mod pipes;
mod profiles;
mod world;

use std::collections::BTreeSet;
use std::process::Output;

use clap::CommandFactory as _;
use serde_json::Value;

use cases::{CASES, Case, ELSEWHERE, Prints};
use world::World;

/// Every command that does something itself, as people type it.
fn leaves(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
    let mut subs = command.get_subcommands().peekable();
    if subs.peek().is_none() {
        found.insert(path.to_owned());
    }
    for sub in subs {
        leaves(sub, format!("{path} {}", sub.get_name()).trim(), found);
    }
}

/// The command that a line is about: the longest one that it begins with.
fn command_of<'a>(line: &str, commands: &'a BTreeSet<String>) -> Option<&'a String> {
    let is_it = |command: &&String| {
        line.strip_prefix(command.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    commands.iter().filter(is_it).max_by_key(|command| command.len())
}

#[test]
fn every_command_has_a_case() {
    let mut commands = BTreeSet::new();
    leaves(&servo_cli::Cli::command(), "", &mut commands);
    let tested: BTreeSet<_> = CASES.iter().filter_map(|case| command_of(case.line, &commands)).collect();
    assert_eq!(CASES.iter().find(|case| command_of(case.line, &commands).is_none()).map(|case| case.line), None);
    let elsewhere: BTreeSet<_> = ELSEWHERE.iter().map(|(command, _)| (*command).to_owned()).collect();
    let missing: Vec<_> = commands.iter().filter(|name| !tested.contains(name) && !elsewhere.contains(*name)).collect();
    assert!(missing.is_empty(), "no case in cli/cases.rs for: {missing:?}");
    let stale: Vec<_> = elsewhere.iter().filter(|name| !commands.contains(*name)).collect();
    assert!(stale.is_empty(), "no such command: {stale:?}");
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// One document, or a stream of them.
fn documents(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    serde_json::Deserializer::from_str(text).into_iter().collect()
}

fn check(world: &World, case: &Case) -> Result<(), String> {
    for format in ["table", "json", "jsonl"] {
        // Each format gets things of its own to act on.
        let words = world.words(case.line);
        let output = world.run(&words, format);
        let whole =
            || format!("`servo {} -o {format}`: {:?}\n{}", words.join(" "), output.status.code(), said(&output));
        if output.status.code() != Some(case.exit.into()) {
            return Err(format!("not {}: {}", case.exit, whole()));
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if case.exit != 0 {
            // A refusal is for people a sentence and what to do, for programs a document; both on stderr.
            let is_told = match format {
                "table" => stderr.contains("error:"),
                _ => documents(&stderr).is_ok_and(|found| found.iter().all(|problem| problem["code"].is_string())),
            };
            if !(is_told && stdout.is_empty()) {
                return Err(format!("no refusal: {}", whole()));
            }
            continue;
        }
        let is_right = match (case.prints, format) {
            (Prints::Note, _) => stdout.is_empty() && !stderr.is_empty(),
            (Prints::Text, _) => !stdout.is_empty(),
            (Prints::Data, "table") => !stdout.trim().is_empty() && documents(&stdout).is_err(),
            // Some answers are JSON for people, too.
            (Prints::Json, _) | (Prints::Data, "json") => documents(&stdout).is_ok_and(|found| !found.is_empty()),
            // Lists may be empty; a line is never half a document.
            (Prints::Data, _) => stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
        };
        if !is_right || !said(&output).contains(if format == "table" { case.says } else { "" }) {
            return Err(format!("not as {:?} should be: {}", case.prints, whole()));
        }
    }
    Ok(())
}

/// Ids only, for pipelines, or a refusal that says so; never anything else.
fn check_ids(world: &World, case: &Case) -> Result<(), String> {
    let words = world.words(case.line);
    let output = world.run(&words, "ids");
    let stdout = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) if stdout.lines().all(|line| !line.is_empty() && !line.contains([' ', '{'])) => Ok(()),
        Some(2) if stdout.is_empty() && said(&output).contains("no ids") => Ok(()),
        code => Err(format!("`servo {} -o ids`: {code:?}\n{}", words.join(" "), said(&output))),
    }
}

/// The whole table on one server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_prints_for_people_and_for_programs() {
    let world = World::open().await;
    let mut wrong = Vec::new();
    for case in CASES {
        wrong.extend(check(&world, case).err());
        if case.exit == 0 && case.prints != Prints::Text && case.line.contains("list") {
            wrong.extend(check_ids(&world, case).err());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
