//! How many invocations of one function run at a time on this node. Only the holder of the authority dispatches, so this is
//! also how many run at all.
//!
//! How many may is known from the runs, so the first hand-overs of a function go by nothing. From then on a place is taken
//! before a run is loaded, and no more are loaded than may run.
//!
//! Whoever is passed over because a function has all it may have is remembered, by function, until the backlog is looked at
//! again: a place that is given back is theirs, and nobody who comes later takes it from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;

/// Functions with a limit that are remembered while none of their invocations runs.
const KNOWN_MAX: usize = 10_000;

type Name = (TenantId, String);

#[derive(Debug, Default)]
struct Functions {
    known: BTreeMap<Name, Function>,
    /// Those of which somebody was passed over, while as many ran as may.
    passed: BTreeSet<Name>,
}

#[derive(Debug, Default)]
struct Function {
    /// Places that are taken, and how many of these are used.
    taken: u32,
    running: u32,
    /// How many may, as far as is known from those that came: versions may differ.
    most: Most,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Most {
    #[default]
    Unknown,
    Any,
    At(u32),
}

impl Most {
    fn and(self, most: Option<u32>) -> Self {
        match (self, most) {
            (Self::Any, _) | (_, None) => Self::Any,
            (Self::Unknown, Some(most)) => Self::At(most),
            (Self::At(known), Some(most)) => Self::At(known.max(most)),
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Concurrency {
    functions: Arc<Mutex<Functions>>,
}

/// One invocation's place. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    concurrency: Concurrency,
    function: Name,
    used: bool,
}

impl Concurrency {
    fn lock(&self) -> MutexGuard<'_, Functions> {
        self.functions.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `None` if as many are taken as may run.
    pub(crate) fn take(&self, tenant: &TenantId, function: &str) -> Option<Place> {
        let function = (tenant.clone(), function.to_owned());
        let mut functions = self.lock();
        let known = functions.known.entry(function.clone()).or_default();
        if !known.has_room() {
            functions.passed.insert(function);
            return None;
        }
        known.taken += 1;
        Some(Place { concurrency: self.clone(), function, used: false })
    }

    /// A place for a run that has not waited: `None` if one that has may want it.
    pub(crate) fn begin(&self, tenant: &TenantId, function: &str, most: Option<u32>) -> Option<Place> {
        let function = (tenant.clone(), function.to_owned());
        if self.lock().passed.contains(&function) {
            return None;
        }
        let mut place = self.take(&function.0, &function.1)?;
        place.enter(most).then_some(place)
    }

    /// Whether another invocation is worth a try. Whoever asks for one that waits passes it over if not.
    pub(crate) fn has_room(&self, tenant: &TenantId, function: &str) -> bool {
        let function = (tenant.clone(), function.to_owned());
        let mut functions = self.lock();
        let has_room = functions.known.get(&function).is_none_or(Function::has_room);
        if !has_room {
            functions.passed.insert(function);
        }
        has_room
    }

    /// Whether something waits that was not handed out, because its function has all it may have.
    pub(crate) fn passes_over(&self) -> bool {
        !self.lock().passed.is_empty()
    }

    /// The backlog is looked at from its beginning: whoever is still passed over will be so again. What `is_left_out` of the
    /// look stays as it is.
    pub(crate) fn look_again(&self, is_left_out: impl Fn(&TenantId) -> bool) {
        self.lock().passed.retain(|(tenant, _)| is_left_out(tenant));
    }
}

impl Function {
    fn has_room(&self) -> bool {
        match self.most {
            Most::At(most) => self.taken < most,
            Most::Unknown | Most::Any => true,
        }
    }
}

impl Place {
    /// Says how many may run by the run's own version. False if as many do.
    pub(crate) fn enter(&mut self, most: Option<u32>) -> bool {
        let mut functions = self.concurrency.lock();
        let known = functions.known.entry(self.function.clone()).or_default();
        known.most = known.most.and(most);
        if most.is_some_and(|most| known.running >= most) {
            // With nobody running there is nobody who would give a place back.
            if known.running > 0 {
                functions.passed.insert(self.function.clone());
            }
            return false;
        }
        known.running += 1;
        self.used = true;
        true
    }

    /// Gives it back. Says whether somebody waits for it.
    pub(crate) fn leave(self) -> bool {
        let (concurrency, function) = (self.concurrency.clone(), self.function.clone());
        // First given back: whoever is passed over from then on has seen that.
        drop(self);
        concurrency.lock().passed.contains(&function)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut functions = self.concurrency.lock();
        let remembered = functions.known.len() <= KNOWN_MAX;
        let Some(known) = functions.known.get_mut(&self.function) else { return };
        known.taken = known.taken.saturating_sub(1);
        known.running = known.running.saturating_sub(u32::from(self.used));
        // At zero nothing would ever come again that could say otherwise.
        let limited = matches!(known.most, Most::At(most) if most > 0);
        if known.taken == 0 && !(limited && remembered) {
            functions.known.remove(&self.function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> TenantId {
        TenantId::parse("acme").unwrap()
    }

    /// A function with a limit takes no more places than it may use, once the limit is known.
    #[test]
    fn places_are_taken_before_a_run_is_loaded() {
        let concurrency = Concurrency::default();
        let take = || concurrency.take(&acme(), "f");
        let mut first: Vec<_> = (0..3).map(|_| take().unwrap()).collect();
        let entered: Vec<_> = first.iter_mut().map(|place| place.enter(Some(2))).collect();
        assert_eq!(entered, [true, true, false], "nothing was known of it before");
        first.pop();
        assert!(take().is_none(), "two run");
        first.pop();
        let second = take().unwrap();
        assert!(take().is_none() && !concurrency.has_room(&acme(), "f"), "one runs, one is being loaded");
        drop((first, second));
        let held: Vec<_> = (0..3).map_while(|_| take()).collect();
        assert_eq!(held.len(), 2, "remembered while none runs");
    }

    /// Versions may differ: the place is taken by the largest limit, and entered by the run's own.
    #[test]
    fn a_version_without_a_limit_goes_by_none() {
        let concurrency = Concurrency::default();
        let mut limited = concurrency.take(&acme(), "f").unwrap();
        assert!(limited.enter(Some(1)));
        assert!(concurrency.take(&acme(), "f").is_none());
        assert!(concurrency.take(&acme(), "g").is_some_and(|mut other| other.enter(None)));
        drop(limited);
        let mut places: Vec<_> = (0..1).filter_map(|_| concurrency.take(&acme(), "f")).collect();
        assert!(places[0].enter(None));
        let mut late = concurrency.take(&acme(), "f").unwrap();
        assert!(!late.enter(Some(1)), "its own version allows one, and one runs");
    }

    #[test]
    fn nothing_is_kept_of_a_function_without_a_limit() {
        let concurrency = Concurrency::default();
        for most in [None, Some(0)] {
            let mut place = concurrency.take(&acme(), "f").unwrap();
            assert_eq!(place.enter(most), most.is_none());
            drop(place);
            assert!(concurrency.lock().known.is_empty() && concurrency.lock().passed.is_empty());
        }
    }

    /// Whoever comes later waits behind one that was passed over, until the backlog is looked at again.
    #[test]
    fn a_place_that_somebody_waits_for_is_not_taken_by_one_that_comes_later() {
        let concurrency = Concurrency::default();
        let begin = || concurrency.begin(&acme(), "f", Some(1));
        let first = begin().unwrap();
        assert!(begin().is_none(), "one runs");
        assert!(first.leave(), "one waits for it");
        assert!(begin().is_none(), "it is the other's");
        concurrency.look_again(|_| false);
        let second = begin().unwrap();
        assert!(!concurrency.has_room(&acme(), "f"), "one that waits is passed over");
        concurrency.look_again(|tenant| *tenant == acme());
        assert!(second.leave(), "that look has left it out");
        concurrency.look_again(|_| false);
        assert!(!begin().unwrap().leave());
    }
}
