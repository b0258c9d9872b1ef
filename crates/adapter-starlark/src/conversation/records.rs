//! What the server keeps of a program while it runs: the records that it makes. They are counted against the memory that its call
//! may have, as the program's own values are, and all calls share one bound, of which no tenant can take all.
//!
//! Counted is what a record costs the server in memory, about: its state, its event on the way to the log and to whoever follows the
//! log. Nothing is counted any more once the call is over.

use std::collections::BTreeSet;

use servo_model::TenantId;
use servo_model::invocation::Failure;
use servo_model::operation::OperationUpdate;
use servo_sched::{Counter, Full, Held};

use crate::failure;

/// An operation besides what the program says of it.
const OPERATION_BYTES: usize = 4 * 1024;
/// As the interpreter has beside what the program may have.
const OVERHEAD_BYTES: u64 = 8 * 1024 * 1024;

pub(crate) struct Records {
    counter: Counter<TenantId>,
    tenant: TenantId,
    memory_mb: u64,
    bytes: u64,
    held: Option<Held<TenantId>>,
}

/// Why no more is recorded.
pub(crate) enum TooMuch {
    /// The call has all that it may have.
    OfCall(Failure),
    /// All calls have, or those of the tenant. It may go better later.
    OfAll,
}

impl Records {
    pub(crate) fn new(counter: &Counter<TenantId>, tenant: &TenantId, memory_mb: u64) -> Self {
        Self { counter: counter.clone(), tenant: tenant.clone(), memory_mb, bytes: 0, held: None }
    }

    /// Before they are recorded. `size` is what they take on the way here.
    pub(crate) fn add(&mut self, updates: &[OperationUpdate], size: usize) -> Result<(), TooMuch> {
        let operations: BTreeSet<&str> = updates.iter().map(|update| update.id.as_str()).collect();
        let more = operations.len().saturating_mul(OPERATION_BYTES).saturating_add(size);
        let most = self.memory_mb.saturating_mul(1024 * 1024).saturating_add(OVERHEAD_BYTES);
        self.bytes = self.bytes.saturating_add(more as u64);
        if self.bytes > most {
            return Err(TooMuch::OfCall(failure::too_many_records(self.memory_mb)));
        }
        let taken = match &mut self.held {
            Some(held) => held.grow(more),
            None => self.counter.take(&self.tenant, more).map(|held| self.held = Some(held)),
        };
        taken.map_err(|_: Full| TooMuch::OfAll)
    }
}

#[cfg(test)]
mod tests {
    use servo_model::operation::{OperationAction, OperationType};
    use servo_sched::Bounds;

    use super::*;

    fn updates(ids: &[&str]) -> Vec<OperationUpdate> {
        ids.iter().map(|id| OperationUpdate::new(*id, OperationType::Step, OperationAction::Start)).collect()
    }

    #[test]
    fn a_call_has_its_memory_for_records_and_no_more() {
        let counter = Counter::new(Bounds::shared(1 << 30));
        let mut records = Records::new(&counter, &TenantId::default_tenant(), 1);
        let one = updates(&["a", "a"]);
        let fit = (9 << 20) / (OPERATION_BYTES + 1_000);
        for _ in 0..fit {
            assert!(records.add(&one, 1_000).is_ok(), "an operation is counted once in a call");
        }
        assert!(matches!(records.add(&one, 1_000), Err(TooMuch::OfCall(_))));
        assert!(counter.used() >= fit * OPERATION_BYTES);
        drop(records);
        assert_eq!(counter.used(), 0, "a call that is over holds nothing");
    }

    #[test]
    fn a_tenant_leaves_room_for_others() {
        let counter = Counter::new(Bounds::shared(100 * OPERATION_BYTES));
        let [one, other] = ["one", "other"].map(|name| TenantId::parse(name).unwrap());
        let mut all: Vec<_> = (0..100).map(|_| Records::new(&counter, &one, 128)).collect();
        let taken = all.iter_mut().filter_map(|records| records.add(&updates(&["a"]), 0).ok()).count();
        assert_eq!(taken, 75);
        assert!(matches!(Records::new(&counter, &one, 128).add(&updates(&["a"]), 0), Err(TooMuch::OfAll)));
        assert!(Records::new(&counter, &other, 128).add(&updates(&["a"]), 0).is_ok());
    }
}
