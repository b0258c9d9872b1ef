//! `servo runtime …`: the runtime contract, on a server or straight on an embedded store.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use servo_model::Timestamp;

use super::{WatchArgs, values};

#[derive(Debug, Subcommand)]
pub enum RuntimeCommands {
    /// Execute one command of the contract
    #[command(before_help = r#"Examples:
  servo runtime exec '{"command":"QueueDispatch","request_id":"r1","target":"worker-a"}'
  servo runtime exec --data-dir ./.servo '{"command":"CaptureSnapshot"}'"#)]
    Exec(ExecArgs),
    /// Show how the runtime stands
    #[command(
        before_help = "Examples:\n  servo runtime snapshot\n  servo runtime snapshot --data-dir ./.servo -o json"
    )]
    Snapshot(SnapshotArgs),
    /// Print the contract as JSON Schema; with --server, the server's
    #[command(before_help = "Example:\n  servo runtime schema")]
    Schema,
    /// Print the contract's events
    #[command(before_help = "Example:\n  servo runtime events --after cursor-42 --limit 20")]
    Events(RuntimeEventsArgs),
}

/// Straight on a data folder that no server has open.
#[derive(Debug, Clone, Default, Args)]
pub struct EmbeddedArgs {
    /// Act on this data folder instead of a server
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Take this as the present time instead of the clock's
    #[arg(long, value_name = "TIME", requires = "data_dir", value_parser = values::parse_time)]
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, Args)]
pub struct SnapshotArgs {
    #[command(flatten)]
    pub embedded: EmbeddedArgs,
    #[command(flatten)]
    pub look: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ExecArgs {
    /// The command as JSON; - reads it from stdin
    #[arg(value_name = "JSON")]
    pub command: String,
    #[command(flatten)]
    pub embedded: EmbeddedArgs,
}

#[derive(Debug, Clone, Args)]
pub struct RuntimeEventsArgs {
    /// Only events after this cursor
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
    /// Log entries per page
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub embedded: EmbeddedArgs,
}
