//! The last sequence of the runs that are written to, so that an append does not have to look it up. One process and one
//! writer make it authoritative; whatever a rolled-back transaction touched is forgotten and read again.

use std::collections::HashMap;

use servo_model::{RunId, TenantId};

/// Entries per generation. Two generations are kept: about 50,000 runs in some 15 MB when full.
const GENERATION_MAX: usize = 25_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tenant: TenantId,
    pub(crate) seq: u64,
    /// What the log's indexes know the run by; none before its first event.
    pub(crate) number: Option<i64>,
}

/// Keeps what was used lately: entries move to the young generation when they are used, and an old generation that
/// nobody asked for goes as a whole.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    young: HashMap<RunId, Head>,
    old: HashMap<RunId, Head>,
}

impl Heads {
    pub(crate) fn get(&mut self, run_id: &RunId) -> Option<Head> {
        if let Some(head) = self.young.get(run_id) {
            return Some(head.clone());
        }
        let (run_id, head) = self.old.remove_entry(run_id)?;
        self.set(run_id, head.clone());
        Some(head)
    }

    pub(crate) fn set(&mut self, run_id: RunId, head: Head) {
        if self.young.len() >= GENERATION_MAX && !self.young.contains_key(&run_id) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&run_id);
        self.young.insert(run_id, head);
    }

    pub(crate) fn forget(&mut self, run_id: &RunId) {
        self.young.remove(run_id);
        self.old.remove(run_id);
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> RunId {
        RunId::parse(&format!("r{number}")).unwrap()
    }

    fn head(seq: u64) -> Head {
        Head { tenant: TenantId::system(), seq, number: Some(1) }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut heads = Heads::default();
        for number in 0..3 * GENERATION_MAX {
            heads.set(run(number), head(1));
            assert_eq!(heads.get(&run(0)), Some(head(1)), "run 0 is in use");
        }
        assert!(heads.young.len() + heads.old.len() <= 2 * GENERATION_MAX);
        assert_eq!(heads.get(&run(1)), None);
        heads.set(run(0), head(2));
        assert_eq!(heads.get(&run(0)), Some(head(2)));
        heads.forget(&run(0));
        assert_eq!(heads.get(&run(0)), None);
    }
}
