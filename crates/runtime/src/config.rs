//! The runtime's settings, with their defaults. Durations are milliseconds and say so in their names.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use servo_machine::{OverloadPolicy, Policy};
use servo_model::TenantId;
use servo_model::event::ExecutionStarted;
use servo_model::function::Place;
use servo_model::limits::Limits;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeConfig {
    pub limits: Limits,
    pub policy: Policy,
    pub overload: OverloadConfig,
    pub families: FamiliesConfig,
    pub state_store: StateStoreConfig,
    pub authority: AuthorityConfig,
    pub dispatch: DispatchConfig,
    pub outbox: OutboxConfig,
    pub retention: RetentionConfig,
    /// Where ARNs say that we are.
    pub place: Place,
    /// Memory for folded runs, in bytes.
    pub cache_bytes_max: usize,
    /// How often a loop looks for work that nobody told it about.
    pub poll_ms: u64,
    /// An open transaction that holds back readers of the log for longer than this raises an alert (Postgres).
    pub readers_held_back_ms: u64,
    /// How long a shutdown waits for steps in flight.
    pub shutdown_grace_ms: u64,
    /// A deliberately broken variant, for tests that must fail: `no-fence` (a node trusts in its authority beyond the end
    /// of its lease), `fifo-dispatch` (steps are handed out in the order in which they came, whoever's they are),
    /// `answer-before-commit` (checkpoints are answered before they are written), `forget-timers` (timers that an earlier
    /// process set are passed over), `two-invocations` (an invocation goes on although another has taken its place),
    /// `foreign-runs` (a run is looked at whoever's it is), `check-then-insert` (a start whose request key was free when it
    /// looked, and is taken when it is recorded, goes on without the key), `endless-families` (runs start runs without a bound),
    /// `keep-descendants` (a run that is cancelled leaves what it has started). Other names are other crates' variants.
    #[cfg(feature = "sabotage")]
    #[serde(skip)]
    pub sabotage: Option<String>,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            policy: Policy::default(),
            overload: OverloadConfig::default(),
            families: FamiliesConfig::default(),
            state_store: StateStoreConfig::default(),
            authority: AuthorityConfig::default(),
            dispatch: DispatchConfig::default(),
            outbox: OutboxConfig::default(),
            retention: RetentionConfig::default(),
            place: Place::default(),
            cache_bytes_max: 32 * 1024 * 1024,
            poll_ms: 1_000,
            readers_held_back_ms: 60_000,
            shutdown_grace_ms: 10_000,
            #[cfg(feature = "sabotage")]
            sabotage: None,
        }
    }
}

impl RuntimeConfig {
    pub fn poll(&self) -> Duration {
        Duration::from_millis(self.poll_ms)
    }

    /// Whether this is the variant. Without the feature there is none.
    #[cfg(feature = "sabotage")]
    pub fn is_sabotaged(&self, variant: &str) -> bool {
        self.sabotage.as_deref() == Some(variant)
    }

    #[cfg(not(feature = "sabotage"))]
    pub fn is_sabotaged(&self, _variant: &str) -> bool {
        false
    }

    /// The overload settings for a run: of its plan, else of its tenant, else the common ones.
    pub fn overload_for(&self, tenant: &str, plan: &str) -> &OverloadRule {
        let overload = &self.overload;
        overload.plans.get(plan).or_else(|| overload.tenants.get(tenant)).unwrap_or(&overload.default)
    }

