//! A bounded memory of what was used lately: entries move to the young generation when they are used, and an old
//! generation that nobody asked for goes as a whole.

use std::borrow::Borrow;
use std::hash::Hash;

use foldhash::{HashMap, HashMapExt as _};

#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Entries per generation.
    generation_max: usize,
}

impl<K: Hash + Eq, V> Recent<K, V> {
    pub(crate) fn new(generation_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation_max }
    }

    pub(crate) fn has<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    /// What is known of it, if anything. Whoever takes it out puts it back, or has it forgotten.
    pub(crate) fn take<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Of something that is not known, or was taken out. Gives what is forgotten for it.
    pub(crate) fn set(&mut self, key: K, value: V) -> HashMap<K, V> {
        let mut forgotten = HashMap::new();
        if self.young.len() >= self.generation_max && !self.young.contains_key(&key) {
            forgotten = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        }
        self.young.insert(key, value);
        forgotten
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut recent = Recent::new(100);
        recent.set(0, "one");
        for number in 1..300 {
            let forgotten = recent.set(number, "one");
            assert!(!forgotten.contains_key(&0), "{forgotten:?}");
            assert_eq!(recent.take(&0), Some("one"), "0 is in use");
            assert!(!recent.has(&0));
            recent.set(0, "one");
        }
        assert!(recent.young.len() + recent.old.len() <= 201);
        assert_eq!(recent.take(&1), None);
        recent.clear();
        assert!(!recent.has(&0));
    }
}
