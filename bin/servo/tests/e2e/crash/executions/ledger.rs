//! What handlers did and what they were told, kept outside the server. The rules that hold at any moment are checked here; what
//! breaks one becomes a finding.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Ledger {
    values: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// By execution and operation: the outcome that the handler went on with.
    told: BTreeMap<(String, String), u64>,
    /// By ARN: how many invocations have begun.
    invocations: BTreeMap<String, u32>,
    refused: usize,
    at_gate: usize,
    findings: Vec<String>,
}

impl Ledger {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A value that no body returned before: a body that runs again returns another one.
    pub(super) fn fresh(&self) -> u64 {
        self.values.fetch_add(1, Ordering::SeqCst)
    }

    /// An invocation begins. Its number, from 1.
    pub(super) fn begins(&self, arn: &str) -> u32 {
        let mut seen = self.seen();
        let count = seen.invocations.entry(arn.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// Whether another invocation of the execution has begun since.
    pub(super) fn is_replaced(&self, arn: &str, number: u32) -> bool {
        self.seen().invocations.get(arn).is_some_and(|latest| *latest > number)
    }

    pub(super) fn at_gate(&self) {
        self.seen().at_gate += 1;
    }

    /// How many bodies have come to a gate.
    pub(super) fn came_to_gate(&self) -> usize {
        self.seen().at_gate
    }

    /// A replaced invocation was refused, as it must be.
    pub(super) fn refused(&self) {
        self.seen().refused += 1;
    }

    /// A handler goes on with this outcome. Whoever asks later is told the same.
    pub(super) fn told(&self, execution: &str, operation: &str, value: u64) {
        let mut seen = self.seen();
        let first = *seen.told.entry((execution.to_owned(), operation.to_owned())).or_insert(value);
        if first != value {
            seen.findings.push(format!("{execution}: operation {operation} was {first} and became {value}"));
        }
    }

    /// What the handler was told of its operations, in their order.
    pub(super) fn outcomes(&self, execution: &str, count: usize) -> Vec<Option<u64>> {
        let seen = self.seen();
        (0..count).map(|number| seen.told.get(&(execution.to_owned(), number.to_string())).copied()).collect()
    }

    pub(super) fn find(&self, finding: String) {
        self.seen().findings.push(finding);
    }

    pub(super) fn findings(&self) -> Vec<String> {
        self.seen().findings.clone()
    }

    /// How many invocations there were, and how many calls of replaced ones were refused.
    pub(super) fn counts(&self) -> (u32, usize) {
        let seen = self.seen();
        (seen.invocations.values().sum(), seen.refused)
    }
}
