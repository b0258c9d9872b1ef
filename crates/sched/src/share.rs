//! What a tenant may have of the slots: its weight beside others, and its own ceiling.

use std::collections::BTreeMap;

/// The largest weight. It bounds how long a turn lasts, and so how long everybody else waits for theirs.
pub const WEIGHT_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How much of the slots it gets beside others who want them too: 1 to [`WEIGHT_MAX`]. Others are brought into it.
    pub weight: u32,
    /// Slots that it may hold at a time; absent means all of them.
    pub slots: Option<usize>,
}

impl Default for Share {
    fn default() -> Self {
        Self { weight: 1, slots: None }
    }
}

/// The shares by name, and what everybody else has.
#[derive(Debug, Clone)]
pub struct Shares<K> {
    pub others: Share,
    pub named: BTreeMap<K, Share>,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { others: Share::default(), named: BTreeMap::new() }
    }
}

impl<K: Ord> Shares<K> {
    pub(crate) fn of(&self, key: &K) -> Share {
        let share = self.named.get(key).copied().unwrap_or(self.others);
        Share { weight: share.weight.clamp(1, WEIGHT_MAX), ..share }
    }
}
