//! Alerts: conditions that an operator should see. One row per (code, subject); raising it again counts up.

use serde::{Deserialize, Serialize};

use crate::{RunId, TenantId, Timestamp};

/// How soon someone must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    P1,
    P2,
    P3,
}

macro_rules! alert_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $severity:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum AlertCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl AlertCode {
            pub const ALL: &[AlertCode] = &[$(AlertCode::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(AlertCode::$variant => $text,)* }
            }

            pub fn severity(self) -> Severity {
                match self { $(AlertCode::$variant => Severity::$severity,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(AlertCode::$variant),)* _ => None }
            }
        }
    };
}

alert_codes! {
    /// The projector is more than five seconds behind the log.
    ProjectorLagHigh = "PROJECTOR_LAG_HIGH", P2;
    /// A gap in `runSeq` was seen; the run was read again.
    ProjectorNonContiguous = "PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED", P2;
    /// A step looks satisfied before the step it depends on.
    ProjectorCausalViolation = "PROJECTOR_CAUSAL_VIOLATION", P3;
    /// An event could not be published after all attempts and is a dead letter.
    EventBusDeliveryFailed = "EVENT_BUS_DELIVERY_FAILED", P1;
    /// The bus does not answer; events wait in the log.
    EventBusUnavailable = "EVENT_BUS_UNAVAILABLE", P2;
    /// In-flight steps did not finish within the drain timeout of a pause.
    PauseDrainTimeout = "PAUSE_DRAIN_TIMEOUT", P2;
    /// A run's log cannot be read; the run is set aside.
    RunQuarantined = "RUN_QUARANTINED", P1;
    /// Something in the log is not as it was written, and it is not certain whose it is. Readers of the log pass it by.
    LogDamaged = "LOG_DAMAGED", P1;
    /// An append took longer than the write latency budget.
    WriteBudgetExceeded = "WRITE_BUDGET_EXCEEDED", P2;
    /// A long transaction holds back readers of the Postgres log.
    LogReadersHeldBack = "LOG_READERS_HELD_BACK", P2;
    /// The store's clock was set by more than a little while the server ran.
    ClockJump = "CLOCK_JUMP", P2;
    /// The store has no room: writes are refused, reads answered.
    StoreFull = "STORE_FULL", P1;
    /// The disk reported an error: nothing more is written until the store is opened again.
    StoreStopped = "STORE_STOPPED", P1;
    /// After an unclean end the redo file lacks something, or has something behind its last record: what was acknowledged last
    /// may be gone.
    RedoIncomplete = "REDO_INCOMPLETE", P2;
    /// A run has used a fifth of the events that it may have.
    RunEventsHigh = "RUN_EVENTS_HIGH", P3;
}

/// One alert as it is stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    pub code: AlertCode,
    pub severity: Severity,
    /// What the alert is about: a run id, or the component's name.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub tenant_id: TenantId,
    pub message: String,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub count: u64,
}
