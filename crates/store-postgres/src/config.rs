//! What the store needs to know before it connects.

use std::fmt;
use std::time::Duration;

use servo_model::limits::Limits;
use servo_store::TimeSource;

/// Where the database is and how much of it to use.
///
/// Connections are sessions, each with a role: a pooler that shares them out by transaction must not stand in between.
#[derive(Clone)]
pub struct Config {
    /// `postgres://user:password@host:port/database?sslmode=verify-full`. The user owns the schema and may create roles, but is
    /// no superuser. `sslmode`, `sslrootcert`, `sslcert` and `sslkey` mean what they mean to libpq.
    pub url: String,
    pub limits: Limits,
    /// `None` takes the database's clock; tests inject another.
    pub time: Option<TimeSource>,
    /// Batches of appends under way at once, each on a connection of its own.
    pub append_connections: usize,
    /// Connections for calls in the name of a tenant.
    pub tenant_connections: usize,
    /// Connections for the engine's own loops.
    pub engine_connections: usize,
    /// How long a call waits for a free connection, and for a new one to be made.
    pub acquire_timeout: Duration,
    /// The server ends a statement after this time, and this side gives the connection up a little later.
    pub statement_timeout: Duration,
    /// Tell other processes of new events by NOTIFY, and listen for theirs, on one more connection.
    pub hints: bool,
    /// A deliberately broken variant, for tests that must fail, in builds with the feature `sabotage`: `naive-outbox`
    /// (the reader of the log goes by id alone), `unnamed-tenant` (queries leave it to row security to keep tenants
    /// apart), `no-tenancy` (nothing keeps them apart), `no-fence` (an authority that has passed on may still write),
    /// `asynchronous-commit` (commits are answered before they are on disk), `ack-before-commit` (appends are answered before
    /// they are written at all), `no-checksums` (events are written without a checksum). Other names are other crates' variants and change nothing here.
    pub sabotage: Option<String>,
}

impl Config {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            limits: Limits::default(),
            time: None,
            append_connections: 2,
            tenant_connections: 8,
            engine_connections: 4,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            hints: true,
            sabotage: None,
        }
    }

    /// False for every variant in a build without the feature.
    pub(crate) fn is_sabotaged(&self, variant: &str) -> bool {
        cfg!(feature = "sabotage") && self.sabotage.as_deref() == Some(variant)
    }
}

/// The URL may hold a password and is left out.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("limits", &self.limits)
            .field("append_connections", &self.append_connections)
            .field("tenant_connections", &self.tenant_connections)
            .field("engine_connections", &self.engine_connections)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("hints", &self.hints)
            .field("sabotage", &self.sabotage)
            .finish_non_exhaustive()
    }
}
