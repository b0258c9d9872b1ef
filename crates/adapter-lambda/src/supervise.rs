//! Keeps a binary running as worker of a pull function: started again when it ends, replaced when its file changed, ended
//! when it hangs past a deadline or nobody wants it any more.

pub(crate) mod command;
pub(crate) mod lines;
mod signal;
pub(crate) mod spawner;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use servo_adapter::Source;
use servo_model::operation::ErrorObject;
use tokio::io::AsyncRead;
use tokio::process::Child;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::port::{LastWord, PortId};
use crate::pull::Hub;
use crate::settings::Parts;
use crate::tasks;
use command::{Stamp, WorkerCommand};
use lines::Lines;
use signal::Signal;
use spawner::Spawner;

/// What the worker wrote last is read for so long after its end; what it started may hold the pipes open for ever.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(crate) struct Supervised {
    pub(crate) hub: Arc<Hub>,
    pub(crate) port: PortId,
    pub(crate) stop: CancellationToken,
    command: WorkerCommand,
    address: SocketAddr,
    parts: Arc<Parts>,
    spawner: Arc<Spawner>,
    replace: Notify,
    /// The program's file as it was when the worker was started.
    stamp: Mutex<Option<Stamp>>,
}

/// How a worker's life ended.
enum End {
    /// By itself, or it could not even begin.
    Ended(String),
    Replaced,
    Stopped,
}

impl Supervised {
    pub(crate) fn new(
        hub: Arc<Hub>,
        (port, address): (PortId, SocketAddr),
        command: WorkerCommand,
        (parts, spawner): (Arc<Parts>, Arc<Spawner>),
        stop: CancellationToken,
    ) -> Self {
        Self { hub, port, stop, command, address, parts, spawner, replace: Notify::new(), stamp: Mutex::new(None) }
    }

    /// Asks for a new process if the program's file is not the one that was started. A file that is missing, as in the middle
    /// of a build, changes nothing.
    pub(crate) async fn replace_if_changed(&self) -> bool {
        let Ok(Some(now)) = self.command.stamp().await else { return false };
        let mut started = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = started.is_some_and(|started| started != now);
        if changed {
            *started = Some(now);
            self.replace.notify_one();
        }
        changed
    }

    /// Ready when the worker was stopped and its process is gone.
    pub(crate) async fn run(&self) {
        let settings = &self.parts.settings;
        let mut delay = settings.restart_first;
        loop {
            let began = Instant::now();
            match self.live().await {
                End::Stopped => return,
                End::Replaced => delay = settings.restart_first,
                End::Ended(how) => {
                    if began.elapsed() >= settings.restart_reset {
                        delay = settings.restart_first;
                    }
                    let function = &self.hub.function;
                    tracing::warn!(%function, how, delay_ms = delay.as_millis(), "a worker ended and is started again");
                    self.hub.stalled(self.port, &how);
                    if self.stop.run_until_cancelled(tasks::sleep(delay)).await.is_none() {
                        return;
                    }
                    delay = (delay * 2).min(settings.restart_max);
                }
            }
            self.hub.with_port(self.port, |port| port.restarts += 1);
        }
    }

