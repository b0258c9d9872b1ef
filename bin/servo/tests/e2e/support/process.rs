//! The server as a child process.

use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::Value;

use super::PATIENCE;

/// What a server writes on stderr, line by line.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Receiver<String>,
    pub(crate) seen: Vec<String>,
}

impl Lines {
    /// Waits for a line that has all these parts.
    #[track_caller]
    pub(crate) fn until(&mut self, parts: &[&str]) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let Ok(line) = line else { panic!("no line with {parts:?} in {:#?}", self.seen) };
            self.seen.push(line.clone());
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    /// Everything up to the end.
    pub(crate) fn rest(mut self) -> Vec<String> {
        self.seen.extend(self.lines.iter());
        self.seen
    }
}

/// A running server. Killed when dropped, so that a failing test leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Servo {
    child: Child,
    pub(crate) url: String,
}

/// The program under test.
pub(crate) fn this_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_servo"))
}

pub(crate) fn binary() -> Command {
    binary_of(&this_program())
}

fn binary_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    // Whatever the surrounding shell has set is not part of the test.
    for name in ["SERVO_SABOTAGE", "SERVO_CRASHPOINT", "SERVO_SERVER", "SERVO_TOKEN", "SERVO_CA_FILE", "SERVO_PROFILE"]
    {
        command.env_remove(name);
    }
    // Nor are the profiles of whoever runs it.
    command.env("XDG_CONFIG_HOME", "/nowhere");
    command
}

impl Servo {
    /// `servo dev` on a folder.
    pub(crate) fn dev(data: &Path, variables: &[(&str, &str)]) -> Result<Self, String> {
        Self::dev_with(data, &[], variables)
    }

    /// The same by another program, such as an older release.
    pub(crate) fn dev_of(program: &Path, data: &Path) -> Result<Self, String> {
        let mut command = binary_of(program);
        command.args(["dev", "--port", "0", "--no-open", "--no-sample", "--ready-json", "--data-dir"]).arg(data);
        Self::spawn(command, &[])
    }

    /// The same with more arguments, such as `--function`.
    pub(crate) fn dev_with(data: &Path, more: &[&str], variables: &[(&str, &str)]) -> Result<Self, String> {
        let mut command = binary();
        command.args(["dev", "--port", "0", "--no-open", "--no-sample", "--ready-json", "--data-dir"]).arg(data);
        command.args(more);
        Self::spawn(command, variables)
    }

    /// The same with the demo that newcomers see.
    pub(crate) fn dev_with_demo(data: &Path) -> Result<Self, String> {
        let mut command = binary();
        command.args(["dev", "--port", "0", "--no-open", "--ready-json", "--data-dir"]).arg(data);
        Self::spawn(command, &[])
    }

    /// `servo dev` with these arguments and nothing left out of its stderr.
    pub(crate) fn watched(arguments: &[&str]) -> Result<(Self, Lines), String> {
        let mut command = binary();
        command.args(["dev", "--port", "0", "--no-open", "--ready-json"]).args(arguments);
        Self::spawn_watched(command, &[])
    }

    /// `servo dev` on a folder, and nothing left out of its stderr.
    pub(crate) fn dev_watched(data: &Path, variables: &[(&str, &str)]) -> Result<(Self, Lines), String> {
        let mut command = binary();
        command.args(["dev", "--port", "0", "--no-open", "--no-sample", "--ready-json", "--data-dir"]).arg(data);
        Self::spawn_watched(command, variables)
    }

    fn spawn_watched(command: Command, variables: &[(&str, &str)]) -> Result<(Self, Lines), String> {
        let (sender, lines) = mpsc::channel();
        let servo = Self::spawn_with(command, variables, move |pipe| {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        })?;
        Ok((servo, Lines { lines, seen: Vec::new() }))
    }

    /// `servo server` with a configuration file.
    pub(crate) fn server(config: &Path, variables: &[(&str, &str)]) -> Result<Self, String> {
        let mut command = binary();
        command.args(["server", "--ready-json", "--config"]).arg(config);
        Self::spawn(command, variables)
    }

    /// Any command that says with a line of JSON on stdout where it answers; its stderr is what the test makes of it.
    pub(crate) fn with_stderr(mut command: Command, stderr: impl Into<Stdio>) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().expect("the program is there");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("its stdout");
        let document: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            let _ = child.kill();
            panic!("not ready: {line:?} {error} {:?}", child.wait())
        });
        let url = document["api"].as_str().expect("an address").to_owned();
        Self { child, url }
    }

    /// Starts it and waits for its ready line, or says what it printed instead.
    fn spawn(command: Command, variables: &[(&str, &str)]) -> Result<Self, String> {
        // Its log goes nowhere; a full pipe must not stop it.
        Self::spawn_with(command, variables, |mut pipe| drop(std::io::copy(&mut pipe, &mut std::io::sink())))
    }

    fn spawn_with(
        mut command: Command,
        variables: &[(&str, &str)],
        log: impl FnOnce(ChildStderr) + Send + 'static,
    ) -> Result<Self, String> {
        command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("stdout is piped")?;
        let read = BufReader::new(stdout).read_line(&mut line);
        let document: Option<Value> = serde_json::from_str(&line).ok();
        let url = document.as_ref().and_then(|document| document["api"].as_str()).map(str::to_owned);
        let Some(url) = url else {
            let _ = child.kill();
            let mut stderr = String::new();
            if let Some(mut pipe) = child.stderr.take() {
                let _ = pipe.read_to_string(&mut stderr);
            }
            let _ = child.wait();
            return Err(format!("not ready: {read:?} {line:?}\n{stderr}"));
        };
        if let Some(pipe) = child.stderr.take() {
            std::thread::spawn(move || log(pipe));
        }
        Ok(Self { child, url })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// As `kill -9`.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop and waits for it.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("the child is ours")
    }

    /// Waits for an end that the server comes to by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("the child is ours")
    }

    #[cfg(feature = "sabotage")]
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Servo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
