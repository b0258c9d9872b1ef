//! `servo runs …`

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use servo_model::event::SignalType;
use servo_model::ids::Name;
use servo_model::{RunId, SignalId, StepId, Timestamp};

use super::{WatchArgs, values};

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  servo runs list --status failed --limit 20\n  servo runs list --status running -o ids"
    )]
    List(ListArgs),
    /// Show a run: its steps with their attempts, what it waits for, why it failed
    #[command(visible_alias = "show", before_help = "Example:\n  servo runs get inv_0194f3c2 --watch")]
    Get(GetArgs),
    /// Print the events of a run
    #[command(
        before_help = "Examples:\n  servo runs events inv_0194f3c2\n  servo runs events inv_0194f3c2 --after 12 --follow -o jsonl"
    )]
    Events(EventsArgs),
    /// Follow the events of a run until it ends, one line each
    #[command(visible_alias = "watch", alias = "follow", before_help = "Example:\n  servo runs tail inv_0194f3c2")]
    Tail(TailArgs),
    /// Start a run of a plan
    #[command(
        before_help = "Examples:\n  servo runs start plan.json --wait --timeout 30s\n  servo runs start - --request-id nightly-2026-02-11"
    )]
    Start(StartArgs),
    /// Send a signal to runs
    #[command(
        before_help = "Examples:\n  servo runs signal inv_0194f3c2 skip-step --step load --reason 'source is gone'\n  servo runs signal inv_0194f3c2 pause"
    )]
    Signal(SignalArgs),
    /// Stop handing out steps; those in flight finish
    #[command(before_help = "Example:\n  servo runs pause inv_0194f3c2 --reason maintenance")]
    Pause(VerbArgs),
    /// Go on after a pause
    #[command(before_help = "Example:\n  servo runs resume inv_0194f3c2")]
    Resume(VerbArgs),
    /// End runs in good order
    #[command(
        before_help = "Examples:\n  servo runs cancel inv_0194f3c2 --reason 'wrong input'\n  servo runs list --status running -o ids | servo runs cancel -"
    )]
    Cancel(VerbArgs),
    /// Let runs start that wait for an approval
    #[command(before_help = "Example:\n  servo runs approve inv_0194f3c2")]
    Approve(VerbArgs),
    /// Run a failed step again, or the whole run
    #[command(before_help = "Examples:\n  servo runs retry inv_0194f3c2 --step load\n  servo runs retry inv_0194f3c2")]
    Retry(RetryArgs),
    /// Write a run to a file that another store can import
    #[command(before_help = "Example:\n  servo runs export inv_0194f3c2 --file run.json")]
    Export(ExportArgs),
    /// Put an exported run into this store
    #[command(before_help = "Example:\n  servo runs import run.json")]
    Import(ImportArgs),
    /// End runs at once, also those whose log cannot be read
    #[command(before_help = "Example:\n  servo runs terminate inv_0194f3c2 --reason 'stuck' --yes")]
    Terminate(TerminateArgs),
    /// Remove runs with all their events
    #[command(visible_alias = "rm", before_help = "Example:\n  servo runs delete inv_0194f3c2 --yes")]
    Delete(DeleteArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Only runs in this status
    #[arg(long, value_name = "STATUS", ignore_case = true,
          value_parser = ["queued", "running", "suspended", "succeeded", "failed", "canceled"])]
    pub status: Option<String>,
    /// Only runs of this plan
    #[arg(long, value_name = "ID")]
    pub plan: Option<String>,
    /// Runs per page
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on where an earlier page ended
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    pub cursor: Option<String>,
    /// Every page
    #[arg(long, conflicts_with = "watch")]
    pub all: bool,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// The run; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", value_parser = values::run_id_or_dash)]
    pub run: Target,
    /// Only events after this sequence number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
    /// At most this many; without it, all
    #[arg(long, value_name = "N", conflicts_with = "follow", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Continue with new events until the run ends
    #[arg(long, short, visible_alias = "watch")]
    pub follow: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RunLogsArgs {
    /// The run; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", value_parser = values::run_id_or_dash)]
    pub run: Target,
    /// Continue with new lines until the run ends
    #[arg(long, short, visible_alias = "watch")]
    pub follow: bool,
}

