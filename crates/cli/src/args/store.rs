//! `servo store …`, on a server or straight on a data folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values;

#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Act on this data folder instead of a server
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Kind, version, size and the settings that durability rests on
    #[command(before_help = "Examples:\n  servo store info\n  servo store info --data-dir ./.servo -o json")]
    Info,
    /// Copy the store to a file while it works
    #[command(
        before_help = "Examples:\n  servo store backup servo.backup\n  servo store backup servo.backup --data-dir ./.servo"
    )]
    Backup(BackupArgs),
    /// Put a backup into a data folder that no server has open
    #[command(before_help = "Example:\n  servo store restore servo.backup --data-dir ./.servo")]
    Restore(RestoreArgs),
    /// Fold every run and compare the result with its row
    #[command(before_help = "Examples:\n  servo store verify\n  servo store verify --data-dir ./.servo")]
    Verify,
    /// Remove finished runs that are older than the limit
    #[command(
        before_help = "Examples:\n  servo store retention\n  servo store retention --data-dir ./.servo --older-than 30d"
    )]
    Retention(RetentionArgs),
    /// Open a store that crashed and lacks something of its redo files, without what is missing
    #[command(
        name = "accept-loss",
        before_help = "Example:\n  servo store accept-loss --data-dir ./.servo",
        long_about = "Open a store that crashed and lacks something of its redo files, without what is missing: what was acknowledged \
                      last may be gone. Keep a copy of the folder first. The server starts again after this"
    )]
    AcceptLoss,
}

#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// The backup to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct RetentionArgs {
    /// Remove runs that finished longer ago than this, such as 30d; needs --data-dir, a server has its own limit
    #[arg(long, value_name = "DURATION", requires = "data_dir", value_parser = values::parse_duration)]
    pub older_than: Option<Duration>,
}
