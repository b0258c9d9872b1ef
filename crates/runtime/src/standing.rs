//! What the store says of itself that nobody can record in it: that it has no room, or has stopped. Told from memory, because an
//! alert of a disk that takes no writes must not need one.

use servo_model::TenantId;
use servo_model::alert::{Alert, AlertCode};
use servo_store::admin::Condition;

use crate::engine::Engine;

/// What such an alert is about.
const SUBJECT: &str = "store";

impl Engine {
    /// Whether nothing more is written until the store is opened again.
    pub fn is_store_stopped(&self) -> bool {
        matches!(self.store().condition(), Condition::Stopped { .. })
    }

    /// Why the runtime cannot do its work, in words for everybody: without paths.
    pub fn store_blocks(&self) -> Option<&'static str> {
        match self.store().condition() {
            Condition::Good => None,
            Condition::Full { .. } => {
                Some("the store has no room: writes are refused and reads answered, until there is room")
            }
            Condition::Stopped { .. } => {
                Some("the disk reported an error: nothing more is written until the server is started again")
            }
        }
    }

    /// Alerts that stand now and are in no store.
    pub fn standing_alerts(&self) -> Vec<Alert> {
        let (code, detail, since) = match self.store().condition() {
            Condition::Good => return Vec::new(),
            Condition::Full { detail, since } => (AlertCode::StoreFull, detail, since),
            Condition::Stopped { detail, since } => (AlertCode::StoreStopped, detail, since),
        };
        vec![Alert {
            code,
            severity: code.severity(),
            subject: SUBJECT.to_owned(),
            run_id: None,
            tenant_id: TenantId::system(),
            message: detail,
            first_at: since,
            last_at: self.now().max(since),
            count: 1,
        }]
    }
}
