//! What the owner of an entrypoint says about who may see and change it. Roles are checked before this, and grants of an access
//! control beside it.

use servo_model::{Role, SecurityContext};

use crate::types::{OwnerRef, OwnerType};

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