#[derive(Debug, Clone, Args)]
pub struct TailArgs {
    /// The run; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", value_parser = values::run_id_or_dash)]
    pub run: Target,
    /// Only events after this sequence number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
}

#[derive(Debug, Clone, Args)]
pub struct StartArgs {
    /// The plan, a JSON file; - reads it from stdin
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// The project the run belongs to
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub project: Option<Name>,
    /// The environment the run belongs to
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub environment: Option<Name>,
    /// Names the request: the same id again gives the run that it started
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Wait for an approval before the first step
    #[arg(long)]
    pub approval: bool,
    /// Do not start before this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_time)]
    pub not_before: Option<Timestamp>,
    /// Wait until the run has ended; exit 7 if it did not complete
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this time and exit 8, such as 30s or PT5M
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = values::parse_duration)]
    pub timeout: Option<Duration>,
}

/// Runs to act on.
#[derive(Debug, Clone, Args)]
pub struct Targets {
    /// The runs; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", required = true, value_parser = values::run_id_or_dash)]
    pub runs: Vec<Target>,
}

/// A run, or the list on stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Run(RunId),
    Stdin,
}

#[derive(Debug, Clone, Args)]
pub struct SignalArgs {
    /// The run; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", value_parser = values::run_id_or_dash)]
    pub run: Target,
    /// The signal
    #[arg(value_name = "TYPE", value_enum, ignore_case = true)]
    pub kind: SignalKind,
    /// The step that retry-step and skip-step are about
    #[arg(long, value_name = "STEP", value_parser = values::step_id)]
    pub step: Option<StepId>,
    #[command(flatten)]
    pub note: Note,
}

/// What goes along with any signal.
#[derive(Debug, Clone, Default, Args)]
pub struct Note {
    /// Why; recorded with the signal
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Names the signal: sending the same id again changes nothing [default: a new one]
    #[arg(long, value_name = "ID", value_parser = values::signal_id)]
    pub signal_id: Option<SignalId>,
}

#[derive(Debug, Clone, Args)]
pub struct VerbArgs {
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub note: Note,
}

#[derive(Debug, Clone, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    pub targets: Targets,
    /// Only this step
    #[arg(long, value_name = "STEP", value_parser = values::step_id)]
    pub step: Option<StepId>,
    #[command(flatten)]
    pub note: Note,
}

#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// The run; - reads ids from stdin, one per line
    #[arg(value_name = "RUN", value_parser = values::run_id_or_dash)]
    pub run: Target,
    /// The file to write; without it, stdout
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "file")]
    pub replace: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// An exported run; - reads it from stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct TerminateArgs {
    #[command(flatten)]
    pub targets: Targets,
    /// Why; recorded with the end of the run
    #[arg(long, value_name = "TEXT", default_value = "terminated from the command line")]
    pub reason: String,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub targets: Targets,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// A signal type as people type it: `retry-step`, and also `RETRY_STEP` as the API spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalKind(pub SignalType);

impl ValueEnum for SignalKind {
    fn value_variants<'a>() -> &'a [Self] {
        use SignalType as S;
        const ALL: [SignalKind; 7] = [
            SignalKind(S::Pause),
            SignalKind(S::Resume),
            SignalKind(S::Cancel),
            SignalKind(S::RetryStep),
            SignalKind(S::SkipStep),
            SignalKind(S::Approve),
            SignalKind(S::RetryRun),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            SignalType::Pause => PossibleValue::new("pause"),
            SignalType::Resume => PossibleValue::new("resume"),
            SignalType::Cancel => PossibleValue::new("cancel"),
            SignalType::RetryStep => PossibleValue::new("retry-step").alias("retry_step"),
            SignalType::SkipStep => PossibleValue::new("skip-step").alias("skip_step"),
            SignalType::Approve => PossibleValue::new("approve"),
            SignalType::RetryRun => PossibleValue::new("retry-run").alias("retry_run"),
            // Messages are sent to invocations, with a name and a payload.
            SignalType::Message => return None,
        })
    }
}
