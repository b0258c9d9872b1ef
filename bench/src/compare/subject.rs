//! A server with its handlers, ready to be measured: what every subject has in common. How one is started is in its own file.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tempfile::TempDir;

use super::load::Call;
use super::process::Process;
use super::{restate, servo};

pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// The calls that are measured. Another way to run the same work is another set of these.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    /// A handler that does nothing, and its result.
    pub(crate) empty: Call,
    /// The same, only accepted.
    pub(crate) empty_send: Call,
    /// A Starlark function that does nothing, where there is such a thing.
    pub(crate) script: Option<Call>,
    /// Ten steps with results of 100 bytes.
    pub(crate) steps: Call,
    pub(crate) steps_send: Call,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The `servo` program, which calls handlers in another process, as Restate does.
    Servo,
    /// Server and handlers in one program.
    ServoTogether,
    /// As it ships.
    Restate,
    /// With as many partitions as this machine has cores, its best setting here.
    RestateTuned,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Servo => "servo",
            Self::ServoTogether => "servo with its handlers inside",
            Self::Restate => "Restate as shipped",
            Self::RestateTuned => "Restate, 2 partitions",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    pub(crate) calls: Calls,
    pub(crate) server: Process,
    /// `None`: in the server.
    pub(crate) handler: Option<Process>,
    /// Where it is asked about itself; for Servo the address of the calls.
    pub(crate) admin: SocketAddr,
    pub(crate) dir: TempDir,
}

impl Subject {
    /// With an empty store, its handlers registered and called once.
    pub(crate) async fn start(kind: Kind, dir: &std::path::Path) -> Result<Self> {
        let started = match kind {
            Kind::Servo => servo::start(dir).await,
            Kind::ServoTogether => servo::start_together(dir).await,
            Kind::Restate | Kind::RestateTuned => restate::start(kind, dir).await,
        };
        started.with_context(|| format!("start {}", kind.name()))
    }

    /// The server again, at the same address and on the same store.
    pub(crate) fn start_server_again(&mut self) -> Result<()> {
        self.server = match self.kind {
            Kind::Servo => servo::server(self.address, self.dir.path())?,
            Kind::ServoTogether => servo::together(self.address, self.dir.path())?,
            Kind::Restate | Kind::RestateTuned => {
                restate::server(self.kind, (self.address, self.admin), self.dir.path())?
            }
        };
        Ok(())
    }

    /// Executions of the steps that the server has not recorded as ended.
    pub(crate) async fn open(&self) -> Result<u64> {
        match self.kind {
            Kind::Servo | Kind::ServoTogether => servo::open(self.address).await,
            Kind::Restate | Kind::RestateTuned => restate::open(self.admin).await,
        }
    }

    /// Asks the handlers.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value> {
        self.handler.as_mut().unwrap_or(&mut self.server).ask(command)
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<u64> {
        let counts = self.ask("counts")?;
        counts.get(name).and_then(Value::as_u64).with_context(|| format!("no {name} in {counts}"))
    }

    /// Processor time of server and handlers, in seconds.
    pub(crate) fn cpu(&self) -> Result<(f64, f64)> {
        let handler = self.handler.as_ref().map_or(Ok(0.0), Process::cpu)?;
        Ok((self.server.cpu()?, handler))
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.server.stop()?;
        self.handler.as_mut().map_or(Ok(()), Process::stop)
    }
}
