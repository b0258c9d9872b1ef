//! What a supervised worker is: a program, and the environment that Lambda runtimes expect.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::SystemTime;

use servo_model::Timestamp;
use tokio::process::Command;

use crate::settings::Parts;

#[derive(Clone)]
pub struct WorkerCommand {
    /// A path; a bare name is searched in the `PATH` of `Parts::environment`.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Beside what every worker gets, and stronger.
    pub env: Vec<(String, String)>,
    pub dir: Option<PathBuf>,
    pub version: String,
    pub handler: String,
    pub memory_mb: u32,
}

impl fmt::Debug for WorkerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Environment and arguments may hold credentials.
        f.debug_struct("WorkerCommand").field("program", &self.program).finish_non_exhaustive()
    }
}

impl WorkerCommand {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            version: "$LATEST".to_owned(),
            handler: "bootstrap".to_owned(),
            memory_mb: 512,
        }
    }

    /// Tells one state of the program's file from another; nothing for a bare name.
    pub(super) async fn stamp(&self) -> std::io::Result<Option<Stamp>> {
        if self.program.components().count() < 2 {
            return Ok(None);
        }
        let metadata = tokio::fs::metadata(&self.program).await?;
        if !metadata.is_file() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file"));
        }
        Ok(Some(Stamp { modified: metadata.modified()?, bytes: metadata.len() }))
    }

    pub(super) fn build(&self, parts: &Parts, function: &str, address: SocketAddr) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear();
        for (name, value) in self.environment(parts, function, address) {
            command.env(name, value);
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: what it starts ends with it, and Ctrl-C at the server's terminal does not reach it.
        command.process_group(0).kill_on_drop(true);
        command
    }

    /// Later ones win.
    fn environment(&self, parts: &Parts, function: &str, address: SocketAddr) -> Vec<(String, String)> {
        let now: Timestamp = (parts.now)();
        let defaults = [
            ("AWS_ACCESS_KEY_ID", "servo".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "servo".to_owned()),
            ("AWS_REGION", parts.place.region.clone()),
            ("AWS_DEFAULT_REGION", parts.place.region.clone()),
            ("AWS_ENDPOINT_URL_LAMBDA", parts.api_url.clone()),
            ("TZ", ":UTC".to_owned()),
        ];
        // These say where the worker is, so nobody overrides them.
        let fixed = [
            ("AWS_LAMBDA_RUNTIME_API", address.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", self.version.clone()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", self.memory_mb.to_string()),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{function}")),
            ("AWS_LAMBDA_LOG_STREAM_NAME", format!("{now}/[{}]/{}", self.version, address.port())),
            ("LAMBDA_TASK_ROOT", self.dir.as_deref().unwrap_or(std::path::Path::new(".")).display().to_string()),
            ("_HANDLER", self.handler.clone()),
        ];
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        let given = parts.environment.iter().chain(&self.env).cloned();
        defaults.into_iter().map(owned).chain(given).chain(fixed.into_iter().map(owned)).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    bytes: u64,
}
