//! Operations on keys and the audit log.

use servo_model::AuditOutcome;

use super::super::identity::IdentityOp;
use super::{TENANTS, World};
use crate::audit::AuditQuery;
use crate::runs::Scope;
use crate::testkit::clock::ManualClock;
use crate::testkit::conformance::{audit, identity};
use crate::testkit::fixtures::tenant;

/// Few keys, each always of the same tenant, so that operations meet.
const KEYS: u64 = 5;

/// Writing is the most frequent: without keys and entries the rest shows nothing.
pub(super) fn next(world: &mut World<'_>, clock: &ManualClock) -> IdentityOp {
    let number = world.rng.below(KEYS) as u32;
    let owner = TENANTS[number as usize % TENANTS.len()];
    let id = identity::id(number);
    // Mostly as somebody who can see it.
    let scope = if world.rng.one_in(2) { Scope::Tenant(tenant(owner)) } else { world.scope() };
    match world.rng.below(23) {
        0..=3 => {
            let mut key = identity::key(number, owner, clock);
            key.expires_at = if world.rng.one_in(2) { Some(world.near()) } else { None };
            IdentityOp::Put { key }
        }
        4 | 20..=22 => IdentityOp::Find { digest: identity::key(number, owner, clock).digest },
        5 => {
            let before = if world.rng.one_in(2) { Some(id) } else { None };
            IdentityOp::List { scope: world.scope(), before, limit: world.limit() }
        }
        6 | 18 | 19 => IdentityOp::Get { scope, id },
        7 | 16 | 17 => IdentityOp::Revoke { scope, id, at: world.near() },
        8 => IdentityOp::Touch { id, at: world.near() },
        9 => IdentityOp::TrimKeys { before: world.near(), limit: world.limit() },
        10..=12 => {
            let count = 1 + world.rng.below(4);
            let entries = (0..count).map(|_| {
                let (at, number) = (world.near(), world.rng.below(12) as u8);
                audit::entry(at, number, TENANTS[usize::from(number) % TENANTS.len()])
            });
            IdentityOp::PutAudit { entries: entries.collect() }
        }
        13 | 14 => {
            let query = AuditQuery {
                actor: if world.rng.one_in(4) { Some(format!("actor-{}", world.rng.below(2))) } else { None },
                action: if world.rng.one_in(4) { Some("key.create".to_owned()) } else { None },
                object_id: if world.rng.one_in(4) { Some(format!("key_{}", world.rng.below(4))) } else { None },
                outcome: if world.rng.one_in(4) { Some(world.rng.pick(&AuditOutcome::ALL)) } else { None },
                from: if world.rng.one_in(4) { Some(world.near()) } else { None },
                until: if world.rng.one_in(4) { Some(world.near()) } else { None },
                after: if world.rng.one_in(4) { Some(audit::id(world.near(), 3)) } else { None },
                limit: world.limit(),
            };
            IdentityOp::ReadAudit { scope: world.scope(), query }
        }
        _ => IdentityOp::TrimAudit { before: world.near(), limit: world.limit() },
    }
}
