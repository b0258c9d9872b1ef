//! `cargo xtask crash`: kills processes and cuts the power under real servers, on a disk that really syncs.
//!
//! Alone it runs as many rounds as CI does, with `--full` as many as the goals ask for, with `--percent N` a part of those.

use anyhow::{Context, Result, bail};

use crate::commands::split_passthrough;
use crate::env::{Durability, Environment};
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (own, passthrough) = split_passthrough(args);
    let percent = match own {
        [] => None,
        [flag] if flag == "--full" => Some(100),
        [flag, number] if flag == "--percent" => Some(percent(number)?),
        other => bail!("expected --full or --percent N, got {other:?}"),
    };
    let root = workspace::root()?;
    let environment = Environment::start(Durability::Real)?;
    let mut command = workspace::campaign(&root, &["servo", "servo-store-sqlite"], "crash", passthrough);
    command.args(workspace::SABOTAGE);
    if let Some(percent) = percent {
        command.env("SERVO_CRASH_PERCENT", percent.to_string());
    }
    process::run(environment.apply(&mut command))?;
    environment.stop()
}

fn percent(text: &str) -> Result<u8> {
    let number = text.parse().with_context(|| format!("--percent needs a whole number, got {text:?}"))?;
    if (1..=100).contains(&number) { Ok(number) } else { bail!("--percent is between 1 and 100, got {number}") }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_percentage_is_checked() {
        assert_eq!((percent("1").unwrap(), percent("100").unwrap()), (1, 100));
        for wrong in ["0", "101", "-1", "256", "ten", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
