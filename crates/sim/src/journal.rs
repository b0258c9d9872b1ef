//! What the store accepted, in the order in which it did: the witness for checks that the log alone cannot make.

use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::Timestamp;

use crate::exec::NodeId;

/// One accepted write that has to do with the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// By the store's clock.
    pub at: Timestamp,
    pub node: NodeId,
    pub what: Write,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// The authority changed hands or was renewed.
    Authority { epoch: u64, leased_until: Timestamp, resigned: bool },
    /// A scheduler's write, with the epoch that its writer believed in.
    Fenced { epoch: u64 },
}

/// Shared by every node's connection.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    entries: Arc<Mutex<Vec<Accepted>>>,
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, Vec<Accepted>> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn note(&self, entry: Accepted) {
        self.lock().push(entry);
    }

    pub fn entries(&self) -> Vec<Accepted> {
        self.lock().clone()
    }
}
