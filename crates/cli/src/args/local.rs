//! Commands that need no server: starting one, and looking at configurations and data folders.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Clone, Args)]
pub struct DevArgs {
    /// The loopback port to listen on; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 8700, env = "SERVO_PORT")]
    pub port: u16,
    /// Where data is kept
    #[arg(long, value_name = "DIR", default_value = "./.servo")]
    pub data_dir: PathBuf,
    /// Keep data in a temporary folder that is removed at the end
    #[arg(long, conflicts_with_all = ["data_dir", "reset"])]
    pub ephemeral: bool,
    /// Remove the data of earlier sessions first
    #[arg(long)]
    pub reset: bool,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
    /// Print one JSON line with the addresses on stdout once ready
    #[arg(long)]
    pub ready_json: bool,
    /// A function and its handler: NAME=URL to call, or NAME=./program to start as its worker; may be given again
    #[arg(long, value_name = "NAME=TARGET")]
    pub function: Vec<String>,
    /// Do not register the demo and start its runs on an empty store
    #[arg(long)]
    pub no_sample: bool,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub enum DemoCommand {
    /// Kill a server in the middle of an order, and see the next one finish it
    #[command(before_help = "Example:\n  servo demo crash")]
    Crash,
}

#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// The configuration file
    #[arg(long, short, value_name = "FILE", env = "SERVO_CONFIG")]
    pub config: PathBuf,
    /// Print one JSON line with the addresses on stdout once ready
    #[arg(long)]
    pub ready_json: bool,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// What is logged, such as info or servo_runtime=debug,warn
    #[arg(long = "log", value_name = "FILTER", env = "SERVO_LOG")]
    pub filter: Option<String>,
    /// How log lines look
    #[arg(long = "log-format", value_name = "FORMAT", value_enum)]
    pub format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read a configuration and say what is wrong with it
    #[command(before_help = "Example:\n  servo config check --config servo.toml")]
    Check(ConfigArgs),
    /// Print the configuration in effect, defaults included and secrets left out
    #[command(before_help = "Example:\n  servo config print --config servo.toml")]
    Print(ConfigArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The configuration file; without it, the defaults
    #[arg(long, short, value_name = "FILE", env = "SERVO_CONFIG")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Look at this data folder instead of a server
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Look at this configuration and its database too
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
