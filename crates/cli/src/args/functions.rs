//! Functions, their executions, and callbacks.

use std::time::Duration;

use clap::{Args, Subcommand};
use servo_model::{AliasName, FunctionName};

use super::{Target, WatchArgs, values};

#[derive(Debug, Subcommand)]
pub enum FunctionsCommand {
    /// Publish a function, or its next version
    #[command(
        before_help = "Examples:\n  servo functions register orders --push http://127.0.0.1:9000\n  servo functions register orders --pull"
    )]
    Register(RegisterArgs),
    /// Show all functions
    #[command(visible_alias = "ls", before_help = "Example:\n  servo functions list")]
    List(FunctionListArgs),
    /// Show a function with its versions, what still runs on each, and its aliases
    #[command(
        visible_alias = "get",
        before_help = "Examples:\n  servo functions show orders\n  servo functions show orders --version 3"
    )]
    Show(FunctionShowArgs),
    /// Let an alias name a version
    #[command(before_help = "Example:\n  servo functions alias orders live 3")]
    Alias(AliasArgs),
    /// Take an alias away
    #[command(before_help = "Example:\n  servo functions unalias orders live")]
    Unalias(UnaliasArgs),
    /// Remove a function that no run needs any more
    #[command(visible_alias = "rm", before_help = "Example:\n  servo functions remove orders")]
    Remove(FunctionArg),
    /// Run a function and print its result
    #[command(
        before_help = "Examples:\n  servo functions invoke orders --payload '{\"id\":7}'\n  servo functions invoke orders --event --name order-7"
    )]
    Invoke(InvokeArgs),
    /// Show what a run's code wrote; of a function, its newest run's
    #[command(before_help = "Examples:\n  servo functions logs orders\n  servo functions logs inv_0194f3c2 --follow")]
    Logs(LogsArgs),
}

#[derive(Debug, Clone, Args)]
pub struct FunctionArg {
    /// The function
    #[arg(value_name = "NAME", value_parser = values::function_name)]
    pub name: FunctionName,
}

#[derive(Debug, Clone, Args)]
pub struct FunctionShowArgs {
    /// The function
    #[arg(value_name = "NAME", value_parser = values::function_name)]
    pub name: FunctionName,
    /// One version, with the address for workers that are to get its runs only
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct FunctionListArgs {
    /// Functions per page
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on behind this function
    #[arg(long, value_name = "NAME")]
    pub after: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("reach").required(true))]
pub struct RegisterArgs {
    /// The function
    #[arg(value_name = "NAME", value_parser = values::function_name)]
    pub name: FunctionName,
    /// Call its handler at this address, which speaks Lambda's Invoke
    #[arg(long, value_name = "URL", group = "reach")]
    pub push: Option<String>,
    /// Let its workers ask for work, by Lambda's Runtime API
    #[arg(long, group = "reach")]
    pub pull: bool,
    /// A function that answers at once and records no steps
    #[arg(long)]
    pub plain: bool,
    /// How long an execution may take
    #[arg(long, value_name = "DURATION", value_parser = values::parse_duration)]
    pub execution_timeout: Option<Duration>,
    /// How long one invocation may take
    #[arg(long, value_name = "DURATION", value_parser = values::parse_duration)]
    pub invocation_timeout: Option<Duration>,
    /// Invocations at the same time
    #[arg(long, value_name = "N")]
    pub max_concurrent: Option<u32>,
}

#[derive(Debug, Clone, Args)]
pub struct AliasArgs {
    /// The function
    #[arg(value_name = "NAME", value_parser = values::function_name)]
    pub name: FunctionName,
    /// The alias
    #[arg(value_name = "ALIAS", value_parser = values::alias_name)]
    pub alias: AliasName,
    /// The version that it names
    #[arg(value_name = "VERSION")]
    pub version: u64,
}

#[derive(Debug, Clone, Args)]
pub struct UnaliasArgs {
    /// The function
    #[arg(value_name = "NAME", value_parser = values::function_name)]
    pub name: FunctionName,
    /// The alias
    #[arg(value_name = "ALIAS", value_parser = values::alias_name)]
    pub alias: AliasName,
}

