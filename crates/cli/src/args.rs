//! The command line as types. Parsing checks what can be checked without a server or a file; executing is elsewhere.
//!
//! Every command shows an example before anything else; a test parses each of them.

mod entrypoints;
mod functions;
mod invocations;
mod keys;
mod local;
mod profiles;
mod runs;
mod runtime;
mod store;
mod values;
mod watch;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use entrypoints::{
    EntrypointArg, EntrypointGetArgs, EntrypointListArgs, EntrypointsCommand, PageArgs, RegisterEntrypointArgs,
    SourceArgs, UpdateArgs,
};
pub use functions::{
    AliasArgs, CallbackArg, CallbacksCommand, ExecutionGetArgs, ExecutionListArgs, ExecutionsCommand, FailArgs,
    FunctionArg, FunctionListArgs, FunctionShowArgs, FunctionsCommand, HistoryArgs, InvokeArgs, LogsArgs, RegisterArgs,
    StopArgs, SucceedArgs, UnaliasArgs,
};
pub use invocations::{
    BulkArgs, CountsArgs, InvocationGetArgs, InvocationListArgs, InvocationRetryArgs, InvocationSignalArgs,
    InvocationSkipArgs, InvocationStartArgs, InvocationStreamArg, InvocationTargets, InvocationsCommand, TimelineArgs,
};
pub use keys::{AuditCommand, AuditListArgs, CreateKeyArgs, GenerateKeyArgs, KeyListArgs, KeysCommand, RevokeKeyArgs};
pub use local::{ConfigArgs, ConfigCommand, DemoCommand, DevArgs, DoctorArgs, LogArgs, LogFormat, ServerArgs};
pub use profiles::{AddProfileArgs, ProfileArg, ProfilesCommand};
pub use runs::{
    DeleteArgs, EventsArgs, ExportArgs, GetArgs, ImportArgs, ListArgs, Note, RetryArgs, RunLogsArgs, RunsCommand,
    SignalArgs, SignalKind, StartArgs, TailArgs, Target, Targets, TerminateArgs, VerbArgs,
};
pub use runtime::{EmbeddedArgs, ExecArgs, RuntimeCommands, RuntimeEventsArgs, SnapshotArgs};
pub use store::{BackupArgs, RestoreArgs, RetentionArgs, StoreArgs, StoreCommand};
pub use values::{parse_duration, parse_time};
pub use watch::WatchArgs;

/// Where `servo dev` listens unless told otherwise.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8700";

/// Durable execution on your own machines: functions, workflows and plans that survive crashes.
#[derive(Debug, Parser)]
#[command(
    name = "servo",
    version,
    infer_subcommands = true,
    disable_help_subcommand = true,
    before_help = "Examples:\n  servo dev\n  servo runs start plan.json --wait",
    after_help = "Exit codes: 0 ok, 1 error, 2 invalid input, 3 credentials needed, 4 not found, 5 conflict, \
                  6 limit reached,\n7 the run failed (--wait), 8 timed out waiting, 9 unavailable, 130 interrupted."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    // Variables are read in `settings`, which must know where each value came from.
    /// The server to talk to [env: SERVO_SERVER] [default: the profile's, or http://127.0.0.1:8700]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The key to present to the server; others on this machine see it in the list of processes, and --token-file keeps it from
    /// them [env: SERVO_TOKEN]
    #[arg(long, global = true, value_name = "KEY", allow_hyphen_values = true)]
    pub token: Option<String>,
    /// A file whose first line is the key, or - for stdin [env: SERVO_TOKEN_FILE]
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "token", allow_hyphen_values = true)]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of the system [env: SERVO_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The profile to take what is not said from [env: SERVO_PROFILE]
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// How data is printed: for people, as the server's whole answer, one document per line, or ids only
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub output: Option<Format>,
    /// Short for -o json
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// How times are shown [default: relative in tables, iso in lists of events]
    #[arg(long, global = true, value_name = "STYLE", value_enum)]
    pub time_format: Option<TimeFormat>,
}

