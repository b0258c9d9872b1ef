//! `cargo xtask reference`: writes `docs/reference` from the commands and the API's description. The tests that compare the
//! pages with the code write them when they are told to, so that nothing of the product is linked here.

use anyhow::Result;

use crate::commands::no_arguments;
use crate::{process, workspace};

pub(crate) fn run(args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let mut command = workspace::cargo_locked(&workspace::root()?, "test");
    command.args(["--package", "servo-cli", "--test", "it", "--", "reference::"]);
    process::run(command.env("SERVO_WRITE_REFERENCE", "1"))
}
