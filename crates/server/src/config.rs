//! The whole configuration of a server: one TOML file, overridden by `SERVO__SECTION__KEY` variables that the caller
//! passes in. Unknown keys are errors, and every error names its key.

mod bus;
mod mask;
mod overlay;
mod runtime;
mod telemetry;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use servo_canon::Digest;
use servo_egress::{Allowed, Net};
use servo_ingress::Authority;
use servo_model::{Role, TenantId};
use servo_runtime::RuntimeConfig;
use servo_runtime::config::WEIGHT_MAX;
use servo_sched::Bounds;

use crate::auth::{AccessKey, Auth, Key};
use crate::plan_source::PlanSources;
pub use bus::{BusAddress, BusConfig, BusLogin};
pub use telemetry::TelemetryConfig;

/// Shorter ones end between two renewals; longer ones are no leases.
const LEASE_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;

/// The port that everything uses unless told otherwise.
pub const DEFAULT_PORT: u16 = 8700;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// URI prefixes below which plans may be read: `file:///folder/`, `https://host/prefix/`.
    pub plan_sources: Vec<String>,
    pub server: ServerConfig,
    pub store: StoreConfig,
    pub bus: BusConfig,
    pub auth: AuthConfig,
    pub engines: EnginesConfig,
    pub functions: FunctionsConfig,
    pub serverless: ServerlessConfig,
    pub log: LogConfig,
    pub telemetry: TelemetryConfig,
    pub runtime: RuntimeConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port; port 0 takes any that is free.
    pub bind: SocketAddr,
    /// The names that the server is called by, beside its address: `servo.example.com`, with a port if only that one is meant.
    /// With any, requests for other names are refused; without, only a server on loopback or without keys refuses them.
    pub hosts: Vec<String>,
    /// Requests under way at once; one more is answered with 429. So are calls of the Lambda API, counted apart.
    pub requests_max: usize,
    /// Of one tenant, here and below: three quarters of the whole where it is absent, and less while others want theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_tenant_max: Option<usize>,
    /// Open event streams.
    pub streams_max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_per_tenant_max: Option<usize>,
    /// Open channels of handlers.
    pub channels_max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels_per_tenant_max: Option<usize>,
    /// Open connections. One more closes one that is idle; where none is, it is told to come back.
    pub connections_max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_tenant_max: Option<usize>,
    /// Bytes of bodies that are being read, or are the bodies of requests under way.
    pub bodies_bytes_max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bodies_bytes_per_tenant_max: Option<usize>,
    /// How long a new connection may take until it has agreed on TLS and sent the head of its first request.
    pub first_request_timeout_ms: u64,
    /// How long a connection may be idle, and how long it may take to send the head of a later request.
    pub header_timeout_ms: u64,
    /// How long a request may take to send its body.
    pub body_timeout_ms: u64,
    /// Run files that are imported at once; of one tenant it is one.
    pub imports_max: usize,
    /// Largest run file that is imported.
    pub import_bytes_max: usize,
    /// The distance of two points of `GET /v1/series`, of which 360 are kept.
    pub series_every_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            hosts: Vec::new(),
            requests_max: 512,
            requests_per_tenant_max: None,
            streams_max: 256,
            streams_per_tenant_max: None,
            channels_max: 256,
            channels_per_tenant_max: None,
            connections_max: 4_096,
            connections_per_tenant_max: None,
            // 40 of the largest, and no limit to be noticed by all others.
            bodies_bytes_max: 256 * 1024 * 1024,
            bodies_bytes_per_tenant_max: None,
            first_request_timeout_ms: 2_000,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            imports_max: 4,
            import_bytes_max: 64 * 1024 * 1024,
            series_every_ms: 10_000,
            tls: None,
        }
    }
}

