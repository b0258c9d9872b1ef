//! Lines that are understood, and lines that are refused.

use clap::Parser;
use servo_cli::args::{ColorChoice, Format, RunsCommand, RuntimeCommands, StoreCommand, Target};
use servo_cli::{Cli, Command};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[track_caller]
fn command(line: &str) -> Command {
    parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command
}

#[test]
fn short_forms_mean_the_same() {
    for line in ["servo runs list", "servo runs ls", "servo run ls", "servo runs l", "servo run li"] {
        assert!(matches!(command(line), Command::Runs(RunsCommand::List(_))), "{line}");
    }
    assert!(matches!(command("servo runs rm x --yes"), Command::Runs(RunsCommand::Delete(args)) if args.yes));
    assert!(matches!(command("servo runs show x"), Command::Runs(RunsCommand::Get(_))));
    assert!(matches!(command("servo runt snap"), Command::Runtime(RuntimeCommands::Snapshot(_))));
    assert!(matches!(command("servo alert"), Command::Alerts(_)));
    assert!(matches!(command("servo dead-letter ls"), Command::DeadLetters(_)));
}

#[test]
fn global_options_stand_anywhere() {
    for line in [
        "servo --server http://h --token k -o jsonl --color never runs list",
        "servo runs list --server http://h --token k -o jsonl --color never",
    ] {
        let global = parse(line).unwrap().global;
        assert_eq!(global.server.as_deref(), Some("http://h"));
        assert_eq!(global.token.as_deref(), Some("k"));
        assert_eq!((global.format(), global.color), (Format::Jsonl, ColorChoice::Never));
    }
    assert_eq!(parse("servo runs list --json").unwrap().global.format(), Format::Json);
    assert_eq!(parse("servo runs list").unwrap().global.format(), Format::Table);
    let Command::Store(args) = command("servo store verify --data-dir d") else { panic!("not store") };
    assert_eq!(args.data_dir, Some("d".into()));
    assert!(matches!(args.command, StoreCommand::Verify));
}

#[test]
fn development_has_defaults() {
    let Command::Dev(args) = command("servo dev") else { panic!("not dev") };
    assert_eq!((args.port, args.data_dir), (8700, "./.servo".into()));
    assert!(!(args.ephemeral || args.reset || args.no_open || args.ready_json || args.no_sample));
}

#[test]
fn signals_are_read_in_both_spellings() {
    for line in ["servo runs signal x retry-step --step s", "servo runs signal x RETRY_STEP --step s"] {
        let Command::Runs(RunsCommand::Signal(args)) = command(line) else { panic!("not a signal") };
        assert_eq!(serde_json::to_string(&args.kind.0).unwrap(), "\"RETRY_STEP\"");
        assert_eq!(args.step.unwrap().as_str(), "s");
    }
}

#[test]
fn runs_come_from_arguments_and_stdin() {
    let Command::Runs(RunsCommand::Cancel(args)) = command("servo runs cancel a - b") else { panic!("not cancel") };
    let run = |text: &str| Target::Run(servo_model::RunId::parse(text).unwrap());
    assert_eq!(args.targets.runs, [run("a"), Target::Stdin, run("b")]);
}

/// What cannot be meant is refused before anything happens, with exit code 2 and a line that says why.
#[test]
fn wrong_lines_are_refused() {
    for (line, needle) in [
        ("servo", "Usage"),
        ("servo fly", "fly"),
        ("servo ru list", "ru"),
        ("servo runs get", "RUN"),
        ("servo runs get a/b", "letters, digits"),
        ("servo runs list --limit 0", "1..=1000"),
        ("servo runs list --status done", "succeeded"),
        ("servo runs list --all --cursor x", "cannot be used with"),
        ("servo runs list --json -o ids", "cannot be used with"),
        ("servo runs list -o yaml", "jsonl"),
        ("servo runs events x --follow --limit 3", "cannot be used with"),
        ("servo runs start plan.json --timeout 5s", "--wait"),
        ("servo runs start plan.json --wait --timeout soon", "30s"),
        ("servo runs start plan.json --not-before tomorrow", "RFC 3339"),
        ("servo runs start plan.json --project ..", "dot-only"),
        ("servo runs signal x explode", "skip-step"),
        ("servo runs cancel", "RUN"),
        ("servo runtime snapshot --at 2026-02-11T10:30:00Z", "--data-dir"),
        ("servo store retention --older-than 30d", "--data-dir"),
        ("servo dead-letters redrive", "--all"),
        ("servo dead-letters redrive cursor-1 --all", "cannot be used with"),
        ("servo runs list --watch --every 1ms", "100ms"),
        ("servo runs list --every 5s", "--watch"),
        ("servo runs list --watch --all", "cannot be used with"),
        ("servo profiles add a/b --server http://h", "letters"),
        ("servo invocations bulk retry --filter x --all --max-items 3", "cannot be used with"),
        ("servo invocations cancel", "ID"),
        ("servo dev --ephemeral --data-dir d", "cannot be used with"),
        ("servo dev --port 70000", "70000"),
        ("servo server", "--config"),
    ] {
        let error = parse(line).map(|cli| cli.command).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(needle), "{line} gave {error}");
    }
}
