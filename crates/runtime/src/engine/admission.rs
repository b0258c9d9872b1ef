//! Runs that are active, and starts that are under way on this node, per tenant.
//!
//! The store counts the runs that are active; a start that is being recorded is not among them yet. Without the second
//! number, any number of starts at once would each see the last free place. And counting thousands of rows for every start
//! would cost more than the start: each process counts its own along and asks the store only now and then: near the limit
//! or, where no other process writes, at the limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use servo_model::{RunStatus, TenantId};

use super::callers::Callers;

#[derive(Debug, Default, Clone)]
pub(super) struct Admissions(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tenants: Mutex<BTreeMap<TenantId, Tally>>,
    callers: Callers,
}

#[derive(Debug, Default)]
struct Tally {
    under_way: u32,
    /// Active runs, since the store was asked; at least as many as there are but for those that others started since. None if
    /// it stopped counting before it had all.
    active: Option<u32>,
    /// When it was asked, in the node's elapsed time.
    counted_at: Duration,
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

/// How long a count is believed that other processes change as well. Below half of the limit they would have to fill the other
/// half in this time for one start too many.
pub(crate) const BELIEVED: Duration = Duration::from_millis(100);
/// And so long for each run that is still free of a large limit: others do not start twenty thousand a second for one tenant. A
/// tenant with many runs that wait would otherwise have all of them counted again and again.
const BELIEVED_PER_RUN: Duration = Duration::from_micros(50);
const BELIEVED_MAX: Duration = Duration::from_secs(10);
/// Fewer than these are filled in a moment.
const FREE_MIN: u32 = 1_000;

/// Whether another process, too, cannot have filled what is free of a limit since so many were counted.
fn is_far_below(active: u32, most: u32, age: Duration) -> bool {
    let free = most.saturating_sub(active);
    let is_long_way = free >= FREE_MIN && age < BELIEVED_PER_RUN.saturating_mul(free).min(BELIEVED_MAX);
    is_long_way || (active < most / 2 && age < BELIEVED)
}

fn is_active(status: RunStatus) -> bool {
    matches!(status, RunStatus::Running | RunStatus::Paused)
}

impl Admissions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, Tally>> {
        self.0.tenants.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn callers(&self) -> &Callers {
        &self.0.callers
    }

    pub(super) fn enter(&self, tenant: &TenantId) -> UnderWay {
        self.callers().enter();
        let mut tenants = self.lock();
        let tally = tenants.entry(tenant.clone()).or_default();
        let before = tally.under_way;
        tally.under_way += 1;
        UnderWay { admissions: self.clone(), tenant: tenant.clone(), before }
    }

    /// Active runs as counted along, and when they were counted.
    pub(super) fn active(&self, tenant: &TenantId) -> Option<(u32, Duration)> {
        self.lock().get(tenant).and_then(|tally| Some((tally.active?, tally.counted_at)))
    }

    /// Somebody asks the store now; the others go on meanwhile with what is known.
    fn ask(&self, tenant: &TenantId, now: Duration) {
        if let Some(tally) = self.lock().get_mut(tenant) {
            tally.counted_at = now;
        }
    }

    /// The store has counted all of them, or not.
    pub(super) fn counted(&self, tenant: &TenantId, active: Option<u32>, at: Duration) {
        let mut tenants = self.lock();
        let tally = tenants.entry(tenant.clone()).or_default();
        // A count that stopped early, at a small limit, says less than what is known.
        if active.is_some() || tally.active.is_none() {
            (tally.active, tally.counted_at) = (active, at);
        }
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
        self.admissions.callers().leave();
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
    /// Active runs of a tenant: at least as many as there are but for what others started a moment ago.
    pub(crate) async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32, servo_store::Error> {
        let admissions = &self.inner.admissions;
        let now = self.inner.clock.elapsed();
        if let Some((active, counted_at)) = admissions.active(tenant) {
            let age = now.saturating_sub(counted_at);
            // Where no other process writes, the store has nothing to add; at the limit it is asked all the same, now and
            // then, so that nobody is turned away because of a miscount.
            let is_believed = if self.inner.single_process {
                active < most || age < BELIEVED
            } else {
                is_far_below(active, most, age)
            };
            if is_believed {
                return Ok(active);
            }
            admissions.ask(tenant, now);
        }
        // Somewhat more than is asked for, so that the count holds for a while and for other limits.
        let counted_to = most.saturating_mul(2);
        let active = self.inner.store.count_active(tenant, counted_to).await?;
        admissions.counted(tenant, Some(active).filter(|active| *active < counted_to), now);
        Ok(active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_further_below_the_limit_the_longer_a_count_is_believed() {
        let ms = Duration::from_millis;
        let table = [
            (0, 1, 0, false),
            (0, 2, 99, true),
            (1, 2, 0, false),
            (4_000, 10_000, 299, true),
            (4_000, 10_000, 300, false),
            (9_000, 10_000, 49, true),
            (9_001, 10_000, 0, false),
            (600_000, 1_000_000, 9_999, true),
            (100_000, 1_000_000, 10_000, false),
        ];
        for (active, most, age, believed) in table {
            assert_eq!(is_far_below(active, most, ms(age)), believed, "{active} of {most} after {age} ms");
        }
    }

    #[test]
    fn runs_are_counted_along() {
        let (admissions, tenant) = (Admissions::default(), TenantId::default_tenant());
        admissions.moved(&tenant, None, RunStatus::Running);
        assert_eq!(admissions.active(&tenant), None, "nobody has counted yet");
        admissions.counted(&tenant, Some(3), Duration::ZERO);
        admissions.moved(&tenant, None, RunStatus::Running);
        admissions.moved(&tenant, Some(RunStatus::Running), RunStatus::Paused);
        assert_eq!(admissions.active(&tenant), Some((4, Duration::ZERO)));
        admissions.moved(&tenant, Some(RunStatus::Paused), RunStatus::Failed);
        admissions.moved(&tenant, Some(RunStatus::Failed), RunStatus::Pending);
        assert_eq!(admissions.active(&tenant), Some((3, Duration::ZERO)));
        drop(admissions.enter(&tenant));
        assert_eq!(admissions.active(&tenant), Some((3, Duration::ZERO)));
        admissions.counted(&tenant, None, Duration::from_secs(1));
        assert_eq!(admissions.active(&tenant), Some((3, Duration::ZERO)), "that count stopped before it had all");
    }
}
