//! Runs that are active, and starts that are under way on this node, per tenant.
//!
//! The store counts the runs that are active; a start that is being recorded is not among them yet. Without the second
//! number, any number of starts at once would each see the last free place. And counting a hundred thousand rows for
//! every start would cost more than the start: where only this process writes, it counts along, and asks the store again
//! only near the limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::{RunStatus, TenantId};

#[derive(Debug, Default, Clone)]
pub(super) struct Admissions {
    tenants: Arc<Mutex<BTreeMap<TenantId, Tally>>>,
}

#[derive(Debug, Default)]
struct Tally {
    under_way: u32,
    /// Active runs, since the store was asked; at least as many as there are.
    active: Option<u32>,
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

fn is_active(status: RunStatus) -> bool {
    matches!(status, RunStatus::Running | RunStatus::Paused)
}

impl Admissions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, Tally>> {
        self.tenants.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn enter(&self, tenant: &TenantId) -> UnderWay {
        let mut tenants = self.lock();
        let tally = tenants.entry(tenant.clone()).or_default();
        let before = tally.under_way;
        tally.under_way += 1;
        UnderWay { admissions: self.clone(), tenant: tenant.clone(), before }
    }

    /// Active runs as counted along.
    pub(super) fn active(&self, tenant: &TenantId) -> Option<u32> {
        self.lock().get(tenant).and_then(|tally| tally.active)
    }

    /// The store has counted.
    pub(super) fn counted(&self, tenant: &TenantId, active: u32) {
        self.lock().entry(tenant.clone()).or_default().active = Some(active);
    }

    /// A run has changed its status.
    pub(super) fn moved(&self, tenant: &TenantId, from: Option<RunStatus>, to: RunStatus) {
        let (was, is) = (from.is_some_and(is_active), is_active(to));
        if was == is {
            return;
        }
        if let Some(Tally { active: Some(active), .. }) = self.lock().get_mut(tenant) {
            *active = if is { active.saturating_add(1) } else { active.saturating_sub(1) };
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut tenants = self.admissions.lock();
        if let Some(tally) = tenants.get_mut(&self.tenant) {
            tally.under_way -= 1;
            if tally.under_way == 0 && tally.active.is_none() {
                tenants.remove(&self.tenant);
            }
        }
    }
}

impl super::Engine {
    /// Active runs of a tenant: at least as many as there are, and exactly as many near the limit.
    pub(crate) async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32, servo_store::Error> {
        let admissions = &self.inner.admissions;
        if self.inner.single_process
            && let Some(active) = admissions.active(tenant).filter(|active| *active < most / 2)
        {
            return Ok(active);
        }
        let active = self.inner.store.count_active(tenant, most).await?;
        if self.inner.single_process {
            admissions.counted(tenant, active);
        }
        Ok(active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_along() {
        let (admissions, tenant) = (Admissions::default(), TenantId::default_tenant());
        admissions.moved(&tenant, None, RunStatus::Running);
        assert_eq!(admissions.active(&tenant), None, "nobody has counted yet");
        admissions.counted(&tenant, 3);
        admissions.moved(&tenant, None, RunStatus::Running);
        admissions.moved(&tenant, Some(RunStatus::Running), RunStatus::Paused);
        assert_eq!(admissions.active(&tenant), Some(4));
        admissions.moved(&tenant, Some(RunStatus::Paused), RunStatus::Failed);
        admissions.moved(&tenant, Some(RunStatus::Failed), RunStatus::Pending);
        assert_eq!(admissions.active(&tenant), Some(3));
        drop(admissions.enter(&tenant));
        assert_eq!(admissions.active(&tenant), Some(3));
    }
}
