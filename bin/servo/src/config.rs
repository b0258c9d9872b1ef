//! Reading the configuration: a file, and `SERVO__SECTION__KEY` variables over it.

use std::path::Path;

use servo_cli::args::ConfigArgs;
use servo_cli::view::{GoodConfig, PrintedConfig};
use servo_cli::{Failure, Out, exit};
use servo_server::Config;
use servo_server::config::StoreConfig;

/// The configuration that a file and the environment give together.
pub(crate) fn load(path: Option<&Path>) -> Result<Config, Failure> {
    let text = match path {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())).hint("name a readable file"))?,
        None => String::new(),
    };
    let variables = std::env::vars().filter(|(name, _)| name.starts_with("SERVO__"));
    Config::load(&text, variables).map_err(|error| {
        let place = path.map_or_else(|| "configuration".to_owned(), |path| path.display().to_string());
        Failure::usage(format!("{place}: {error}")).hint("servo.toml.example has every key with its default")
    })
}

pub(crate) fn check(args: &ConfigArgs, out: &Out) -> Result<u8, Failure> {
    let config = load(args.config.as_deref())?;
    if let StoreConfig::Postgres { url } = &config.store
        && let Some(words) = servo_store_postgres::exposure(url)
    {
        out.note(&format!("warning: store.url: {words}; say sslmode=verify-full"));
    }
    let file = args.config.as_ref().map(|path| path.display().to_string());
    out.print(&GoodConfig { file, good: true })?;
    Ok(exit::OK)
}

pub(crate) fn print(args: &ConfigArgs, out: &Out) -> Result<u8, Failure> {
    let config = load(args.config.as_deref())?;
    out.print(&PrintedConfig { toml: config.print(), document: config.print_json() })?;
    Ok(exit::OK)
}
