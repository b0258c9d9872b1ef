//! Options of `servo dev` that only this program can honour: they watch files and move clocks. They are added to the command
//! that `servo-cli` parses, so that help and errors look the same.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, CommandFactory as _, FromArgMatches as _};
use servo_cli::Cli;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DevFlags {
    /// Do not write a line for each event
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// A folder of Starlark files: each is registered, and again when it changes
    #[arg(long, value_name = "DIR")]
    pub(crate) entrypoints: Option<PathBuf>,
    /// Waits and retries are over as soon as nothing else can run; needs --ephemeral
    #[arg(long)]
    pub(crate) virtual_time: bool,
}

/// The whole command line.
pub(crate) fn command() -> Command {
    Cli::command().mut_subcommand("dev", DevFlags::augment_args)
}

/// The completion script of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "servo", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// What was asked for, and the options of `servo dev` if that was it.
pub(crate) fn parse(matches: &ArgMatches) -> Result<(Cli, DevFlags), clap::Error> {
    let cli = Cli::from_arg_matches(matches)?;
    let flags = matches.subcommand_matches("dev").map(DevFlags::from_arg_matches).transpose()?;
    Ok((cli, flags.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_both_crates_stand_beside_each_other() {
        command().debug_assert();
        let arguments = ["servo", "dev", "--ephemeral", "-q", "--virtual-time", "--entrypoints", "flows"];
        let (cli, flags) = parse(&command().get_matches_from(arguments)).unwrap();
        assert!(flags.quiet && flags.virtual_time && flags.entrypoints == Some("flows".into()));
        assert!(matches!(cli.command, servo_cli::Command::Dev(args) if args.ephemeral));
        assert!(completions(clap_complete::Shell::Bash).contains("--virtual-time"));
        let (_, none) = parse(&command().get_matches_from(["servo", "version"])).unwrap();
        assert!(!none.quiet && none.entrypoints.is_none());
    }
}
