//! The idempotency keys that a run may have: the first eight bytes of each, which is enough to know that a key is not
//! there. Whether one that may be there is, its event says.

use std::collections::HashSet;

use servo_canon::Digest;

/// A short list is searched faster than a set.
const LIST_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    list: Vec<u64>,
    set: Option<HashSet<u64>>,
}

impl Keys {
    pub(crate) fn may_have(&self, key: &Digest) -> bool {
        match &self.set {
            Some(set) => set.contains(&short(key)),
            None => self.list.contains(&short(key)),
        }
    }

    pub(crate) fn add(&mut self, key: &Digest) {
        self.add_short(short(key));
    }

    pub(crate) fn add_short(&mut self, key: u64) {
        match &mut self.set {
            Some(set) => {
                set.insert(key);
            }
            None if self.list.len() < LIST_MAX => self.list.push(key),
            None => {
                let mut set: HashSet<_> = std::mem::take(&mut self.list).into_iter().collect();
                set.insert(key);
                self.set = Some(set);
            }
        }
    }
}

/// The first eight bytes.
fn short(key: &Digest) -> u64 {
    let bytes = key.as_bytes();
    bytes.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_a_list_and_in_a_set() {
        let mut keys = Keys::default();
        for number in 0..3 * LIST_MAX as u64 {
            let key = Digest::of(&number.to_le_bytes());
            assert!(!keys.may_have(&key));
            keys.add(&key);
            assert!(keys.may_have(&key));
        }
        assert!(keys.may_have(&Digest::of(&0_u64.to_le_bytes())), "still there after the list has become a set");
    }
}
