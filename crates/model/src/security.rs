//! Who is asking. Made from verified credentials by the server, and from nothing else.

use serde::{Deserialize, Serialize};

use crate::TenantId;

/// What a principal may do inside its tenant; `PlatformAdmin` also reaches the runtime contract and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reads runs, events and alerts.
    Viewer,
    /// Starts runs and sends signals.
    Operator,
    /// Deletes and imports runs.
    TenantAdmin,
    /// Commands the runtime, backs up the store, redrives dead letters.
    PlatformAdmin,
}

/// Travels with every request from the first endpoint to the event that records its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityContext {
    pub subject: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
    pub correlation_id: String,
}

impl SecurityContext {
    /// A higher role includes the lower ones.
    pub fn allows(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| *role >= needed)
    }

    /// The principal of `servo dev`, which listens on loopback only.
    pub fn development(correlation_id: String) -> Self {
        Self {
            subject: "dev".to_owned(),
            tenant: TenantId::default_tenant(),
            roles: vec![Role::PlatformAdmin],
            correlation_id,
        }
    }
}
