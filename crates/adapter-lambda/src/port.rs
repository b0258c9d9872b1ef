//! A port is one address at which workers of a function ask for calls: open to any worker, or private to one supervised
//! process, so that it is known whose calls are whose.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use servo_model::{RunId, TenantId};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::supervise::lines::Drain;

pub(crate) type PortId = u64;

/// Invocations that a port remembers, to tell whose lines are whose.
const RECENT_MAX: usize = 64;
/// Lines of stderr that a port remembers, and bytes of each.
const LAST_WORDS_MAX: usize = 20;
const LAST_WORD_BYTES_MAX: usize = 1_024;
/// Silent workers that a port remembers, to tell when they are heard again.
const SILENT_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkerKind {
    /// Workers that somebody else runs.
    Pull,
    /// A process that we keep running.
    Supervised,
}

/// What can be seen of the workers at one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    pub tenant: TenantId,
    pub function: String,
    pub kind: WorkerKind,
    /// The only version whose calls its workers get; any version's without.
    pub version: Option<String>,
    pub address: SocketAddr,
    /// Requests for the next call that are open now.
    pub pollers: usize,
    /// Calls that were handed out at this address and not answered yet.
    pub in_flight: usize,
    /// Calls of the function that no worker has taken yet, whatever the address.
    pub waiting: usize,
    pub restarts: u64,
    pub last_exit: Option<String>,
}

/// A worker that was not heard when it should have been.
#[derive(Debug)]
pub(crate) struct Silent {
    /// The call that it has.
    pub(crate) request_id: Option<String>,
    pub(crate) connection: Option<u64>,
    /// Of all connections at that time.
    pub(crate) newest_connection: u64,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) kind: WorkerKind,
    pub(crate) version: Option<String>,
    pub(crate) address: SocketAddr,
    pub(crate) pollers: usize,
    /// Gets no more calls: its process is about to be ended.
    pub(crate) draining: bool,
    /// A call was given up while the worker had it, and this was its deadline. Empty again once the worker is heard of.
    pub(crate) abandoned: Option<Instant>,
    /// The latest calls handed out here, oldest first.
    pub(crate) recent: VecDeque<(String, RunId)>,
    /// The longest silent first.
    pub(crate) silent: VecDeque<Silent>,
    pub(crate) restarts: u64,
    pub(crate) last_exit: Option<String>,
    /// What the process wrote last to stderr, in case that it ends.
    pub(crate) last_words: VecDeque<LastWord>,
    /// Those who read what the process writes.
    pub(crate) readers: Vec<mpsc::UnboundedSender<Drain>>,
    /// Wakes who waits for this port's worker to be idle or stuck.
    pub(crate) changed: Arc<Notify>,
}

/// A line of a process that may be one of its last.
#[derive(Debug, Clone)]
pub(crate) struct LastWord {
    /// Whose it is: nobody's before the first call, and where several calls could have written it.
    pub(crate) request_id: Option<String>,
    pub(crate) text: String,
}

impl Port {
    pub(crate) fn new(kind: WorkerKind, version: Option<String>, address: SocketAddr) -> Self {
        Self {
            kind,
            version,
            address,
            pollers: 0,
            draining: false,
            abandoned: None,
            recent: VecDeque::new(),
            silent: VecDeque::new(),
            restarts: 0,
            last_exit: None,
            last_words: VecDeque::new(),
            readers: Vec::new(),
            changed: Arc::default(),
        }
    }

    /// Whether its workers know this version.
    pub(crate) fn serves(&self, version: &str) -> bool {
        self.version.as_deref().is_none_or(|own| own == version)
    }

    pub(crate) fn remember(&mut self, request_id: &str, run_id: &RunId) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((request_id.to_owned(), run_id.clone()));
    }

    pub(crate) fn put_silent(&mut self, silent: Silent) {
        if self.silent.len() == SILENT_MAX {
            self.silent.pop_front();
        }
        self.silent.push_back(silent);
    }

    /// A new process begins here.
    pub(crate) fn begin(&mut self) {
        self.draining = false;
        self.abandoned = None;
        self.recent.clear();
        self.last_words.clear();
        self.readers.clear();
    }

    pub(crate) fn note_last_word(&mut self, request_id: Option<&str>, line: &str) {
        if self.last_words.len() == LAST_WORDS_MAX {
            self.last_words.pop_front();
        }
        let text = line[..line.floor_char_boundary(LAST_WORD_BYTES_MAX)].to_owned();
        self.last_words.push_back(LastWord { request_id: request_id.map(str::to_owned), text });
    }
}
