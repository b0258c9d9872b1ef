//! What the owner of an entrypoint says about who may see and change it. Roles are checked before this, and grants of an access
//! control beside it.

use async_trait::async_trait;
use servo_model::{Role, SecurityContext};

use crate::types::{OwnerRef, OwnerType};

/// What somebody wants with an entrypoint that its owner does not show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To see it and to call it.
    See,
    Change,
}

/// The integration that shares entrypoints beyond what their owners say. Asked on every request, and nothing is kept of its
/// answers: what it takes back is gone with the next request. It is never asked across tenants: what belongs to another
/// tenant does not exist.
#[async_trait]
pub trait AccessControl: Send + Sync {
    async fn grants(&self, ctx: &SecurityContext, access: Access, entrypoint_id: &str, owner: &OwnerRef) -> bool;

    /// Whether it could grant anything, so that lists ask it at all.
    fn shares(&self) -> bool {
        true
    }
}

/// Where nothing is shared.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingShared;

#[async_trait]
impl AccessControl for NothingShared {
    async fn grants(&self, _: &SecurityContext, _: Access, _: &str, _: &OwnerRef) -> bool {
        false
    }

    fn shares(&self) -> bool {
        false
    }
}

/// Whether the integration may be asked at all: an entrypoint of the caller's own tenant that its owner keeps.
fn is_shareable(ctx: &SecurityContext, owner: &OwnerRef) -> bool {
    owner.owner_type != OwnerType::System && owner.tenant_id == ctx.tenant.as_str()
}

/// By its owner, or by a grant.
pub async fn is_allowed(
    control: &dyn AccessControl,
    ctx: &SecurityContext,
    access: Access,
    entrypoint_id: &str,
    owner: &OwnerRef,
) -> bool {
    let by_owner = match access {
        Access::See => sees(ctx, owner),
        Access::Change => manages(ctx, owner),
    };
    by_owner || (is_shareable(ctx, owner) && control.grants(ctx, access, entrypoint_id, owner).await)
}

/// Whether the caller may see and call it. To everybody else it does not exist.
pub fn sees(ctx: &SecurityContext, owner: &OwnerRef) -> bool {
    let same_tenant = owner.tenant_id == ctx.tenant.as_str();
    match owner.owner_type {
        _ if ctx.allows(Role::PlatformAdmin) => true,
        OwnerType::System => true,
        OwnerType::Tenant => same_tenant,
        OwnerType::User => same_tenant && owner.id == ctx.subject,
    }
}

/// Whether the caller may change it, if its role allows changes at all.
pub fn manages(ctx: &SecurityContext, owner: &OwnerRef) -> bool {
    let by_platform = owner.owner_type == OwnerType::System;
    if by_platform { ctx.allows(Role::PlatformAdmin) } else { sees(ctx, owner) }
}

#[cfg(test)]
mod tests {
    use servo_model::TenantId;

    use super::*;

    /// SR-012, SR-013, SR-014: private to the user, visible in the tenant, or the platform's.
    #[test]
    fn owners_decide_who_sees_and_changes() {
        let ctx = |tenant: &str, subject: &str, role: Role| SecurityContext {
            subject: subject.to_owned(),
            tenant: TenantId::parse(tenant).unwrap(),
            roles: vec![role],
            correlation_id: String::new(),
            trace: None,
            trace_state: None,
        };
        let owner =
            |owner_type: OwnerType, id: &str| OwnerRef { owner_type, id: id.to_owned(), tenant_id: "t1".to_owned() };
        let admin = Role::Admin;
        let callers = [
            ctx("t1", "u1", Role::Viewer),
            ctx("t1", "u2", admin),
            ctx("t2", "u1", admin),
            ctx("t2", "p", Role::PlatformAdmin),
        ];
        let rows = [
            (owner(OwnerType::User, "u1"), [true, false, false, true], [true, false, false, true]),
            (owner(OwnerType::Tenant, "t1"), [true, true, false, true], [true, true, false, true]),
            (owner(OwnerType::System, "platform"), [true; 4], [false, false, false, true]),
        ];
        for (owner, seen, managed) in rows {
            assert_eq!(callers.each_ref().map(|ctx| sees(ctx, &owner)), seen, "{owner:?}");
            assert_eq!(callers.each_ref().map(|ctx| manages(ctx, &owner)), managed, "{owner:?}");
        }
    }
}
