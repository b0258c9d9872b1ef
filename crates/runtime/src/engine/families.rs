//! How many runs are open below a root: runs that it has started, that those have started, and so on.
//!
//! The store counts; in between this node counts along what it lets in and what ends. What is let in is counted from before
//! the store is asked until the store has it, so that on one node the bound is exact: in doubt one is counted twice, and none
//! not at all. Other nodes are only seen when the store is asked, which they cause at half of the bound: of a root whose runs
//! are started on several nodes at the same moment, each may let in what the others do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_model::{RunId, TenantId};

use super::{BELIEVED, Engine};

/// Roots that are remembered. With more, all are forgotten below which nothing is under way, and counted again.
const ROOTS_MAX: usize = 10_000;
/// How long a count is believed that no other process changes. Not for ever: it may be too high.
const BELIEVED_ALONE: Duration = Duration::from_secs(1);

#[derive(Debug, Default, Clone)]
pub(crate) struct Families(Arc<Mutex<BTreeMap<RunId, Family>>>);

#[derive(Debug, Default)]
struct Family {
    /// What the store counted, changed by what happened here since. None if that is not known.
    open: Option<u64>,
    /// When it counted, in the node's elapsed time.
    at: Duration,
    /// Let in, and not recorded yet.
    under_way: u64,
    /// Recorded here, ever. A count of the store lacks some of those that were recorded while it was made.
    recorded: u64,
}

/// Runs that were let in. Dropped, nobody knows what has come of them.
#[derive(Debug)]
pub(crate) struct Places {
    families: Families,
    root: RunId,
    count: u64,
}

impl Family {
    fn free(&self, open: u64, most: u64) -> u64 {
        most.saturating_sub(open.saturating_add(self.under_way))
    }
}

impl Places {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// They are there, and the store counts them from here on.
    pub(crate) fn recorded(mut self) {
        let count = std::mem::take(&mut self.count);
        if let Some(family) = self.families.lock().get_mut(&self.root) {
            family.under_way = family.under_way.saturating_sub(count);
            family.recorded += count;
            family.open = family.open.map(|open| open + count);
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if self.count > 0
            && let Some(family) = self.families.lock().get_mut(&self.root)
        {
            family.under_way = family.under_way.saturating_sub(self.count);
            family.open = None;
        }
    }
}

impl Families {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Family>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self, root: &RunId, family: &mut Family, count: u64) -> Places {
        family.under_way += count;
        Places { families: self.clone(), root: root.clone(), count }
    }

    /// As many of those that are wanted as may begin, for all that is known. If that is not enough, the store has to be asked.
    fn take(&self, root: &RunId, wanted: u64, most: u64, now: Duration, is_alone: bool) -> Option<Places> {
        let mut families = self.lock();
        let family = families.get_mut(root)?;
        let open = family.open?;
        let age = now.saturating_sub(family.at);
        let free = family.free(open, most);
        let is_believed = if is_alone {
            // Where all are taken it is asked again before long: some may have ended that were not seen to.
            age < BELIEVED_ALONE && (wanted <= free || age < BELIEVED)
        } else {
            age < BELIEVED && wanted <= family.free(open, most / 2)
        };
        is_believed.then(|| self.places(root, family, wanted.min(free)))
    }

    /// Before the store is asked; gives what [`Families::counted`] needs to know.
    fn ask(&self, root: &RunId) -> u64 {
        let mut families = self.lock();
        if families.len() >= ROOTS_MAX && !families.contains_key(root) {
            families.retain(|_, family| family.under_way > 0);
        }
        families.entry(root.clone()).or_default().recorded
    }

    /// The store has counted so many.
    fn counted(&self, root: &RunId, (open, before): (u64, u64), wanted: u64, most: u64, now: Duration) -> Places {
        let mut families = self.lock();
        let family = families.entry(root.clone()).or_default();
        let open = open + family.recorded.saturating_sub(before);
        (family.open, family.at) = (Some(open), now);
        let count = wanted.min(family.free(open, most));
        self.places(root, family, count)
    }

