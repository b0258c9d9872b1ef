//! Deficit round-robin: tenants with work take turns, and a turn is worth the tenant's weight.
//!
//! With `c` the largest cost and `w` a weight, a turn adds `w * c` to what the tenant may spend, and what it does not
//! spend is less than `c`. From that follow the bounds that the tests hold it to:
//!
//! - Who has work and a free slot waits for no more than `w * c + c - 1` of each other tenant.
//! - Of two tenants that both have work all the time, `served / w` differs by at most `c + c / w1 + c / w2`.
//! - Each `take` looks at two tenants at most, however many there are.
//!
//! A tenant that neither waits nor holds a slot is not in here.

use std::collections::{BTreeMap, VecDeque};

use crate::share::Shares;

/// Work that waits, by tenant, and the slots that are taken.
#[derive(Debug, Clone)]
pub struct Fair<K, T> {
    shares: Shares<K>,
    cost_max: u32,
    slots: usize,
    busy: usize,
    waiting: usize,
    lanes: BTreeMap<K, Lane<T>>,
    /// Those that have work and may have a slot, in the order of their turns.
    ring: VecDeque<K>,
}

#[derive(Debug, Clone)]
struct Lane<T> {
    work: VecDeque<(T, u32)>,
    busy: usize,
    deficit: u64,
    /// Whether it is in the ring.
    listed: bool,
    /// Whether its turn has begun, so that it was given its quantum.
    turn: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { work: VecDeque::new(), busy: 0, deficit: 0, listed: false, turn: false }
    }
}

impl<K: Ord + Clone, T> Fair<K, T> {
    /// `slots` in total. Work costs between 1 and `cost_max`; other costs are brought into it.
    pub fn new(slots: usize, cost_max: u32, shares: Shares<K>) -> Self {
        let cost_max = cost_max.max(1);
        Self { shares, cost_max, slots, busy: 0, waiting: 0, lanes: BTreeMap::new(), ring: VecDeque::new() }
    }

    /// Adds work behind what the tenant has.
    pub fn push(&mut self, key: &K, work: T, cost: u32) {
        let cost = cost.clamp(1, self.cost_max);
        self.lanes.entry(key.clone()).or_default().work.push_back((work, cost));
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
            if !lane.turn {
                lane.turn = true;
                lane.deficit += u64::from(share.weight) * u64::from(self.cost_max);
            }
            let cost = lane.work.front().map_or(u64::MAX, |(_, cost)| u64::from(*cost));
            if lane.deficit < cost {
                // The turn is over. What is left is less than one piece costs, and counts next time.
                lane.turn = false;
                self.ring.rotate_left(1);
                continue;
            }
            let (work, _) = lane.work.pop_front()?;
            lane.deficit -= cost;
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

    /// Tenants that wait or hold a slot.
    pub fn tenants(&self) -> usize {
        self.lanes.len()
    }

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
        self.turn = false;
        self.deficit = 0;
    }
}