#[derive(Debug, Clone, Args)]
pub struct InvokeArgs {
    /// The function: a name, name:qualifier, or an ARN
    #[arg(value_name = "NAME")]
    pub function: String,
    /// Its input as JSON: the text itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// A name for the execution: the same name never starts two
    #[arg(long, value_name = "EXECUTION")]
    pub name: Option<String>,
    /// A version or an alias
    #[arg(long, value_name = "QUALIFIER")]
    pub qualifier: Option<String>,
    /// Do not wait for the result
    #[arg(long)]
    pub event: bool,
}

#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// A run, the ARN of an execution, or a function; - reads runs from stdin, one per line
    #[arg(value_name = "RUN|NAME")]
    pub of: String,
    /// Continue with new lines until the run ends
    #[arg(long, short, visible_alias = "watch")]
    pub follow: bool,
}

#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// Show a function's executions, newest first
    #[command(visible_alias = "ls", before_help = "Example:\n  servo executions list orders --status RUNNING")]
    List(ExecutionListArgs),
    /// Show executions
    #[command(visible_alias = "show", before_help = "Example:\n  servo executions get inv_0194f3c2")]
    Get(ExecutionGetArgs),
    /// Show what happened in an execution
    #[command(before_help = "Example:\n  servo executions history inv_0194f3c2")]
    History(HistoryArgs),
    /// End executions
    #[command(
        before_help = "Examples:\n  servo executions stop inv_0194f3c2 --reason 'ordered twice'\n  servo executions list orders --status RUNNING -o ids | servo executions stop -"
    )]
    Stop(StopArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ExecutionListArgs {
    /// The function
    #[arg(value_name = "NAME")]
    pub function: String,
    /// Only executions in this status; may be given again
    #[arg(long, value_name = "STATUS", ignore_case = true,
          value_parser = ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED"])]
    pub status: Vec<String>,
    /// Only executions of this name
    #[arg(long, value_name = "EXECUTION")]
    pub name: Option<String>,
    /// Executions per page
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on where an earlier page ended
    #[arg(long, value_name = "MARKER")]
    pub marker: Option<String>,
    /// Only executions of this version or alias
    #[arg(long, value_name = "QUALIFIER")]
    pub qualifier: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ExecutionGetArgs {
    /// The runs, or the executions' ARNs; - reads them from stdin, one per line
    #[arg(value_name = "RUN|ARN", required = true, value_parser = values::execution_or_dash)]
    pub runs: Vec<Target>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// The run, or the execution's ARN; - reads them from stdin, one per line
    #[arg(value_name = "RUN|ARN", value_parser = values::execution_or_dash)]
    pub run: Target,
    /// The newest event first
    #[arg(long)]
    pub newest_first: bool,
}

#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// The runs, or the executions' ARNs; - reads them from stdin, one per line
    #[arg(value_name = "RUN|ARN", required = true, value_parser = values::execution_or_dash)]
    pub runs: Vec<Target>,
    /// Why, for whoever looks at it later
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum CallbacksCommand {
    /// Answer a callback with a result
    #[command(before_help = "Example:\n  servo callbacks succeed QUFBQQ== --payload '{\"approved\":true}'")]
    Succeed(SucceedArgs),
    /// Answer a callback with an error
    #[command(before_help = "Example:\n  servo callbacks fail QUFBQQ== --message 'not approved'")]
    Fail(FailArgs),
    /// Say that whoever has the callback is still at work
    #[command(before_help = "Example:\n  servo callbacks heartbeat QUFBQQ==")]
    Heartbeat(CallbackArg),
}

#[derive(Debug, Clone, Args)]
pub struct CallbackArg {
    /// The callback
    #[arg(value_name = "ID")]
    pub id: String,
}

#[derive(Debug, Clone, Args)]
pub struct SucceedArgs {
    /// The callback
    #[arg(value_name = "ID")]
    pub id: String,
    /// The result as JSON: the text itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct FailArgs {
    /// The callback
    #[arg(value_name = "ID")]
    pub id: String,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Its kind, for code that tells errors apart
    #[arg(long, value_name = "NAME")]
    pub error_type: Option<String>,
}