impl ServerConfig {
    /// Never so often that looking would be the load.
    pub(crate) fn series_every(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.series_every_ms.max(100))
    }

    /// The names that can be read; `check` refuses the others.
    pub fn authorities(&self) -> Vec<Authority> {
        self.hosts.iter().filter_map(|host| host.parse().ok()).collect()
    }

    /// What all and what one tenant may have, by key.
    pub(crate) fn shares(&self) -> [(&'static str, Bounds, Option<usize>); 5] {
        let of = |key, total, scope| (key, Bounds::shared(total).with_scope(scope), scope);
        [
            of("requests", self.requests_max, self.requests_per_tenant_max),
            of("streams", self.streams_max, self.streams_per_tenant_max),
            of("channels", self.channels_max, self.channels_per_tenant_max),
            of("connections", self.connections_max, self.connections_per_tenant_max),
            of("bodies_bytes", self.bodies_bytes_max, self.bodies_bytes_per_tenant_max),
        ]
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (index, host) in self.hosts.iter().enumerate() {
            host.parse::<Authority>().map_err(|reason| ConfigError::new(format!("server.hosts[{index}]"), reason))?;
        }
        for (key, bounds, scope) in self.shares() {
            let at = |end: &str| format!("server.{key}{end}");
            // A server without streams or channels is one that has turned them off.
            let least = usize::from(!matches!(key, "streams" | "channels"));
            let most = if key == "bodies_bytes" { usize::MAX } else { 1_000_000 };
            if !(least..=most).contains(&bounds.total) {
                return Err(ConfigError::new(at("_max"), format!("is {least} to {most}")));
            }
            if scope == Some(0) {
                return Err(ConfigError::new(
                    at("_per_tenant_max"),
                    "is at least 1; leave it out for three quarters of all",
                ));
            }
        }
        match self.imports_max {
            1..=1_000 => Ok(()),
            _ => Err(ConfigError::new("server.imports_max", "is 1 to 1000")),
        }
    }
}

/// PEM files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum StoreConfig {
    /// One file in a folder, one process.
    Sqlite { path: PathBuf },
    /// `postgres://user:password@host:port/database`, any number of processes.
    Postgres { url: String },
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::Sqlite { path: PathBuf::from(".servo") }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    pub keys: Vec<KeyConfig>,
    /// For AWS signatures on the Lambda API.
    pub access_keys: Vec<AccessKeyConfig>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessKeyConfig {
    pub id: String,
    /// The secret access key itself: a signature cannot be checked with less.
    pub secret: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// Who the key stands for, in events and logs.
    pub name: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
    /// SHA-256 of the key, in hex, as `servo keys generate` prints it.
    pub sha256: Digest,
    /// The key is not one that `servo keys` made, and cannot be guessed all the same. Without this such a key is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub self_made: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnginesConfig {
    /// The engine that only does what a plan's fields say. For trying things out.
    pub mock: bool,
}

/// Entrypoints and their invocations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerlessConfig {
    /// Runs of one tenant that are queued or running; one more is answered with 429.
    pub max_concurrent_executions: u64,
    /// Entrypoints of one tenant.
    pub max_definitions: u64,
    /// The most that an entrypoint's limits may ask for.
    pub max_memory_per_execution_mb: u64,
    pub max_cpu_per_execution: f32,
    pub max_execution_duration_seconds: u64,
    /// How long a failed run rests, and can be retried, before it is a dead letter.
    pub dead_letter_grace_seconds: u64,
    /// The longest that a synchronous call is kept waiting.
    pub sync_wait_seconds: u64,
    /// Child processes that run Starlark at the same time.
    pub children_max: usize,
    /// Hosts that sandboxed code may call although they are inside this network.
    pub egress_allow_hosts: Vec<String>,
    /// The same by ranges of addresses, such as `10.1.0.0/16`.
    pub egress_allow_nets: Vec<Net>,
}

impl Default for ServerlessConfig {
    fn default() -> Self {
        let quotas = servo_entrypoint::types::TenantQuotas::default();
        Self {
            max_concurrent_executions: quotas.max_concurrent_executions,
            max_definitions: quotas.max_definitions,
            max_memory_per_execution_mb: quotas.max_memory_per_execution_mb,
            max_cpu_per_execution: quotas.max_cpu_per_execution,
            max_execution_duration_seconds: quotas.max_execution_duration_seconds,
            dead_letter_grace_seconds: servo_entrypoint::pin::DEAD_LETTER_GRACE_SECONDS,
            sync_wait_seconds: 900,
            children_max: 64,
            egress_allow_hosts: Vec::new(),
            egress_allow_nets: Vec::new(),
        }
    }
}

