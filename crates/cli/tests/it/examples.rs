//! Every command shows an example before anything else, and the example works.

use clap::{CommandFactory, Parser};
use servo_cli::Cli;

/// Words of a shell line; quotes keep white space and the other kind of quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quoted = None;
    for character in line.chars() {
        match character {
            '\'' | '"' if quoted.is_none() || quoted == Some(character) => {
                quoted = if quoted.is_none() { Some(character) } else { None };
                word.get_or_insert_default();
            }
            ' ' if quoted.is_none() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

fn visit(command: &clap::Command, path: &[String], seen: &mut Vec<String>) {
    let name = path.join(" ");
    let examples = examples(command);
    assert!(!examples.is_empty(), "`{name}` has no example");
    assert!(command.clone().render_long_help().to_string().starts_with("Example"), "`{name}` does not begin with one");
    for example in &examples {
        for line in example.split(" | ") {
            // A shell's own part is not ours to parse.
            let words = words(line.split(" < ").next().unwrap());
            assert_eq!(words.first().map(String::as_str), Some("servo"), "{line}");
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("`{line}` does not parse: {error}");
            }
        }
        let about = example.split(" | ").any(|line| words(line).starts_with(path));
        assert!(about, "the example `{example}` is not about `{name}`");
    }
    seen.push(name);
    for sub in command.get_subcommands() {
        let path = [path, &[sub.get_name().to_owned()]].concat();
        visit(sub, &path, seen);
    }
}

#[test]
fn every_command_has_an_example_that_parses() {
    let mut root = Cli::command();
    root.build();
    let mut seen = Vec::new();
    visit(&root, &["servo".to_owned()], &mut seen);
    // The surface as a whole, so that a command which is lost or added shows in review.
    let expected = "\
servo
servo dev
servo demo
servo demo crash
servo server
servo config
servo config check
servo config print
servo runs
servo runs list
servo runs get
servo runs events
servo runs tail
servo runs start
servo runs signal
servo runs pause
servo runs resume
servo runs cancel
servo runs approve
servo runs retry
servo runs export
servo runs import
servo runs terminate
servo runs delete
servo entrypoints
servo entrypoints register
servo entrypoints validate
servo entrypoints list
servo entrypoints get
servo entrypoints update
servo entrypoints activate
servo entrypoints deprecate
servo entrypoints disable
servo entrypoints enable
servo entrypoints archive
servo entrypoints delete
servo invocations
servo invocations start
servo invocations list
servo invocations get
servo invocations timeline
servo invocations watch
servo invocations logs
servo invocations cancel
servo invocations suspend
servo invocations resume
servo invocations retry
servo invocations replay
servo invocations skip
servo invocations signal
servo invocations bulk
servo invocations counts
servo functions
servo functions register
servo functions list
servo functions show
servo functions alias
servo functions unalias
servo functions remove
servo functions invoke
servo functions logs
servo executions
servo executions list
servo executions get
servo executions history
servo executions stop
servo callbacks
servo callbacks succeed
servo callbacks fail
servo callbacks heartbeat
servo runtime
servo runtime exec
servo runtime snapshot
servo runtime schema
servo runtime events
servo store
servo store info
servo store backup
servo store restore
servo store verify
servo store retention
servo store accept-loss
servo keys
servo keys create
servo keys generate
servo keys list
servo keys revoke
servo audit
servo audit list
servo alerts
servo dead-letters
servo dead-letters list
servo dead-letters redrive
servo doctor
servo whoami
servo profiles
servo profiles list
servo profiles add
servo profiles use
servo profiles remove
servo types
servo types list
servo types get
servo metrics
servo openapi
servo explain
servo completions
servo version";
    assert_eq!(seen.join("\n"), expected);
}

#[test]
fn the_command_is_well_formed() {
    Cli::command().debug_assert();
}