    async fn live(&self) -> End {
        let stamp = self.command.stamp().await.ok().flatten();
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
        self.hub.with_port(self.port, crate::port::Port::begin);
        let command = self.command.build(&self.parts, &self.hub.function, self.address);
        let mut child = match self.spawner.spawn(command).await {
            Ok(child) => child,
            Err(error) => return self.gone(End::Ended(format!("could not be started: {error}"))),
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut forward = std::pin::pin!(async {
            tokio::join!(self.forward(stdout, Source::Stdout), self.forward(stderr, Source::Stderr));
        });
        let mut written = false;
        let end = {
            let mut watch = std::pin::pin!(self.watch(&mut child));
            loop {
                tokio::select! {
                    biased;
                    end = &mut watch => break end,
                    () = &mut forward, if !written => written = true,
                }
            }
        };
        if !written && timeout(LAST_LINES, forward).await.is_err() {
            tracing::debug!(function = self.hub.function, "a worker ended and something holds its output open");
        }
        self.gone(end)
    }

    async fn forward(&self, output: Option<impl AsyncRead + AsFd + Unpin>, source: Source) {
        let Some(output) = output else { return };
        let (reader, drains) = mpsc::unbounded_channel();
        self.hub.with_port(self.port, |port| port.readers.push(reader));
        let lines = Lines { source, hub: &self.hub, port: self.port, parts: &self.parts, line: Vec::new() };
        lines::forward(output, drains, lines).await;
    }

    /// The process is gone and all that it wrote is read: the calls that it had learn how it ended, and their logs.
    fn gone(&self, end: End) -> End {
        let how = match &end {
            End::Ended(how) => how.as_str(),
            End::Replaced => "its file changed",
            End::Stopped => "it was stopped",
        };
        let (owners, last_words) = self.hub.left_behind(self.port);
        let (idle, alone) = (owners.is_empty(), owners.len() == 1);
        for owner in owners {
            lines::of_us(format!("the worker ended before it answered: {how}"), owner, &self.hub, &self.parts);
        }
        let told = |words: &[String]| words.last().map(|last| format!("; it last wrote: {last}")).unwrap_or_default();
        self.hub.fail_port(self.port, |request_id| {
            // What another call has written is not for this one's caller.
            let is_own = |word: &&LastWord| word.request_id.as_deref().map_or(alone, |id| id == request_id);
            let words: Vec<String> = last_words.iter().filter(is_own).map(|word| word.text.clone()).collect();
            let function = &self.hub.function;
            let message = format!("the worker of `{function}` ended before it answered: {how}{}", told(&words));
            let mut error = ErrorObject::new(failure::EXIT, message);
            error.stack_trace = (!words.is_empty()).then_some(words);
            failure::crashed(error)
        });
        if let End::Ended(how) = &end {
            // Later calls are told why it could not begin, and nothing of what earlier ones wrote.
            let nobodys = last_words.iter().filter(|word| idle && word.request_id.is_none());
            let words: Vec<String> = nobodys.map(|word| word.text.clone()).collect();
            self.hub.with_port(self.port, |port| port.last_exit = Some(format!("{how}{}", told(&words))));
        }
        end
    }

    /// Ends with the process.
    async fn watch(&self, child: &mut Child) -> End {
        tokio::select! {
            biased;
            status = child.wait() => End::Ended(describe(status)),
            () = self.stop.cancelled() => {
                self.finish(child).await;
                End::Stopped
            }
            () = self.replace.notified() => {
                self.finish(child).await;
                End::Replaced
            }
            () = self.hub.stuck(self.port) => {
                let how = self.end(child).await;
                End::Ended(format!("did not come back from an invocation that was given up: {how}"))
            }
        }
    }

    /// Lets it answer what it has, then ends it.
    async fn finish(&self, child: &mut Child) {
        self.hub.with_port(self.port, |port| port.draining = true);
        let idle = timeout(self.parts.settings.stop_grace, self.hub.idle(self.port));
        tokio::select! {
            _ = idle => {}
            _ = child.wait() => return,
        }
        self.end(child).await;
    }

    async fn end(&self, child: &mut Child) -> String {
        signal::send(child, Signal::Terminate);
        match timeout(self.parts.settings.stop_grace, child.wait()).await {
            Ok(status) => describe(status),
            Err(_) => {
                signal::send(child, Signal::Kill);
                describe(child.wait().await)
            }
        }
    }
}

fn describe(status: std::io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(error) => format!("its end is not known: {error}"),
    }
}

impl WorkerCommand {
    /// Whether there is something to run at all; said at once rather than in a restart loop.
    pub(crate) async fn check(&self) -> std::io::Result<()> {
        self.stamp().await.map(drop)
    }
}
