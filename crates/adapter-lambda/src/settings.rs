//! What handlers are built from, and the limits on them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use servo_adapter::{LineSink, WorkerWatch};
use servo_egress::Allowed;
use servo_ingress::Authority;
use servo_model::Timestamp;
use servo_model::function::Place;

/// What a synchronous answer of a function may have, and some room for its envelope.
pub(crate) const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024 + 64 * 1024;

pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that handlers need from outside.
#[derive(Clone)]
pub struct Parts {
    /// Deadlines that workers see and the times of their lines follow this clock.
    pub now: NowFn,
    /// Where lines of supervised workers go.
    pub lines: Arc<dyn LineSink>,
    /// Told which workers are silent.
    pub watch: Arc<dyn WorkerWatch>,
    /// The server's API, as `http://host:port`: workers checkpoint there.
    pub api_url: String,
    pub place: Place,
    /// What every supervised worker finds in its environment, such as `PATH`. It inherits nothing else: the server's own
    /// environment may hold secrets.
    pub environment: Vec<(String, String)>,
    pub settings: Settings,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold credentials.
        f.debug_struct("Parts")
            .field("api_url", &self.api_url)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the Runtime API listens for outside workers: by function, or by `function:version` for workers of one version.
    /// Others get a free port of `listen_ip`.
    pub addresses: Vec<(String, SocketAddr)>,
    pub listen_ip: IpAddr,
    /// Names by which workers may call these addresses, beside the addresses themselves and those of this machine.
    pub hosts: Vec<Authority>,
    /// Where functions may be called by push, beside the public internet: whoever registers one chooses its address.
    pub push_allow: Allowed,
    pub functions_max: usize,
    /// Of one function.
    pub addresses_max: usize,
    pub processes_max: usize,
    /// Per listener.
    pub connections_max: usize,
    /// Answers of workers that are being read, of all functions together. A tenant may have three quarters of it.
    pub bodies_bytes_max: usize,
    /// Calls of one function that wait for a worker, and their payloads together.
    pub waiting_max: usize,
    pub waiting_bytes_max: usize,
    /// A call that no worker has taken for so long is given back, and comes again later: it holds a slot that others want.
    pub worker_wait: Duration,
    /// A connection whose first request takes longer is closed.
    pub first_request: Duration,
    /// How long a supervised worker may go on with what it has, and then how long it may take to end after SIGTERM.
    pub stop_grace: Duration,
    pub restart_first: Duration,
    pub restart_max: Duration,
    /// A worker that lived so long starts again without delay of its predecessors.
    pub restart_reset: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            listen_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            hosts: Vec::new(),
            push_allow: Allowed::default(),
            functions_max: 1_000,
            addresses_max: 100,
            processes_max: 64,
            connections_max: 256,
            bodies_bytes_max: 256 * 1024 * 1024,
            waiting_max: 1_000,
            waiting_bytes_max: 256 * 1024 * 1024,
            worker_wait: Duration::from_secs(60),
            first_request: Duration::from_secs(2),
            stop_grace: Duration::from_secs(5),
            restart_first: Duration::from_millis(100),
            restart_max: Duration::from_secs(10),
            restart_reset: Duration::from_secs(60),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the HTTP client for handlers could not be built; check the TLS set-up of this machine")]
    Client(#[source] reqwest::Error),
    #[error("no listener for `{function}` on {address}; configure a free address of this machine")]
    Listen { function: String, address: SocketAddr, source: std::io::Error },
    #[error("{path} cannot be run as worker of `{function}`; give the path of an executable file")]
    Program { function: String, path: String, source: std::io::Error },
    #[error("this node has {max} {what} already; remove one, or raise {setting}")]
    Full { what: &'static str, max: usize, setting: &'static str },
    #[error("this node is stopping; ask another one")]
    Stopping,
}
