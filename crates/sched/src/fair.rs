//! Weighted round-robin: tenants with work take turns, and a turn is worth as many pieces of work as the tenant has weight.
//!
//! It is deficit round-robin with pieces of equal cost: how long a piece will take nobody knows beforehand, so a turn ends with
//! nothing left over. From that follow the bounds that the tests hold it to, with `w` a weight:
//!
//! - Who has work and a free slot waits for no more than `w` pieces of each other tenant.
//! - Of two tenants that both have work all the time, `served / w` differs by at most `1 + 1 / w1 + 1 / w2`.
//! - Each `take` looks at two tenants at most, however many there are.
//!
//! A tenant that neither waits nor holds a slot is not in here.

use std::collections::{BTreeMap, VecDeque};

use crate::share::Shares;

/// Work that waits, by tenant, and the slots that are taken.
#[derive(Debug, Clone)]
pub struct Fair<K, T> {
    shares: Shares<K>,
    slots: usize,
    busy: usize,
    waiting: usize,
    lanes: BTreeMap<K, Lane<T>>,
    /// Those that have work and may have a slot, in the order of their turns.
    ring: VecDeque<K>,
}

#[derive(Debug, Clone)]
struct Lane<T> {
    work: VecDeque<T>,
    busy: usize,
    /// What is left of its turn; absent until the turn begins.
    turn: Option<u32>,
    /// Whether it is in the ring.
    listed: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { work: VecDeque::new(), busy: 0, turn: None, listed: false }
    }
}

impl<K: Ord + Clone, T> Fair<K, T> {
    /// `slots` in total.
    pub fn new(slots: usize, shares: Shares<K>) -> Self {
        Self { shares, slots, busy: 0, waiting: 0, lanes: BTreeMap::new(), ring: VecDeque::new() }
    }

    /// Adds work behind what the tenant has.
    pub fn push(&mut self, key: &K, work: T) {
        self.lanes.entry(key.clone()).or_default().work.push_back(work);
        self.waiting += 1;
        self.list(key);
    }

    /// The next piece of work, and a slot for it. `None` if nothing waits that may have one.
    pub fn take(&mut self) -> Option<(K, T)> {
        if !self.has_slot() {
            return None;
        }
        loop {
            let key = self.ring.front()?.clone();
            let share = self.shares.of(&key);
            let lane = self.lanes.get_mut(&key)?;
            let left = lane.turn.unwrap_or(share.weight);
            if left == 0 {
                lane.turn = None;
                self.ring.rotate_left(1);
                continue;
            }
            let work = lane.work.pop_front()?;
            lane.turn = Some(left - 1);
            lane.busy += 1;
            self.busy += 1;
            self.waiting -= 1;
            if lane.work.is_empty() || share.slots.is_some_and(|most| lane.busy >= most) {
                self.ring.pop_front();
                lane.leave();
            }
            return Some((key, work));
        }
    }

    /// A slot for work that is not in here. False if any waits, or there is no slot for this tenant.
    pub fn occupy(&mut self, key: &K) -> bool {
        if self.waiting > 0 || !self.has_slot() || !self.has_room(key) {
            return false;
        }
        self.lanes.entry(key.clone()).or_default().busy += 1;
        self.busy += 1;
        true
    }

    /// A slot is free again.
    pub fn release(&mut self, key: &K) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        if lane.busy == 0 {
            return;
        }
        lane.busy -= 1;
        self.busy -= 1;
        if lane.busy == 0 && lane.work.is_empty() {
            self.lanes.remove(key);
        } else {
            self.list(key);
        }
    }

    /// Forgets what waits. Slots that are taken stay taken.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.waiting = 0;
        self.lanes.retain(|_, lane| {
            lane.work.clear();
            lane.leave();
            lane.busy > 0
        });
    }

    /// Whether [`Fair::take`] would give something.
    pub fn is_ready(&self) -> bool {
        self.has_slot() && !self.ring.is_empty()
    }

    /// Whether any slot is free.
    pub fn has_slot(&self) -> bool {
        self.busy < self.slots
    }

    /// Whether the tenant could use a slot if it had work.
    pub fn has_room(&self, key: &K) -> bool {
        let busy = self.lanes.get(key).map_or(0, |lane| lane.busy);
        self.shares.of(key).slots.is_none_or(|most| busy < most)
    }

    /// What waits, of all.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// What waits, of one tenant.
    pub fn waiting_of(&self, key: &K) -> usize {
        self.lanes.get(key).map_or(0, |lane| lane.work.len())
    }

    /// Slots that are taken.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// Gives the tenant a turn behind the others, if it has work, may have a slot and has none coming.
    fn list(&mut self, key: &K) {
        if !self.has_room(key) {
            return;
        }
        if let Some(lane) = self.lanes.get_mut(key)
            && !lane.listed
            && !lane.work.is_empty()
        {
            lane.listed = true;
            self.ring.push_back(key.clone());
        }
    }
}

impl<T> Lane<T> {
    /// Whoever leaves the ring takes nothing along, or one could save up turns and then spend them all at once.
    fn leave(&mut self) {
        self.listed = false;
        self.turn = None;
    }
}
