//! Functions that were read lately, so that a start does not have to ask for its function again. Only this process writes the
//! store: what was read is true until a function is written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use servo_model::{FunctionName, TenantId};
use servo_store::registry::FunctionVersion;

/// With more, all are forgotten and read again.
const FUNCTIONS_MAX: usize = 1_000;
/// A longer registration is read each time.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024;

/// A version, or the newest.
pub(crate) type Name = (TenantId, FunctionName, Option<u64>);

#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// A transaction that changes functions is open, or nobody knows how it ended.
    is_changing: AtomicBool,
    functions: Mutex<Functions>,
}

#[derive(Debug, Default)]
struct Functions {
    by_name: HashMap<Name, FunctionVersion>,
    generation: Generation,
}

/// Since the last change. What was read in an earlier one may be old.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Functions> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function, or the generation to which it belongs when it is read now.
    pub(crate) fn get(&self, name: &Name) -> Result<FunctionVersion, Generation> {
        let functions = self.lock();
        let found = functions.by_name.get(name).filter(|_| !self.is_changing.load(Ordering::Acquire));
        found.cloned().ok_or(functions.generation)
    }

    pub(crate) fn keep(&self, name: Name, found: &FunctionVersion, generation: Generation) {
        let mut functions = self.lock();
        let is_old = functions.generation != generation || self.is_changing.load(Ordering::Acquire);
        if is_old || found.document.len() > DOCUMENT_BYTES_MAX {
            return;
        }
        if functions.by_name.len() >= FUNCTIONS_MAX {
            functions.by_name.clear();
        }
        functions.by_name.insert(name, found.clone());
    }

    /// Functions are about to be written. In the transaction that does it.
    pub(crate) fn change(&self) {
        self.is_changing.store(true, Ordering::Release);
    }

    /// A transaction is committed. Before anybody hears of it, so that whoever was told reads what was written.
    pub(crate) fn settle(&self) {
        if self.is_changing.load(Ordering::Acquire) {
            let mut functions = self.lock();
            functions.by_name.clear();
            functions.generation.0 += 1;
            self.is_changing.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_canon::Digest;
    use servo_model::Timestamp;

    use super::*;

    fn name(version: Option<u64>) -> Name {
        (TenantId::default_tenant(), FunctionName::parse("f").unwrap(), version)
    }

    fn function(version: u64, bytes: usize) -> FunctionVersion {
        FunctionVersion {
            tenant: TenantId::default_tenant(),
            name: FunctionName::parse("f").unwrap(),
            version,
            digest: Digest::of(b"f"),
            document: "x".repeat(bytes),
            created_at: Timestamp::from_millis(1),
        }
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let kept = Kept::default();
        let before = kept.get(&name(None)).unwrap_err();
        kept.keep(name(None), &function(1, 1), before);
        assert_eq!(kept.get(&name(None)), Ok(function(1, 1)));
        kept.change();
        assert_eq!(kept.get(&name(None)), Err(before), "it may have gone by now");
        kept.keep(name(Some(1)), &function(1, 1), before);
        kept.settle();
        let after = kept.get(&name(None)).unwrap_err();
        assert_ne!(after, before);
        assert_eq!(kept.get(&name(Some(1))), Err(after), "it was read while that was open");
        kept.keep(name(None), &function(1, 1), before);
        assert_eq!(kept.get(&name(None)), Err(after), "it was read before");
        kept.keep(name(None), &function(2, 1), after);
        kept.settle();
        assert_eq!(kept.get(&name(None)), Ok(function(2, 1)), "nothing has changed");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = Kept::default();
        let generation = kept.get(&name(None)).unwrap_err();
        for version in 0..3 * FUNCTIONS_MAX as u64 {
            kept.keep(name(Some(version)), &function(version, 1), generation);
        }
        assert!(kept.lock().by_name.len() <= FUNCTIONS_MAX);
        kept.keep(name(None), &function(1, DOCUMENT_BYTES_MAX + 1), generation);
        assert_eq!(kept.get(&name(None)), Err(generation));
    }
}
