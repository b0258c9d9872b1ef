//! Folded runs in memory, bounded in bytes. The least recently used go first; a run in use is never dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use foldhash::HashMap;
use servo_model::RunId;

use super::Hot;

/// A run's place. The async mutex orders commands on the run inside this node: it is held while a command is appended,
/// because the next command must be decided on the state that this one leaves.
pub(crate) type Slot = tokio::sync::Mutex<Option<Hot>>;

pub(super) struct Cache {
    bytes_max: usize,
    inner: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_run: HashMap<RunId, Entry>,
    by_age: BTreeMap<u64, RunId>,
    tick: u64,
    bytes: usize,
}

struct Entry {
    slot: Arc<Slot>,
    tick: u64,
    bytes: usize,
}

/// A run that was used so recently, in uses of any run, is not made newer: in the order of ages that changes next to nothing.
const FRESH_TICKS: u64 = 64;
/// So many of the oldest are looked at for one that nobody uses.
const OLDEST_MAX: usize = 64;
/// What a place costs by itself: asking for runs that do not exist must not fill the memory either.
const PLACE_BYTES: usize = 512;

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, inner: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The run's slot, made if need be.
    pub(super) fn slot(&self, run_id: &RunId) -> Arc<Slot> {
        let mut entries = self.entries();
        entries.tick += 1;
        let tick = entries.tick;
        let Entries { by_run, by_age, bytes, .. } = &mut *entries;
        let entry = by_run.entry(run_id.clone()).or_insert_with(|| {
            *bytes += PLACE_BYTES;
            by_age.insert(tick, run_id.clone());
            Entry { slot: Arc::default(), tick, bytes: PLACE_BYTES }
        });
        if tick - entry.tick > FRESH_TICKS {
            by_age.remove(&entry.tick);
            entry.tick = tick;
            by_age.insert(tick, run_id.clone());
        }
        let slot = entry.slot.clone();
        self.make_room(&mut entries);
        slot
    }

    /// Notes how large a run has become and makes room.
    pub(super) fn weigh(&self, run_id: &RunId, bytes: usize) {
        let mut entries = self.entries();
        let entries = &mut *entries;
        if let Some(entry) = entries.by_run.get_mut(run_id) {
            entries.bytes = entries.bytes + PLACE_BYTES + bytes - entry.bytes;
            entry.bytes = PLACE_BYTES + bytes;
        }
        self.make_room(entries);
    }

    fn make_room(&self, entries: &mut Entries) {
        if entries.bytes <= self.bytes_max {
            return;
        }
        while entries.bytes > self.bytes_max {
            let Entries { by_run, by_age, .. } = entries;
            let is_unused = |run: &RunId| by_run.get(run).is_some_and(|entry| Arc::strong_count(&entry.slot) == 1);
            let oldest = by_age.iter().take(OLDEST_MAX).find(|(_, run)| is_unused(run)).map(|(tick, _)| *tick);
            let Some(run) = oldest.and_then(|tick| by_age.remove(&tick)) else { break };
            if let Some(entry) = by_run.remove(&run) {
                entries.bytes -= entry.bytes;
            }
        }
    }

    /// Drops runs that have ended, after some of them were removed from the store. Those in use belong to somebody who
    /// has just looked.
    pub(super) fn remove_ended(&self) {
        let mut entries = self.entries();
        let ended = |entry: &Entry| {
            let Ok(hot) = entry.slot.try_lock() else { return false };
            hot.as_ref().is_some_and(|hot| hot.state.status.is_terminal())
        };
        let gone: Vec<RunId> =
            entries.by_run.iter().filter(|(_, entry)| ended(entry)).map(|(run, _)| run.clone()).collect();
        for run in gone {
            if let Some(entry) = entries.by_run.remove(&run) {
                entries.by_age.remove(&entry.tick);
                entries.bytes -= entry.bytes;
            }
        }
    }

    pub(super) fn remove(&self, run_id: &RunId) {
        let mut entries = self.entries();
        if let Some(entry) = entries.by_run.remove(run_id) {
            entries.by_age.remove(&entry.tick);
            entries.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_runs_that_were_only_asked_for_are_bounded() {
        let cache = Cache::new(100 * PLACE_BYTES);
        for number in 0..10_000 {
            drop(cache.slot(&RunId::parse(&format!("run-{number}")).unwrap()));
        }
        let entries = cache.entries();
        assert!(entries.by_run.len() <= 100);
        assert_eq!(entries.by_run.len(), entries.by_age.len());
        assert_eq!(entries.bytes, entries.by_run.len() * PLACE_BYTES);
    }

    #[test]
    fn a_place_in_use_stays() {
        let cache = Cache::new(0);
        let run = RunId::parse("run").unwrap();
        let held = cache.slot(&run);
        drop(cache.slot(&RunId::parse("other").unwrap()));
        assert!(Arc::ptr_eq(&held, &cache.slot(&run)));
    }

    #[test]
    fn runs_that_have_ended_can_be_forgotten() {
        let cache = Cache::new(1_000_000);
        for (name, status) in [("open", servo_model::RunStatus::Running), ("ended", servo_model::RunStatus::Completed)]
        {
            let run = RunId::parse(name).unwrap();
            let mut state = servo_model::RunState::new(run.clone());
            state.status = status;
            *cache.slot(&run).try_lock().unwrap() =
                Some(Hot::new(Box::new(state), servo_model::TenantId::default_tenant()));
        }
        cache.remove_ended();
        let entries = cache.entries();
        assert_eq!(entries.by_run.keys().map(RunId::as_str).collect::<Vec<_>>(), ["open"]);
        assert_eq!((entries.by_age.len(), entries.bytes), (1, PLACE_BYTES));
    }
}
