//! How many invocations of a tenant are queued or running, without asking the store at every start.
//!
//! The store counts now and then; in between this node counts along what it lets in, and what leaves or comes back. Where
//! no other process writes, that is all there is to know. Where others do, a count is believed for a moment and only far
//! below the limit: they would have to fill the rest within that moment for one run too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_model::TenantId;

use super::BELIEVED;

/// Tenants that are remembered. With more, all are forgotten and counted again.
const TENANTS_MAX: usize = 10_000;
/// How long a count is believed that no other process changes. Not for ever: a start whose outcome nobody knows may have
/// been counted wrongly.
const BELIEVED_ALONE: Duration = Duration::from_secs(1);

#[derive(Debug, Default, Clone)]
pub(crate) struct Quotas(Arc<Mutex<BTreeMap<TenantId, Counted>>>);

#[derive(Debug, Default)]
struct Counted {
    /// When the store counted, in the node's elapsed time.
    at: Duration,
    /// What it counted, changed by what happened here since.
    busy: u64,
    /// Starts that were let in and are not recorded yet. The store does not count them.
    under_way: u64,
}

/// A start that was let in. Dropped, it has come to nothing.
#[derive(Debug)]
pub(crate) struct Entered {
    quotas: Quotas,
    tenant: TenantId,
    is_recorded: bool,
}

impl Entered {
    /// There is another invocation, which the store counts from here on.
    pub(crate) fn recorded(mut self) {
        self.is_recorded = true;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(counted) = self.quotas.lock().get_mut(&self.tenant) {
            counted.under_way = counted.under_way.saturating_sub(1);
            counted.busy = counted.busy.saturating_sub(u64::from(!self.is_recorded));
        }
    }
}

impl Quotas {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, Counted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entered(&self, tenant: &TenantId, counted: &mut Counted) -> Entered {
        counted.busy += 1;
        counted.under_way += 1;
        Entered { quotas: self.clone(), tenant: tenant.clone(), is_recorded: false }
    }

    /// Lets another start in, if one may start for all that is known. If not, the store has to be asked.
    pub(crate) fn enter(&self, tenant: &TenantId, most: u64, now: Duration, is_alone: bool) -> Option<Entered> {
        let mut tenants = self.lock();
        let counted = tenants.get_mut(tenant)?;
        let (limit, believed) = if is_alone { (most, BELIEVED_ALONE) } else { (most / 2, BELIEVED) };
        if now.saturating_sub(counted.at) >= believed {
            // One asks, and the others go on meanwhile with what is known.
            counted.at = now;
            return None;
        }
        (counted.busy < limit).then(|| self.entered(tenant, counted))
    }

    /// The store has counted so many. Lets one more in, if it may start beside those that are under way.
    pub(crate) fn counted(&self, tenant: &TenantId, busy: u64, most: u64, now: Duration) -> Option<Entered> {
        let mut tenants = self.lock();
        if tenants.len() >= TENANTS_MAX && !tenants.contains_key(tenant) {
            tenants.clear();
        }
        let counted = tenants.entry(tenant.clone()).or_default();
        (counted.at, counted.busy) = (now, busy + counted.under_way);
        (counted.busy < most).then(|| self.entered(tenant, counted))
    }

    /// An invocation that is there has changed: whether it was queued or running, and whether it is.
    pub(crate) fn moved(&self, tenant: &TenantId, was_busy: bool, is_busy: bool) {
        if was_busy == is_busy {
            return;
        }
        if let Some(counted) = self.lock().get_mut(tenant) {
            counted.busy = if is_busy { counted.busy + 1 } else { counted.busy.saturating_sub(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn with_others_a_count_is_believed_for_a_moment_and_far_below_the_limit() {
        let (quotas, tenant) = (Quotas::default(), TenantId::default_tenant());
        let enter = |most, at| quotas.enter(&tenant, most, MS(at), false).map(Entered::recorded).is_some();
        assert!(!enter(10, 0), "nobody has counted");
        quotas.counted(&tenant, 2, 10, MS(0)).unwrap().recorded();
        assert_eq!([1, 1, 1].map(|at| enter(10, at)), [true, true, false], "five of ten are near");
        quotas.counted(&tenant, 0, 10, MS(1)).unwrap().recorded();
        assert!(enter(10, 100));
        assert!(!enter(10, 101), "that is a while ago");
        assert!(enter(10, 102), "one asks, the others go on");
        quotas.counted(&tenant, 0, 10, MS(0)).unwrap().recorded();
        assert!(!enter(1, 0) && !enter(0, 0));
    }

    #[test]
    fn alone_it_is_counted_along_up_to_the_limit() {
        let (quotas, tenant) = (Quotas::default(), TenantId::default_tenant());
        let enter = |at| quotas.enter(&tenant, 3, MS(at), true);
        let first = quotas.counted(&tenant, 0, 3, MS(0));
        enter(1).unwrap().recorded();
        enter(1).unwrap().recorded();
        assert!(enter(1).is_none(), "three of three");
        quotas.moved(&tenant, true, false);
        drop(enter(2).expect("one has ended"));
        drop(enter(2).expect("that one came to nothing"));
        quotas.moved(&tenant, true, true);
        quotas.moved(&tenant, false, true);
        assert!(enter(2).is_none(), "one has come back");
        // The store cannot have counted the start that is still under way.
        assert!(quotas.counted(&tenant, 2, 3, MS(3)).is_none(), "two counted, one under way");
        let third = quotas.counted(&tenant, 1, 3, MS(3));
        assert!(enter(3).is_none(), "one counted, one under way, one let in");
        drop((first, third));
        assert!(enter(3).is_some());
        assert!(enter(1_003).is_none(), "that is a while ago");
    }
}