    /// The same for an execution: of its entrypoint, else as for a plan of its function's name.
    pub(crate) fn overload_of(&self, tenant: &str, start: &ExecutionStarted) -> &OverloadRule {
        let own = start.entrypoint.as_ref().and_then(|pin| self.overload.entrypoints.get(&pin.address));
        own.unwrap_or_else(|| self.overload_for(tenant, &start.function))
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverloadConfig {
    pub default: OverloadRule,
    pub tenants: BTreeMap<String, OverloadRule>,
    pub plans: BTreeMap<String, OverloadRule>,
    /// By address.
    pub entrypoints: BTreeMap<String, OverloadRule>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverloadRule {
    pub policy: OverloadPolicy,
    /// Runs of one tenant that may be active at once: begun and not ended, so also those that wait for a timer or a person.
    pub active_runs_max: u32,
    /// `Retry-After` of a rejected run, and the wait of a delayed one.
    pub delay_ms: u64,
}

impl Default for OverloadRule {
    fn default() -> Self {
        Self { policy: OverloadPolicy::Queue, active_runs_max: 1_000_000, delay_ms: 5_000 }
    }
}

/// How far runs that start runs may go: a root, what it starts, what that starts, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FamiliesConfig {
    /// Levels of runs, the root's being the first. A run of the last one starts no others.
    pub levels_max: u32,
    /// Runs below one root that have not ended, also those that wait.
    pub open_max: u32,
    /// What a tenant may have less of.
    pub tenants: BTreeMap<TenantId, TenantFamilies>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantFamilies {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_max: Option<u32>,
}

impl Default for FamiliesConfig {
    fn default() -> Self {
        Self { levels_max: 16, open_max: 10_000, tenants: BTreeMap::new() }
    }
}

impl FamiliesConfig {
    /// Levels, and open runs below one root, of a tenant.
    pub fn of(&self, tenant: &TenantId) -> (u32, u32) {
        let own = self.tenants.get(tenant).copied().unwrap_or_default();
        let least = |own: Option<u32>, all: u32| own.map_or(all, |own| own.min(all));
        (least(own.levels_max, self.levels_max), least(own.open_max, self.open_max))
    }
}

/// The write latency budget of the event contract, in its own words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StateStoreConfig {
    pub write_latency_budget_ms: u64,
    /// Events that may be recorded later when the budget is exceeded.
    pub fail_open_for_event_class: Vec<String>,
    /// Events that fail their step when the budget is exceeded.
    pub never_fail_open: Vec<String>,
}

impl Default for StateStoreConfig {
    fn default() -> Self {
        Self {
            write_latency_budget_ms: 3_000,
            fail_open_for_event_class: vec!["StepStarted".to_owned()],
            never_fail_open: vec!["StepCompleted".to_owned(), "StepFailed".to_owned()],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorityConfig {
    /// How long a node that is gone keeps the others from handing out work; renewed each third of it.
    pub lease_ms: u64,
}

impl Default for AuthorityConfig {
    fn default() -> Self {
        Self { lease_ms: 3_000 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchConfig {
    /// Steps that one node executes at a time.
    pub in_flight_max: usize,
    /// Without a heartbeat for this long, a worker counts as stalled.
    pub stall_after_ms: u64,
    /// How long a queued run is leased to the node that starts it.
    pub queue_lease_ms: u64,
    /// What a tenant has of the places beside others.
    pub default: TenantShare,
    pub tenants: BTreeMap<TenantId, TenantShare>,
}

pub use servo_sched::WEIGHT_MAX;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantShare {
    /// Of two tenants with work, one with twice the weight starts twice as many steps.
    pub weight: u32,
    /// Steps of the tenant that one node executes at a time; absent means all of the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_max: Option<usize>,
}

impl Default for TenantShare {
    fn default() -> Self {
        Self { weight: 1, in_flight_max: None }
    }
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self {
            in_flight_max: 256,
            stall_after_ms: 30_000,
            // As long as the authority: a node that is gone keeps what it had claimed for no longer.
            queue_lease_ms: 3_000,
            default: TenantShare::default(),
            tenants: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboxConfig {
    /// Publications tried before an event becomes a dead letter.
    pub attempts_max: u32,
    pub backoff_min_ms: u64,
    pub backoff_max_ms: u64,
    /// Events read and published at a time.
    pub batch: u32,
}

impl Default for OutboxConfig {
    fn default() -> Self {
        Self { attempts_max: 8, backoff_min_ms: 200, backoff_max_ms: 60_000, batch: 256 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Finished runs are kept this long; absent means for ever.
    pub finished_runs_days: Option<u32>,
    /// Facts of the system stream are kept this long.
    pub system_stream_hours: u32,
    /// Entries of the audit log, and keys that have ended, are kept this long.
    pub audit_log_days: u32,
    pub every_ms: u64,
    /// Runs removed in one transaction: small, so that writers never wait for it.
    pub batch: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { finished_runs_days: Some(30), system_stream_hours: 24, audit_log_days: 90, every_ms: 60_000, batch: 20 }
    }
}