impl ServerlessConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let shipped = servo_entrypoint::types::TenantQuotas::default();
        for (key, value, most) in [
            ("max_memory_per_execution_mb", self.max_memory_per_execution_mb, shipped.max_memory_per_execution_mb),
            (
                "max_execution_duration_seconds",
                self.max_execution_duration_seconds,
                shipped.max_execution_duration_seconds,
            ),
        ] {
            if !(1..=most).contains(&value) {
                return Err(ConfigError::new(format!("serverless.{key}"), format!("is 1 to {most}")));
            }
        }
        // What is no number is refused as well.
        if !(self.max_cpu_per_execution > 0.0 && self.max_cpu_per_execution <= 1024.0) {
            return Err(ConfigError::new("serverless.max_cpu_per_execution", "is above 0 and at most 1024"));
        }
        Ok(())
    }
}

/// How handlers of functions are reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FunctionsConfig {
    /// The address of this machine that workers of pull functions connect to. They show no credentials, so it should be one
    /// that only they can reach.
    pub listen_ip: IpAddr,
    /// Fixed addresses, by function; the others get a free port at each start.
    pub addresses: BTreeMap<String, SocketAddr>,
    /// Hosts that may be called by push although they are inside this network.
    pub push_allow_hosts: Vec<String>,
    /// The same by ranges of addresses. Absent means loopback and private ones for a server that nobody needs a key for, which
    /// only this machine reaches, and none for others: there, whoever registers functions may be somewhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_allow_nets: Option<Vec<Net>>,
}

impl FunctionsConfig {
    /// What functions may be called, by a server whose callers are all on this machine, or by another one.
    pub fn push_allowed(&self, only_this_machine: bool) -> Allowed {
        let nets = match &self.push_allow_nets {
            Some(nets) => nets.clone(),
            None if only_this_machine => Net::PRIVATE.to_vec(),
            None => Vec::new(),
        };
        Allowed { hosts: self.push_allow_hosts.clone(), nets }
    }
}

