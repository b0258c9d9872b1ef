//! `servo completions`

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::{Failure, exit};
use crate::output::Out;

pub(crate) fn run(shell: Shell, out: &Out) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "servo", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}
