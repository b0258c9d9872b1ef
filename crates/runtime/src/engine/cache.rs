//! Folded runs in memory, bounded in bytes. The least recently used go first, and runs that have ended have a small part of
//! the bytes for themselves; a run in use is never dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use foldhash::HashMap;
use servo_model::{RunId, RunState};

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
    open: Ages,
    ended: Ages,
    tick: u64,
}

struct Entry {
    slot: Arc<Slot>,
    tick: u64,
    bytes: usize,
    /// Which of the two has it.
    is_ended: bool,
}

/// Some of the runs, the least recently used first, and what they weigh.
#[derive(Default)]
struct Ages {
    by_tick: BTreeMap<u64, RunId>,
    bytes: usize,
}

/// A run that was used so recently, in uses of any run, is not made newer: in the order of ages that changes next to nothing.
const FRESH_TICKS: u64 = 64;
/// So many of the oldest are looked at for one that nobody uses.
const OLDEST_MAX: usize = 64;
/// What a place costs by itself: asking for runs that do not exist must not fill the memory either.
const PLACE_BYTES: usize = 512;
/// Which part of all bytes runs may take that have ended. Whoever started one may look at it once more, and that is soon.
/// With more, every short run would take the memory of one that has long left the processor's caches.
const ENDED_PART: usize = 16;
/// A run that has ended and takes more than this part of their bytes stays with the open ones: it would drive out all others.
const ENDED_LARGE: usize = 4;

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
        let Entries { by_run, open, ended, .. } = &mut *entries;
        let entry = by_run.entry(run_id.clone()).or_insert_with(|| {
            open.add(tick, run_id.clone(), PLACE_BYTES);
            Entry { slot: Arc::default(), tick, bytes: PLACE_BYTES, is_ended: false }
        });
        if tick - entry.tick > FRESH_TICKS {
            let ages = if entry.is_ended { ended } else { open };
            ages.remove(entry);
            entry.tick = tick;
            ages.add(tick, run_id.clone(), entry.bytes);
        }
        let slot = entry.slot.clone();
        self.make_room(&mut entries);
        slot
    }

    /// Notes what has become of a run, and makes room.
    pub(super) fn weigh(&self, run_id: &RunId, state: &RunState) {
        let bytes = PLACE_BYTES + state.weight_bytes();
        let is_ended = state.status.is_terminal() && bytes <= self.ended_max() / ENDED_LARGE;
        let mut entries = self.entries();
        let Entries { by_run, open, ended, .. } = &mut *entries;
        if let Some(entry) = by_run.get_mut(run_id) {
            let (from, to) = match (entry.is_ended, is_ended) {
                (false, false) => (open, None),
                (false, true) => (open, Some(ended)),
                (true, false) => (ended, Some(open)),
                (true, true) => (ended, None),
            };
            match to {
                None => from.bytes = from.bytes + bytes - entry.bytes,
                Some(to) => {
                    from.remove(entry);
                    to.add(entry.tick, run_id.clone(), bytes);
                }
            }
            (entry.bytes, entry.is_ended) = (bytes, is_ended);
        }
        self.make_room(&mut entries);
    }

    fn make_room(&self, entries: &mut Entries) {
        let Entries { by_run, open, ended, .. } = entries;
        while ended.bytes > self.ended_max() && ended.drop_oldest(by_run) {}
        while open.bytes + ended.bytes > self.bytes_max && (open.drop_oldest(by_run) || ended.drop_oldest(by_run)) {}
    }

    fn ended_max(&self) -> usize {
        self.bytes_max / ENDED_PART
    }

    /// Drops runs that have ended, after some of them were removed from the store. Those in use belong to somebody who
    /// has just looked.
    pub(super) fn remove_ended(&self) {
        let mut entries = self.entries();
        let Entries { by_run, open, ended, .. } = &mut *entries;
        by_run.retain(|_, entry| {
            // Who has just read a run has not weighed it yet.
            let stays = match entry.slot.try_lock() {
                Ok(hot) => !hot.as_ref().is_some_and(|hot| hot.state.status.is_terminal()),
                Err(_) => true,
            };
            if !stays {
                if entry.is_ended { &mut *ended } else { &mut *open }.remove(entry);
            }
            stays
        });
    }

    pub(super) fn remove(&self, run_id: &RunId) {
        let mut entries = self.entries();
        let Entries { by_run, open, ended, .. } = &mut *entries;
        if let Some(entry) = by_run.remove(run_id) {
            if entry.is_ended { ended } else { open }.remove(&entry);
        }
    }
}

impl Ages {
    fn add(&mut self, tick: u64, run_id: RunId, bytes: usize) {
        self.by_tick.insert(tick, run_id);
        self.bytes += bytes;
    }

    fn remove(&mut self, entry: &Entry) {
        self.by_tick.remove(&entry.tick);
        self.bytes -= entry.bytes;
    }

    /// Drops the oldest that nobody uses. False if there is none.
    fn drop_oldest(&mut self, by_run: &mut HashMap<RunId, Entry>) -> bool {
        let is_unused = |run: &RunId| by_run.get(run).is_some_and(|entry| Arc::strong_count(&entry.slot) == 1);
        let oldest = self.by_tick.values().take(OLDEST_MAX).find(|run| is_unused(run));
        let Some(entry) = oldest.and_then(|run| by_run.remove(run)) else { return false };
        self.remove(&entry);
        true
    }
}

#[cfg(test)]
mod tests {
    use servo_model::RunStatus;

    use super::*;