impl Default for FunctionsConfig {
    fn default() -> Self {
        Self {
            listen_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            addresses: BTreeMap::new(),
            push_allow_hosts: Vec::new(),
            push_allow_nets: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    pub format: LogFormat,
    pub level: LogLevel,
    /// Where lines go in place of stderr. SIGHUP opens it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct ConfigError {
    pub key: String,
    pub reason: String,
}

impl ConfigError {
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}

impl Config {
    /// Reads a file's text, puts the variables over it, and checks the whole.
    pub fn load(text: &str, variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let table = overlay::table(text, variables)?;
        let config: Config = serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
            let key = error.path().to_string();
            let key = if key == "." { String::new() } else { key };
            ConfigError::new(key, error.into_inner().message().trim())
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (index, key) in self.auth.keys.iter().enumerate() {
            let at = |field: &str| format!("auth.keys[{index}].{field}");
            if key.name.is_empty() || key.name.len() > 128 || key.name.chars().any(char::is_control) {
                return Err(ConfigError::new(at("name"), "has 1 to 128 characters and no control characters"));
            }
            if key.tenant.as_str().starts_with('_') {
                return Err(ConfigError::new(at("tenant"), "names that begin with `_` belong to the system"));
            }
            if key.roles.is_empty() {
                let roles = "has at least one of viewer, operator, developer, admin, platform-admin";
                return Err(ConfigError::new(at("roles"), roles));
            }
            let earlier = &self.auth.keys[..index];
            if earlier.iter().any(|other| other.name == key.name || other.sha256 == key.sha256) {
                return Err(ConfigError::new(at("name"), "the name or the key stands twice"));
            }
        }
        for (index, key) in self.auth.access_keys.iter().enumerate() {
            let at = |field: &str| format!("auth.access_keys[{index}].{field}");
            if !(16..=128).contains(&key.id.len()) || !key.id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(ConfigError::new(at("id"), "has 16 to 128 letters and digits"));
            }
            if key.secret.len() < 20 {
                return Err(ConfigError::new(at("secret"), "has at least 20 characters"));
            }
            if key.tenant.as_str().starts_with('_') {
                return Err(ConfigError::new(at("tenant"), "names that begin with `_` belong to the system"));
            }
            if key.roles.is_empty() {
                let roles = "has at least one of viewer, operator, developer, admin, platform-admin";
                return Err(ConfigError::new(at("roles"), roles));
            }
            if self.auth.access_keys[..index].iter().any(|other| other.id == key.id) {
                return Err(ConfigError::new(at("id"), "stands twice"));
            }
        }
        let open = self.auth.keys.is_empty() && self.auth.access_keys.is_empty();
        if !self.server.bind.ip().is_loopback() && open {
            let reason = format!(
                "{} can be reached from other machines and nobody needs a key: add [[auth.keys]] (name, tenant, roles, \
                 sha256), or bind to 127.0.0.1",
                self.server.bind
            );
            return Err(ConfigError::new("server.bind", reason));
        }
        self.server.check()?;
        if !(1..=1_000_000).contains(&self.runtime.dispatch.in_flight_max) {
            return Err(ConfigError::new("runtime.dispatch.in_flight_max", "is 1 to 1000000"));
        }
        for (key, lease_ms) in [
            ("runtime.authority.lease_ms", self.runtime.authority.lease_ms),
            ("runtime.dispatch.queue_lease_ms", self.runtime.dispatch.queue_lease_ms),
        ] {
            if !LEASE_MS.contains(&lease_ms) {
                let (least, most) = (LEASE_MS.start(), LEASE_MS.end());
                return Err(ConfigError::new(key, format!("is {least} to {most}")));
            }
        }
        let named = self.runtime.dispatch.tenants.iter().map(|(tenant, share)| (format!("tenants.{tenant}"), share));
        for (name, share) in named.chain([("default".to_owned(), &self.runtime.dispatch.default)]) {
            let at = |field: &str| format!("runtime.dispatch.{name}.{field}");
            if !(1..=WEIGHT_MAX).contains(&share.weight) {
                return Err(ConfigError::new(at("weight"), format!("is 1 to {WEIGHT_MAX}")));
            }
            if share.in_flight_max.is_some_and(|most| !(1..=1_000_000).contains(&most)) {
                return Err(ConfigError::new(at("in_flight_max"), "is 1 to 1000000"));
            }
        }
        self.serverless.check()?;
        runtime::check(&self.runtime)?;
        self.bus.check()?;
        self.telemetry.check()?;
        self.plan_sources()?;
        Ok(())
    }

    /// Without keys everybody on this machine may do everything; `check` has made sure that it is only this machine.
    pub fn auth(&self) -> Auth {
        if self.auth.keys.is_empty() && self.auth.access_keys.is_empty() {
            return Auth::Development;
        }
        let key = |key: &KeyConfig| Key {
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            roles: key.roles.clone(),
            sha256: key.sha256,
            self_made: key.self_made,
        };
        let access_key = |key: &AccessKeyConfig| AccessKey {
            id: key.id.clone(),
            secret: key.secret.clone(),
            tenant: key.tenant.clone(),
            roles: key.roles.clone(),
        };
        Auth::Keys {
            keys: self.auth.keys.iter().map(key).collect(),
            access_keys: self.auth.access_keys.iter().map(access_key).collect(),
        }
    }

    pub fn plan_sources(&self) -> Result<PlanSources, ConfigError> {
        let bytes_max = self.runtime.limits.request_body_bytes_max;
        PlanSources::new(&self.plan_sources, bytes_max)
            .map_err(|invalid| ConfigError::new(invalid.field, invalid.reason))
    }

    /// The configuration as it takes effect, with secrets masked.
    pub fn print(&self) -> String {
        toml::to_string_pretty(&mask::masked(self)).expect("a table prints")
    }

    /// The same for programs.
    pub fn print_json(&self) -> serde_json::Value {
        serde_json::to_value(mask::masked(self)).expect("a table of strings, numbers and lists is JSON")
    }
}

#[cfg(test)]
mod tests;
