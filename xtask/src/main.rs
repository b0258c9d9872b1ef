//! `cargo xtask`: the workshop around the workspace. Each command has one file under `commands/`.
//!
//! It is not part of the product: nothing here is linked into `servo`, and no product crate may depend on it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks on its standard streams")]

mod commands;
mod env;
mod manifest;
mod phases;
mod process;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--lane fast|full] [-- NEXTEST ARGS]   install what is missing, check and test everything
  layers                                      dependency direction, lints and features of every crate
  tidy                                        file headers, sizes, banned words, error pages, schemas
  crash [--full | --percent N] [--previous PATH] [-- NEXTEST ARGS]
                                              crash and power-cut campaign, on a disk that really syncs
  bench [ARGS]                                measure, on a disk that really syncs
  bench compare [--quick] [--json] [PART]     the same beside Restate and dbos, which it installs and builds
  bench pair OLD NEW [--rounds N] [WORKLOAD]  the same load on two builds in turn, as ratios with 95 % intervals; each is a
                                              program, a revision of this repository, or . for what is here
  diff [--sequences N] [-- NEXTEST ARGS]      differential random test of the stores (default 10000)
  fuzz [--seconds N]                          every fuzz target in turn (default 60 s each)
  reference                                   write docs/reference from the commands and the API's description
  with [--real] -- COMMAND                     run a command with the test servers beside it
  ledger [ARGS]                               which requirement rows the tests name";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else { bail!("no command given\n\n{USAGE}") };
    match command.as_str() {
        "test" => commands::test::run(rest),
        "layers" => commands::layers::run(rest),
        "tidy" => commands::tidy::run(rest),
        "crash" => commands::crash::run(rest),
        "bench" => commands::bench::run(rest),
        "diff" => commands::diff::run(rest),
        "fuzz" => commands::fuzz::run(rest),
        "reference" => commands::reference::run(rest),
        "ledger" => commands::ledger::run(rest),
        "with" => commands::with::run(rest),
        env::guard::COMMAND => env::guard::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("unknown command {other:?}\n\n{USAGE}"),
    }
}
