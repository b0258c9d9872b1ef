//! Which calls fail or are held, and what was called so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::Fault;
use super::held::Held;
use crate::testkit::methods::METHODS;

/// Shared between a faulty store and the test that steers it.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    record: Vec<&'static str>,
    by_method: BTreeMap<&'static str, u64>,
    fired: Vec<Fired>,
    held: Option<(&'static str, Held)>,
}

#[derive(Debug)]
struct Rule {
    /// `None` counts all calls.
    method: Option<&'static str>,
    first: u64,
    last: u64,
    fault: Fault,
}

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The number of the call among all, counted from 1.
    pub call: u64,
    pub method: &'static str,
    pub fault: Fault,
}

impl Plan {
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails the n-th call of any method, counted from 1.
    #[must_use]
    pub fn fail_call(self, number: u64, fault: Fault) -> Self {
        self.add(None, number, number, fault)
    }

    /// Fails the n-th call of one method, counted from 1.
    #[must_use]
    pub fn fail_method(self, method: &'static str, number: u64, fault: Fault) -> Self {
        assert!(METHODS.contains(&method), "a store has no method {method}");
        self.add(Some(method), number, number, fault)
    }

    /// Fails all calls from the n-th to the m-th: an outage.
    #[must_use]
    pub fn fail_between(self, first: u64, last: u64, fault: Fault) -> Self {
        self.add(None, first, last, fault)
    }

    fn add(self, method: Option<&'static str>, first: u64, last: u64, fault: Fault) -> Self {
        assert!(first >= 1 && last >= first, "calls are counted from 1");
        self.lock().rules.push(Rule { method, first, last, fault });
        self
    }

    /// Holds the answer of the next call of a method, which is performed.
    pub fn hold(&self, method: &'static str) -> Held {
        assert!(METHODS.contains(&method), "a store has no method {method}");
        let held = Held::default();
        self.lock().held = Some((method, held.clone()));
        held
    }

    /// What holds the answer of this call, once.
    pub(super) fn take_hold(&self, method: &'static str) -> Option<Held> {
        self.lock().held.take_if(|(held, _)| *held == method).map(|(_, held)| held)
    }

    /// Calls so far, failed ones included.
    pub fn calls(&self) -> u64 {
        self.lock().record.len() as u64
    }

    pub fn calls_of(&self, method: &str) -> u64 {
        self.lock().by_method.get(method).copied().unwrap_or(0)
    }

    /// The methods called so far, in order.
    pub fn record(&self) -> Vec<&'static str> {
        self.lock().record.clone()
    }

    /// The faults that happened so far. A sweep whose fault never fires has reached its end, or proves nothing.
    pub fn fired(&self) -> Vec<Fired> {
        self.lock().fired.clone()
    }

    /// No further faults; the counts go on.
    pub fn heal(&self) {
        self.lock().rules.clear();
    }

    /// Counts a call and says what becomes of it.
    pub(super) fn count(&self, method: &'static str) -> Option<Fault> {
        debug_assert!(METHODS.contains(&method), "{method} is missing in the list");
        let mut inner = self.lock();
        inner.record.push(method);
        let call = inner.record.len() as u64;
        let of_method = inner.by_method.entry(method).or_default();
        *of_method += 1;
        let of_method = *of_method;
        let rule = inner.rules.iter().find(|rule| match rule.method {
            None => (rule.first..=rule.last).contains(&call),
            Some(name) => name == method && (rule.first..=rule.last).contains(&of_method),
        });
        let fault = rule?.fault;
        inner.fired.push(Fired { call, method, fault });
        Some(fault)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A test that panicked while it held the lock left counts that are still right.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
