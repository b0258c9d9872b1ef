//! How many runs of a tenant are under way, without asking the store at every start.
//!
//! A count is believed for a moment, and only far below the limit: this node adds its own starts to it, and others would have
//! to fill the rest within that moment for one run too many. Near the limit, the store is asked every time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use servo_model::TenantId;

use crate::engine::BELIEVED;

/// Tenants that are remembered. With more, all are forgotten and counted again.
const TENANTS_MAX: usize = 10_000;

#[derive(Debug, Default, Clone)]
pub(super) struct Quotas(Arc<Mutex<BTreeMap<TenantId, Counted>>>);

#[derive(Debug)]
struct Counted {
    /// In the node's elapsed time.
    at: Duration,
    /// What the store has counted then, and what was let in since.
    busy: u64,
}

impl Quotas {
    /// Whether another run may start for all that is known. If not, the store has to be asked.
    pub(super) fn admit(&self, tenant: &TenantId, most: u64, now: Duration) -> bool {
        let mut tenants = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(counted) = tenants.get_mut(tenant) else { return false };
        if counted.busy >= most / 2 || now.saturating_sub(counted.at) >= BELIEVED {
            return false;
        }
        counted.busy += 1;
        true
    }

    /// The store has counted so many before one more was let in.
    pub(super) fn counted(&self, tenant: &TenantId, busy: u64, now: Duration) {
        let mut tenants = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if tenants.len() >= TENANTS_MAX && !tenants.contains_key(tenant) {
            tenants.clear();
        }
        tenants.insert(tenant.clone(), Counted { at: now, busy: busy + 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_believed_for_a_moment_and_far_below_the_limit() {
        let (quotas, tenant) = (Quotas::default(), TenantId::default_tenant());
        let ms = Duration::from_millis;
        assert!(!quotas.admit(&tenant, 10, ms(0)), "nobody has counted");
        quotas.counted(&tenant, 2, ms(0));
        assert_eq!([1, 1, 1].map(|at| quotas.admit(&tenant, 10, ms(at))), [true, true, false], "five of ten are near");
        quotas.counted(&tenant, 0, ms(1));
        assert!(quotas.admit(&tenant, 10, ms(100)));
        assert!(!quotas.admit(&tenant, 10, ms(101)), "that is a while ago");
        quotas.counted(&tenant, 0, ms(0));
        assert!(!quotas.admit(&tenant, 1, ms(0)) && !quotas.admit(&tenant, 0, ms(0)));
    }
}
