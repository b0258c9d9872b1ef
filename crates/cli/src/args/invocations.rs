//! `servo invocations …`

use std::time::Duration;

use clap::{Args, Subcommand};

use super::entrypoints::PageArgs;
use super::{RunLogsArgs, Target, WatchArgs, values};

#[derive(Debug, Subcommand)]
pub enum InvocationsCommand {
    /// Start an invocation of an entrypoint
    #[command(
        before_help = "Examples:\n  servo invocations start vendor.app.tax --params '{\"amount\":100}' --wait\n  servo invocations start vendor.app.tax --key order-7 --dry-run"
    )]
    Start(InvocationStartArgs),
    /// List invocations, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  servo invocations list --status failed\n  servo invocations list --status running -o ids"
    )]
    List(InvocationListArgs),
    /// Show an invocation: what it waits for, why it failed, its steps with their attempts
    #[command(visible_alias = "show", before_help = "Example:\n  servo invocations get inv_0194f3c2")]
    Get(InvocationGetArgs),
    /// Show what happened to an invocation
    #[command(before_help = "Example:\n  servo invocations timeline inv_0194f3c2")]
    Timeline(TimelineArgs),
    /// Follow what happens to an invocation until it ends
    #[command(
        visible_alias = "tail",
        alias = "follow",
        before_help = "Example:\n  servo invocations watch inv_0194f3c2"
    )]
    Watch(InvocationStreamArg),
    /// Show what the code of a run wrote
    #[command(
        before_help = "Examples:\n  servo invocations logs inv_0194f3c2\n  servo invocations logs inv_0194f3c2 --follow"
    )]
    Logs(RunLogsArgs),
    /// End invocations in good order
    #[command(
        before_help = "Examples:\n  servo invocations cancel inv_0194f3c2\n  servo invocations list --status running -o ids | servo invocations cancel -"
    )]
    Cancel(InvocationTargets),
    /// Halt running workflows
    #[command(before_help = "Example:\n  servo invocations suspend inv_0194f3c2")]
    Suspend(InvocationTargets),
    /// Let suspended invocations go on
    #[command(before_help = "Example:\n  servo invocations resume inv_0194f3c2")]
    Resume(InvocationTargets),
    /// Run failed invocations again, or one step of a workflow
    #[command(
        before_help = "Examples:\n  servo invocations retry inv_0194f3c2\n  servo invocations retry inv_0194f3c2 --step charge"
    )]
    Retry(InvocationRetryArgs),
    /// Start new invocations with the params of ended ones
    #[command(before_help = "Example:\n  servo invocations replay inv_0194f3c2")]
    Replay(InvocationTargets),
    /// Let a workflow go on as if a step had been done
    #[command(before_help = "Example:\n  servo invocations skip inv_0194f3c2 --step notify")]
    Skip(InvocationSkipArgs),
    /// Send a message to a workflow that waits for it
    #[command(before_help = "Example:\n  servo invocations signal inv_0194f3c2 approved --payload '{\"by\":\"ann\"}'")]
    Signal(InvocationSignalArgs),
    /// Do one action on all invocations that a filter finds
    #[command(
        before_help = "Example:\n  servo invocations bulk retry --filter \"status eq 'dead_lettered'\" --per-second 10 --dry-run"
    )]
    Bulk(BulkArgs),
    /// Count invocations by status
    #[command(before_help = "Example:\n  servo invocations counts")]
    Counts(CountsArgs),
}

/// Invocations to act on.
#[derive(Debug, Clone, Args)]
pub struct InvocationTargets {
    /// The invocations; - reads ids from stdin, one per line
    #[arg(value_name = "ID", required = true, value_parser = values::run_id_or_dash)]
    pub ids: Vec<Target>,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationGetArgs {
    #[command(flatten)]
    pub targets: InvocationTargets,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationStreamArg {
    /// The invocation; - reads ids from stdin, one per line
    #[arg(value_name = "ID", value_parser = values::run_id_or_dash)]
    pub id: Target,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationSkipArgs {
    #[command(flatten)]
    pub targets: InvocationTargets,
    /// The step
    #[arg(long, value_name = "STEP")]
    pub step: String,
}

#[derive(Debug, Clone, Args)]
pub struct TimelineArgs {
    /// The invocation; - reads ids from stdin, one per line
    #[arg(value_name = "ID", value_parser = values::run_id_or_dash)]
    pub id: Target,
    /// Continue with what comes until the invocation ends
    #[arg(long, visible_alias = "follow")]
    pub watch: bool,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationStartArgs {
    /// The entrypoint: a short name such as vendor.app.tax, which means its highest active version, vendor.app.tax.v2, or an address
    #[arg(value_name = "ENTRYPOINT")]
    pub entrypoint: String,
    /// Treat the short name as a workflow (needed where a function has the same name)
    #[arg(long)]
    pub workflow: bool,
    /// Treat the short name as a function (needed where a workflow has the same name)
    #[arg(long, conflicts_with = "workflow")]
    pub function: bool,
    /// The params as JSON: the text itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub params: Option<String>,
    /// How it is started [default: the entrypoint's own]
    #[arg(long, value_name = "MODE", value_parser = ["sync", "async"])]
    pub mode: Option<String>,
    /// Names the start: the same key again gives the run that it started
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only say whether it could start
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until it has ended; exit 7 if it did not succeed
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// As --wait, and show what happens meanwhile
    #[arg(long, conflicts_with = "dry_run")]
    pub watch: bool,
    /// Give up waiting after this time and exit 8, such as 30s or PT5M
    #[arg(long, value_name = "DURATION", conflicts_with = "dry_run", value_parser = values::parse_duration)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationListArgs {
    /// Only those in this status
    #[arg(long, value_name = "STATUS", value_parser = ["queued", "running", "suspended", "succeeded", "failed",
          "canceled", "compensating", "compensated", "dead_lettered"])]
    pub status: Option<String>,
    /// Only those of this entrypoint: a short name in all its versions, one version of it, or an address
    #[arg(long, value_name = "ENTRYPOINT")]
    pub entrypoint: Option<String>,
    /// Only those that were started under this correlation id
    #[arg(long, value_name = "ID")]
    pub correlation_id: Option<String>,
    /// Only those that were started so
    #[arg(long, value_name = "MODE", value_parser = ["sync", "async"])]
    pub mode: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationRetryArgs {
    #[command(flatten)]
    pub targets: InvocationTargets,
    /// Only this step
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct InvocationSignalArgs {
    /// The invocation; - reads ids from stdin, one per line
    #[arg(value_name = "ID", value_parser = values::run_id_or_dash)]
    pub id: Target,
    /// What the workflow waits for
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The message as JSON: the text itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// Names the signal: sending the same id again changes nothing [default: a new one]
    #[arg(long, value_name = "ID")]
    pub signal_id: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct BulkArgs {
    /// The action
    #[arg(value_name = "ACTION", value_parser = ["cancel", "suspend", "resume", "retry", "replay"])]
    pub action: String,
    /// Which invocations, as `list --filter`
    #[arg(long, value_name = "ODATA")]
    pub filter: String,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_items: u32,
    /// All of them, however many calls it takes
    #[arg(long, conflicts_with = "max_items")]
    pub all: bool,
    /// At most this many a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub per_second: Option<u32>,
    /// Only say which ones it would be
    #[arg(long)]
    pub dry_run: bool,
    /// Go on behind an earlier call, which names its cursor
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CountsArgs {
    /// Only those of this entrypoint: a short name in all its versions, one version of it, or an address
    #[arg(long, value_name = "ENTRYPOINT")]
    pub entrypoint: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
}
