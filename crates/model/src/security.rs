//! Who is asking, and what that one may do. Made from verified credentials by the server, and from nothing else.

use serde::{Deserialize, Serialize};

use crate::{TenantId, TraceContext};

/// What a principal may do inside its tenant; a higher role includes the lower ones. `PlatformAdmin` also reaches the
/// runtime contract, the store and what belongs to no tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reads everything of its tenant but payloads.
    Viewer,
    /// Starts, holds, goes on with, cancels and signals runs.
    Operator,
    /// Registers functions and entrypoints.
    Developer,
    /// Everything inside the tenant: keys, retries, imports, deletions.
    Admin,
    /// Commands the runtime, backs up the store, redrives dead letters.
    PlatformAdmin,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Viewer, Role::Operator, Role::Developer, Role::Admin, Role::PlatformAdmin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Developer => "developer",
            Role::Admin => "admin",
            Role::PlatformAdmin => "platform-admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// One kind of operation. Every operation of every API needs one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    DefinitionsRead,
    /// Register, update, activate and the other steps of a definition's life.
    DefinitionsDeploy,
    DefinitionsDelete,
    RunsRead,
    /// Inputs, results and log lines, which may hold what statuses do not.
    PayloadsRead,
    RunsTrigger,
    RunsCancel,
    /// Suspend, resume, approve, and skip a step: a run that is under way is held, or goes on.
    RunsControl,
    /// Retry a run that has ended, or a step of it: what was done is done once more.
    RunsRetry,
    /// Delete, import and end by force.
    RunsManage,
    KeysManage,
    AuditRead,
    /// The runtime contract, the store, other tenants.
    Platform,
}

impl Permission {
    pub const ALL: [Permission; 13] = [
        Permission::DefinitionsRead,
        Permission::DefinitionsDeploy,
        Permission::DefinitionsDelete,
        Permission::RunsRead,
        Permission::PayloadsRead,
        Permission::RunsTrigger,
        Permission::RunsCancel,
        Permission::RunsControl,
        Permission::RunsRetry,
        Permission::RunsManage,
        Permission::KeysManage,
        Permission::AuditRead,
        Permission::Platform,
    ];

    /// The lowest role that has it. ADR 28 says where this follows the seed and where it adds to it.
    pub fn role(self) -> Role {
        match self {
            Permission::DefinitionsRead | Permission::RunsRead => Role::Viewer,
            Permission::PayloadsRead | Permission::RunsTrigger | Permission::RunsCancel | Permission::RunsControl => {
                Role::Operator
            }
            Permission::DefinitionsDeploy => Role::Developer,
            Permission::DefinitionsDelete
            | Permission::RunsRetry
            | Permission::RunsManage
            | Permission::KeysManage
            | Permission::AuditRead => Role::Admin,
            Permission::Platform => Role::PlatformAdmin,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Permission::DefinitionsRead => "definitions:read",
            Permission::DefinitionsDeploy => "definitions:deploy",
            Permission::DefinitionsDelete => "definitions:delete",
            Permission::RunsRead => "runs:read",
            Permission::PayloadsRead => "payloads:read",
            Permission::RunsTrigger => "runs:trigger",
            Permission::RunsCancel => "runs:cancel",
            Permission::RunsControl => "runs:control",
            Permission::RunsRetry => "runs:retry",
            Permission::RunsManage => "runs:manage",
            Permission::KeysManage => "keys:manage",
            Permission::AuditRead => "audit:read",
            Permission::Platform => "platform",
        }
    }
}

/// Travels with every request from the first endpoint to the event that records its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityContext {
    pub subject: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
    pub correlation_id: String,
    /// Where the request stands in a trace: its own span where the server records spans, else the caller's.
    pub trace: Option<TraceContext>,
    /// What the caller's `tracestate` says besides.
    pub trace_state: Option<String>,
}

impl SecurityContext {
    /// A higher role includes the lower ones.
    pub fn allows(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| *role >= needed)
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.allows(permission.role())
    }

    /// The principal of `servo dev`, which listens on loopback only.
    pub fn development(correlation_id: String) -> Self {
        Self {
            subject: "dev".to_owned(),
            tenant: TenantId::default_tenant(),
            roles: vec![Role::PlatformAdmin],
            correlation_id,
            trace: None,
            trace_state: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(role: Role) -> SecurityContext {
        SecurityContext { roles: vec![role], ..SecurityContext::development("c".to_owned()) }
    }

    #[test]
    fn a_higher_role_may_all_that_a_lower_one_may() {
        for pair in Role::ALL.windows(2) {
            for permission in Permission::ALL {
                assert!(!with(pair[0]).may(permission) || with(pair[1]).may(permission), "{permission:?}");
            }
        }
    }

    /// SV-243 to SV-247: what each role adds to the one below it.
    #[test]
    fn each_role_has_the_permissions_of_its_row() {
        let expected: [(Role, &[&str]); 5] = [
            (Role::Viewer, &["definitions:read", "runs:read"]),
            (Role::Operator, &["payloads:read", "runs:trigger", "runs:cancel", "runs:control"]),
            (Role::Developer, &["definitions:deploy"]),
            (Role::Admin, &["definitions:delete", "runs:retry", "runs:manage", "keys:manage", "audit:read"]),
            (Role::PlatformAdmin, &["platform"]),
        ];
        for (role, adds) in expected {
            let own = Permission::ALL.into_iter().filter(|permission| permission.role() == role);
            assert_eq!(own.map(Permission::as_str).collect::<Vec<_>>(), adds, "{}", role.as_str());
        }
    }

    #[test]
    fn nobody_without_a_role_may_anything() {
        let nobody = SecurityContext { roles: Vec::new(), ..with(Role::Viewer) };
        assert!(Permission::ALL.into_iter().all(|permission| !nobody.may(permission)));
    }
}
