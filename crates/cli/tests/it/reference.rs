//! The reference under `docs/reference`: written from the commands and from the description of the API, and compared with
//! what is committed. `cargo xtask reference` writes it.

mod api;
mod cli;
mod operations;

use std::path::Path;

use clap::CommandFactory;
use serde_json::Value;

const WRITE: &str = "SERVO_WRITE_REFERENCE";
const SPEC: &str = include_str!("../../../../spec/openapi.json");

fn spec() -> Value {
    serde_json::from_str(SPEC).unwrap()
}

/// Compares a page with its file, or writes it.
fn hold(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/reference/{name} is not what the code says; run `cargo xtask reference`");
}

#[test]
fn the_reference_of_commands_is_what_the_commands_say() {
    let mut root = servo_cli::Cli::command();
    root.build();
    hold("cli.md", &cli::page(&root));
}

#[test]
fn the_reference_of_the_api_is_what_its_description_says() {
    hold("api.md", &api::page(&spec()));
}

/// Everything that the API offers has a command, or a reason why not.
#[test]
fn every_operation_has_a_command() {
    let spec = spec();
    let offered: Vec<_> = api::operations(&spec).into_iter().map(|operation| operation.id).collect();
    let missing: Vec<_> = offered.iter().filter(|id| operations::command(id).is_none()).collect();
    assert!(missing.is_empty(), "no command for {missing:?} in tests/it/reference/operations.rs");
    for (id, how) in operations::ALL.iter().chain(operations::LAMBDA) {
        assert!(offered.iter().any(|offer| offer == id) || operations::LAMBDA.iter().any(|row| row.0 == *id), "{id}");
        let operations::How::Command(line) = how else { continue };
        let mut at = &servo_cli::Cli::command();
        for word in line.split(' ') {
            at = at.find_subcommand(word).unwrap_or_else(|| panic!("`servo {line}` is no command"));
        }
        assert!(!at.has_subcommands(), "`servo {line}` is only the beginning of one");
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
