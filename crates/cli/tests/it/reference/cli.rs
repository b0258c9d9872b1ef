//! Commands as a page.

use clap::{Arg, Command};

use super::cell;

pub(super) fn page(root: &Command) -> String {
    let mut out = String::from(
        "# Commands\n\nWritten by `cargo xtask reference` from the commands themselves; `servo COMMAND --help` says the same.\n\n\
         Data goes to stdout, everything else to stderr. Nouns have their singular as an alias. Commands may be shortened to \
         any unambiguous prefix.\n\n## Options of every command\n\n",
    );
    out.push_str(&options(root.get_arguments().filter(|arg| arg.is_global_set())));
    let codes = root.get_after_help().map(ToString::to_string).unwrap_or_default();
    out.push_str(&format!("\n{}\n", codes.replace('\n', " ")));
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(command, &format!("servo {}", command.get_name()), 2, &mut out);
    }
    out
}

fn section(command: &Command, path: &str, depth: usize, out: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    out.push_str(&format!("\n{} {path}\n\n{about}.", "#".repeat(depth)));
    let aliases: Vec<_> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        out.push_str(&format!(" Also {}.", aliases.join(", ")));
    }
    out.push('\n');
    let mut subs = command.get_subcommands().filter(|sub| !sub.is_hide_set()).peekable();
    if subs.peek().is_none() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = examples.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        out.push_str(&format!("\n```text\n{usage}\n```\n\n```text\n{}\n```\n", examples.join("\n")));
    }
    let own = options(command.get_arguments().filter(|arg| !arg.is_global_set()));
    if !own.is_empty() {
        out.push_str(&format!("\n{own}"));
    }
    for sub in subs {
        section(sub, &format!("{path} {}", sub.get_name()), depth + 1, out);
    }
}

fn options<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let rows: Vec<_> = args.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")).map(row).collect();
    if rows.is_empty() { String::new() } else { format!("| | |\n|---|---|\n{}", rows.concat()) }
}

fn row(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default();
    let takes = arg.get_action().takes_values();
    let many = if matches!(arg.get_action(), clap::ArgAction::Append) { "…" } else { "" };
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let name = if takes { format!("{name} {value}{many}") } else { name };
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<_> = arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if takes && !values.is_empty() {
        help.push_str(&format!(": {}", values.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !defaults.is_empty() {
        help.push_str(&format!(" [default: {}]", defaults.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        help.push_str(&format!(" [env: {}]", variable.to_string_lossy()));
    }
    format!("| `{}` | {} |\n", name.trim(), cell(&help))
}