impl Global {
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output.unwrap_or(Format::Table) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    // No doc comments: help would show them as a paragraph for each value.
    Table,
    Json,
    Jsonl,
    Ids,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeFormat {
    Relative,
    Iso,
    Raw,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a server for development on this machine
    #[command(before_help = "Example:\n  servo dev --port 0 --ephemeral")]
    Dev(DevArgs),
    /// Show on this machine what Servo promises
    #[command(subcommand, before_help = "Example:\n  servo demo crash")]
    Demo(DemoCommand),
    /// Start a server from a configuration file
    #[command(before_help = "Example:\n  servo server --config servo.toml")]
    Server(ServerArgs),
    /// Check or print a configuration
    #[command(subcommand, before_help = "Example:\n  servo config check --config servo.toml")]
    Config(ConfigCommand),
    /// Start, watch and control runs
    #[command(subcommand, visible_alias = "run", before_help = "Example:\n  servo runs list --status failed")]
    Runs(RunsCommand),
    /// Register functions and workflows of the serverless runtime
    #[command(subcommand, visible_alias = "entrypoint", before_help = "Example:\n  servo entrypoints list")]
    Entrypoints(EntrypointsCommand),
    /// Start, watch and control runs of entrypoints
    #[command(
        subcommand,
        visible_alias = "invocation",
        before_help = "Example:\n  servo invocations start vendor.app.tax --wait"
    )]
    Invocations(InvocationsCommand),
    /// Register functions, run them, and read what they write
    #[command(subcommand, visible_alias = "function", before_help = "Example:\n  servo functions list")]
    Functions(FunctionsCommand),
    /// Look at durable executions of functions, and stop them
    #[command(subcommand, visible_alias = "execution", before_help = "Example:\n  servo executions list orders")]
    Executions(ExecutionsCommand),
    /// Answer callbacks that executions wait for
    #[command(subcommand, visible_alias = "callback", before_help = "Example:\n  servo callbacks succeed QUFBQQ==")]
    Callbacks(CallbacksCommand),
    /// The runtime contract: authority, dispatches, replay, readiness
    #[command(subcommand, before_help = "Example:\n  servo runtime snapshot -o json")]
    Runtime(RuntimeCommands),
    /// Look after the store: size, backup, verification, retention
    #[command(before_help = "Example:\n  servo store info")]
    Store(StoreArgs),
    /// Make, list and end keys
    #[command(subcommand, visible_alias = "key", before_help = "Example:\n  servo keys create ci --role operator")]
    Keys(KeysCommand),
    /// Who did what, and who was refused
    #[command(subcommand, before_help = "Example:\n  servo audit list --outcome denied")]
    Audit(AuditCommand),
    /// Conditions that an operator should see
    #[command(visible_alias = "alert", before_help = "Example:\n  servo alerts --limit 20")]
    Alerts(AlertsArgs),
    /// Events that could not be published
    #[command(subcommand, visible_alias = "dead-letter", before_help = "Example:\n  servo dead-letters list")]
    DeadLetters(DeadLettersCommand),
    /// Look for what is wrong with a server, a configuration or a data folder
    #[command(before_help = "Examples:\n  servo doctor\n  servo doctor --data-dir ./.servo")]
    Doctor(DoctorArgs),
    /// Whom the server takes you for, and where server, key and profile came from
    #[command(before_help = "Example:\n  servo whoami")]
    Whoami,
    /// Keep servers and keys under names
    #[command(subcommand, visible_alias = "profile", before_help = "Example:\n  servo profiles list")]
    Profiles(ProfilesCommand),
    /// The published types of the serverless runtime API
    #[command(subcommand, visible_alias = "type", before_help = "Example:\n  servo types list")]
    Types(TypesCommand),
    /// Print the server's metrics as Prometheus reads them
    #[command(before_help = "Example:\n  servo metrics")]
    Metrics,
    /// Print the description of the server's HTTP API
    #[command(before_help = "Example:\n  servo openapi")]
    Openapi,
    /// Say what an error code means and what to do about it
    #[command(before_help = "Examples:\n  servo explain RUN_NOT_FOUND\n  servo explain not_active")]
    Explain {
        /// The code, as the last line of an error has it
        #[arg(value_name = "CODE")]
        code: String,
    },
    /// Print a completion script for a shell
    #[command(before_help = "Example:\n  servo completions bash")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the version; with --server also the server's
    #[command(before_help = "Example:\n  servo version --json")]
    Version,
}

#[derive(Debug, Args)]
pub struct AlertsArgs {
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// Show them, oldest first
    #[command(visible_alias = "ls", before_help = "Example:\n  servo dead-letters list --limit 50")]
    List(DeadLetterListArgs),
    /// Publish them again: one by its position, or all
    #[command(before_help = "Examples:\n  servo dead-letters redrive cursor-42\n  servo dead-letters redrive --all")]
    Redrive(RedriveArgs),
}

#[derive(Debug, Args)]
pub struct DeadLetterListArgs {
    /// Only those after this position
    #[arg(long, value_name = "POSITION")]
    pub after: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RedriveArgs {
    /// The dead letter's position
    pub position: Option<String>,
    /// Every dead letter
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Subcommand)]
pub enum TypesCommand {
    /// Show the types that there are
    #[command(visible_alias = "ls", before_help = "Example:\n  servo types list")]
    List(WatchArgs),
    /// Print the JSON Schema of a type
    #[command(visible_alias = "show", before_help = "Example:\n  servo types get gts.x.core.serverless.limits.v1~")]
    Get(TypeArg),
}

#[derive(Debug, Clone, Args)]
pub struct TypeArg {
    /// The type, by its GTS id
    #[arg(value_name = "ID")]
    pub id: String,
}