    /// A run below a root has changed: whether it was open, and whether it is.
    pub(super) fn moved(&self, root: &RunId, was_open: bool, is_open: bool) {
        if was_open == is_open {
            return;
        }
        let mut families = self.lock();
        let Some(family) = families.get_mut(root) else { return };
        family.recorded += u64::from(is_open);
        family.open = family.open.map(|open| if is_open { open + 1 } else { open.saturating_sub(1) });
        if family.open == Some(0) && family.under_way == 0 {
            families.remove(root);
        }
    }
}

impl Engine {
    /// Lets in as many of those that are wanted below a root as may be open with what is. `known` says how many are, where that
    /// need not be asked for.
    pub(crate) async fn enter_family(
        &self,
        tenant: &TenantId,
        root: &RunId,
        (wanted, most): (u64, u32),
        known: Option<u32>,
    ) -> Result<Places, servo_store::Error> {
        let families = &self.inner.families;
        let now = self.inner.clock.elapsed();
        let limit = u64::from(most);
        if let Some(places) = families.take(root, wanted, limit, now, self.inner.single_process) {
            return Ok(places);
        }
        let before = families.ask(root);
        let open = match known {
            Some(open) => open,
            None => self.inner.store.count_descendants(tenant, root, most).await?,
        };
        Ok(families.counted(root, (u64::from(open), before), wanted, limit, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn root() -> RunId {
        RunId::parse("root").unwrap()
    }

    #[test]
    fn alone_the_bound_is_exact_whatever_is_under_way() {
        let (families, root) = (Families::default(), root());
        let take = |wanted, at| families.take(&root, wanted, 10, MS(at), true);
        assert!(take(1, 0).is_none(), "nobody has counted");
        let first = families.counted(&root, (3, families.ask(&root)), 4, 10, MS(0));
        assert_eq!(first.count(), 4);
        let second = take(5, 1).unwrap();
        assert_eq!(second.count(), 3, "three counted, four under way");
        first.recorded();
        assert_eq!(take(1, 2).unwrap().count(), 0);
        families.moved(&root, true, false);
        let third = take(2, 3).unwrap();
        assert_eq!(third.count(), 1, "one has ended");
        assert!(take(1, 100).is_none(), "where nothing is free it is asked again before long");
        // What was recorded while the store counted may be missing in its count.
        let before = families.ask(&root);
        second.recorded();
        assert_eq!(
            families.counted(&root, (6, before), 9, 10, MS(4)).count(),
            0,
            "six counted, three since, one under way"
        );
        drop(third);
        assert!(take(1, 4).is_none(), "nobody knows what has come of one");
    }

    #[test]
    fn with_others_a_count_is_believed_for_a_moment_and_below_half_of_the_bound() {
        let (families, root) = (Families::default(), root());
        let take = |wanted, at| families.take(&root, wanted, 10, MS(at), false);
        families.counted(&root, (2, families.ask(&root)), 0, 10, MS(0));
        assert!(take(4, 0).is_none());
        take(3, 0).unwrap().recorded();
        assert!(take(1, 0).is_none(), "five of ten");
        families.moved(&root, true, false);
        assert!(take(1, 100).is_none(), "that is a while ago");
        take(1, 99).unwrap().recorded();
    }

    #[test]
    fn roots_are_forgotten_with_their_last_run_and_when_there_are_many() {
        let families = Families::default();
        families.counted(&root(), (0, families.ask(&root())), 1, 10, MS(0)).recorded();
        families.moved(&root(), true, false);
        assert!(families.lock().is_empty());
        let held = families.counted(&root(), (0, 0), 1, 10, MS(0));
        for number in 0..2 * ROOTS_MAX {
            families.ask(&RunId::parse(&format!("root-{number}")).unwrap());
        }
        assert!(families.lock().len() <= ROOTS_MAX && families.lock().contains_key(&root()));
        drop(held);
    }
}
