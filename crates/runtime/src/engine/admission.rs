//! Starts that are under way on this node, per tenant.
//!
//! The store counts the runs that are active; a start that is being recorded is not among them yet. Without this, any
//! number of starts at once would each see the last free place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;

#[derive(Debug, Default, Clone)]
pub(super) struct Admissions {
    under_way: Arc<Mutex<BTreeMap<TenantId, u32>>>,
}

/// A start under way. Ends when dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    admissions: Admissions,
    tenant: TenantId,
    /// Starts of the tenant that were under way when this one began. Counted before the store counts: one that is
    /// recorded in between counts twice, and none not at all.
    pub before: u32,
}

impl Admissions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, u32>> {
        self.under_way.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn enter(&self, tenant: &TenantId) -> UnderWay {
        let mut under_way = self.lock();
        let count = under_way.entry(tenant.clone()).or_default();
        let before = *count;
        *count += 1;
        UnderWay { admissions: self.clone(), tenant: tenant.clone(), before }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut under_way = self.admissions.lock();
        if let Some(count) = under_way.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.tenant);
            }
        }
    }
}
