//! One module per command, and the two helpers that read their arguments.

pub(crate) mod bench;
pub(crate) mod crash;
pub(crate) mod diff;
pub(crate) mod fuzz;
pub(crate) mod layers;
pub(crate) mod ledger;
pub(crate) mod reference;
pub(crate) mod test;
pub(crate) mod tidy;
pub(crate) mod with;

use anyhow::{Context, Result, bail};

/// Splits at `--`: what comes before is ours, what comes after goes to the tool behind the command.
pub(crate) fn split_passthrough(args: &[String]) -> (&[String], &[String]) {
    match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// Reads `--name VALUE` or `--name=VALUE`; anything else in `args` is refused, because a misspelt option that is
/// silently ignored makes a campaign look run when it was not.
pub(crate) fn only_option<'a>(args: &'a [String], name: &str) -> Result<Option<&'a str>> {
    match args {
        [] => Ok(None),
        [flag, value] if flag == name => Ok(Some(value)),
        [joined] => match joined.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            Some(value) => Ok(Some(value)),
            None => bail!("expected {name} VALUE, got {joined:?}"),
        },
        other => bail!("expected {name} VALUE, got {other:?}"),
    }
}

/// Like [`only_option`], for a whole number.
pub(crate) fn only_number(args: &[String], name: &str, default: u64) -> Result<u64> {
    match only_option(args, name)? {
        None => Ok(default),
        Some(text) => text.parse().with_context(|| format!("{name} needs a whole number, got {text:?}")),
    }
}

/// For commands that take no arguments at all.
pub(crate) fn no_arguments(args: &[String]) -> Result<()> {
    if args.is_empty() { Ok(()) } else { bail!("this command takes no arguments, got {args:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arguments_after_the_dashes_are_passed_on() {
        let args = strings(&["--lane", "fast", "--", "-p", "x"]);
        let (own, rest) = split_passthrough(&args);
        assert_eq!(own, &args[..2]);
        assert_eq!(rest, &args[3..]);
        assert!(split_passthrough(&args[..1]).1.is_empty());
    }

    #[test]
    fn an_option_is_read_in_both_spellings_and_nothing_else_is_accepted() {
        assert_eq!(only_number(&strings(&["--seconds", "7"]), "--seconds", 1).unwrap(), 7);
        assert_eq!(only_number(&strings(&["--seconds=7"]), "--seconds", 1).unwrap(), 7);
        assert_eq!(only_number(&[], "--seconds", 1).unwrap(), 1);
        assert!(only_number(&strings(&["--second", "7"]), "--seconds", 1).is_err());
        assert!(only_number(&strings(&["--seconds", "seven"]), "--seconds", 1).is_err());
        assert!(only_number(&strings(&["--seconds", "7", "8"]), "--seconds", 1).is_err());
    }
}
