//! `cargo xtask crash`: kills processes and cuts the power under real servers, on a disk that really syncs.
//!
//! Alone it runs as many rounds as CI does, with `--full` as many as the goals ask for, with `--percent N` a part of those. With
//! `--previous PATH` the server changes between this program and that one, such as the release before.

use anyhow::{Context, Result, bail};

use crate::commands::split_passthrough;
use crate::env::{Durability, Environment};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, passthrough) = split_passthrough(args);
    let asked = Asked::parse(own)?;
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Real)?;
    let mut command = workspace::campaign(&root, &["servo", "servo-store-sqlite"], "crash", passthrough);
    command.args(workspace::SABOTAGE);
    if let Some(percent) = asked.percent {
        command.env("SERVO_CRASH_PERCENT", percent.to_string());
    }
    if let Some(previous) = asked.previous {
        command.env("SERVO_TEST_PREVIOUS", std::path::absolute(&previous)?);
    }
    process::run(environment.apply(&mut command))?;
    environment.stop()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    percent: Option<u8>,
    /// The program of an earlier release.
    previous: Option<String>,
}

impl Asked {
    fn parse(args: &[String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut rest = args.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--full" => asked.percent = Some(100),
                "--percent" => asked.percent = Some(percent(value(flag, rest.next())?)?),
                "--previous" => asked.previous = Some(value(flag, rest.next())?.to_owned()),
                other => bail!("expected --full, --percent N or --previous PATH, got {other:?}"),
            }
        }
        Ok(asked)
    }
}

fn value<'a>(flag: &str, value: Option<&'a String>) -> Result<&'a str> {
    value.map(String::as_str).with_context(|| format!("{flag} needs a value"))
}

fn percent(text: &str) -> Result<u8> {
    let number = text.parse().with_context(|| format!("--percent needs a whole number, got {text:?}"))?;
    if (1..=100).contains(&number) { Ok(number) } else { bail!("--percent is between 1 and 100, got {number}") }
}

#[cfg(test)]
mod tests {
    use super::{Asked, percent};

    #[test]
    fn arguments_are_read() {
        let parse = |args: &[&str]| Asked::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse(&[]).unwrap(), Asked::default());
        let asked = parse(&["--full", "--previous", "old/servo"]).unwrap();
        assert_eq!((asked.percent, asked.previous.as_deref()), (Some(100), Some("old/servo")));
        for wrong in [&["--percent"][..], &["--previous"], &["--fast"], &["--percent", "0"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_percentage_is_checked() {
        assert_eq!((percent("1").unwrap(), percent("100").unwrap()), (1, 100));
        for wrong in ["0", "101", "-1", "256", "ten", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
