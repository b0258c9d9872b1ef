//! Logs go to stderr, for people or as JSON lines.

use std::io::IsTerminal as _;

use servo_cli::Failure;
use servo_cli::args::{LogArgs, LogFormat as Wanted};
use servo_server::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

/// Installs the subscriber: arguments win over the configuration.
pub(crate) fn install(args: &LogArgs, config: &LogConfig) -> Result<(), Failure> {
    let directives = args.filter.clone().unwrap_or_else(|| config.level.as_str().to_owned());
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        Failure::usage(format!("--log {directives}: {error}")).hint("such as info or servo_runtime=debug")
    })?;
    let json = match args.format {
        Some(format) => format == Wanted::Json,
        None => config.format == LogFormat::Json,
    };
    let colour = colour();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
    let installed = if json { builder.json().try_init() } else { builder.with_target(false).try_init() };
    // Only a second installation fails, and then the first one stands.
    let _ = installed;
    Ok(())
}

/// Whether stderr shows colours, and nobody minds.
pub(crate) fn colour() -> bool {
    let minds = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !minds
}