    #[test]
    fn places_of_runs_that_were_only_asked_for_are_bounded() {
        let cache = Cache::new(100 * PLACE_BYTES);
        for number in 0..10_000 {
            drop(cache.slot(&RunId::parse(&format!("run-{number}")).unwrap()));
        }
        let entries = cache.entries();
        assert!(entries.by_run.len() <= 100);
        assert_eq!(entries.by_run.len(), entries.open.by_tick.len());
        assert_eq!(entries.open.bytes, entries.by_run.len() * PLACE_BYTES);
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
        for (name, status) in [("open", RunStatus::Running), ("ended", RunStatus::Completed)] {
            let run = RunId::parse(name).unwrap();
            let mut state = RunState::new(run.clone());
            state.status = status;
            *cache.slot(&run).try_lock().unwrap() =
                Some(Hot::new(Box::new(state), servo_model::TenantId::default_tenant()));
        }
        // One that the cache knows to have ended, beside one that it has only heard of.
        cache.weigh(&RunId::parse("ended").unwrap(), &state("ended", RunStatus::Completed));
        *cache.slot(&RunId::parse("unweighed").unwrap()).try_lock().unwrap() =
            Some(Hot::new(Box::new(state("unweighed", RunStatus::Failed)), servo_model::TenantId::default_tenant()));
        cache.remove_ended();
        let entries = cache.entries();
        assert_eq!(entries.by_run.keys().map(RunId::as_str).collect::<Vec<_>>(), ["open"]);
        assert_eq!((entries.open.by_tick.len(), entries.open.bytes), (1, PLACE_BYTES));
        assert_eq!((entries.ended.by_tick.len(), entries.ended.bytes), (0, 0));
    }

    fn state(name: &str, status: RunStatus) -> RunState {
        let mut state = RunState::new(RunId::parse(name).unwrap());
        state.status = status;
        state
    }

    fn names(ages: &Ages) -> Vec<&str> {
        ages.by_tick.values().map(RunId::as_str).collect()
    }

    fn weigh_all(cache: &Cache, prefix: &str, numbers: std::ops::Range<usize>, status: RunStatus) {
        for number in numbers {
            let run = RunId::parse(&format!("{prefix}-{number:02}")).unwrap();
            drop(cache.slot(&run));
            cache.weigh(&run, &state(run.as_str(), status));
        }
    }

    #[test]
    fn runs_that_have_ended_take_a_small_part_and_leave_open_ones_alone() {
        let weight = PLACE_BYTES + state("run-00", RunStatus::Running).weight_bytes();
        let (ended_max, most) = (ENDED_LARGE, ENDED_LARGE * ENDED_PART);
        let cache = Cache::new(most * weight);
        weigh_all(&cache, "run", 0..9, RunStatus::Running);
        weigh_all(&cache, "end", 0..9, RunStatus::Completed);
        let entries = cache.entries();
        assert_eq!(names(&entries.ended), ["end-05", "end-06", "end-07", "end-08"], "the newest");
        assert_eq!((entries.ended.bytes, entries.open.bytes), (ended_max * weight, 9 * weight));
        drop(entries);
        // A use makes one the newest; one in use stays, though it is the oldest.
        let held = cache.slot(&RunId::parse("end-06").unwrap());
        weigh_all(&cache, "run", 0..FRESH_TICKS as usize, RunStatus::Running);
        drop(cache.slot(&RunId::parse("end-05").unwrap()));
        weigh_all(&cache, "end", 9..11, RunStatus::Completed);
        assert_eq!(names(&cache.entries().ended), ["end-06", "end-05", "end-09", "end-10"]);
        drop(held);
        let entries = cache.entries();
        let bytes = entries.open.bytes + entries.ended.bytes;
        assert!((most - 2) * weight < bytes && bytes <= most * weight, "open ones make the room that they need");
        assert_eq!(entries.by_run.len(), entries.open.by_tick.len() + entries.ended.by_tick.len());
        drop(entries);
        cache.remove(&RunId::parse("end-05").unwrap());
        assert_eq!(cache.entries().ended.bytes, (ended_max - 1) * weight);
    }

    #[test]
    fn a_large_run_that_has_ended_drives_out_no_others() {
        let weight = PLACE_BYTES + state("run-00", RunStatus::Running).weight_bytes();
        let cache = Cache::new((ENDED_LARGE * weight - 1) * ENDED_PART);
        weigh_all(&cache, "end", 0..2, RunStatus::Completed);
        let entries = cache.entries();
        assert_eq!((entries.open.by_tick.len(), entries.ended.by_tick.len()), (2, 0));
    }

    #[test]
    fn a_run_that_goes_on_is_open_again() {
        let cache = Cache::new(1_000_000);
        let run = RunId::parse("run").unwrap();
        drop(cache.slot(&run));
        for (status, is_ended) in [(RunStatus::Failed, true), (RunStatus::Failed, true), (RunStatus::Running, false)] {
            cache.weigh(&run, &state("run", status));
            let entries = cache.entries();
            let (full, empty) =
                if is_ended { (&entries.ended, &entries.open) } else { (&entries.open, &entries.ended) };
            assert_eq!((full.by_tick.len(), empty.by_tick.len(), empty.bytes), (1, 0, 0), "{status:?}");
            assert_eq!(full.bytes, entries.by_run[&run].bytes);
        }
        cache.remove(&run);
        let entries = cache.entries();
        assert_eq!((entries.open.bytes, entries.open.by_tick.len()), (0, 0));
    }
}
