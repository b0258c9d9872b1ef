//! The testkit on the reference model, and the testkit's own controls.

mod block_on;
mod differential;
mod faulty;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use servo_model::limits::Limits;
use servo_store::mem::MemStore;
use servo_store::testkit::conformance::{Backend, CASES, Damage};
use servo_store::{Store, StoredEvent, TimeSource};

use crate::block_on::block_on;

#[derive(Default)]
struct Memory {
    /// The one that was opened last.
    store: Mutex<Option<MemStore>>,
}

#[async_trait::async_trait]
impl Backend for Memory {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        let store = MemStore::new(time, Limits::default(), [7; 32]);
        *self.store.lock().expect("nobody panicked with it") = Some(store.clone());
        Arc::new(store)
    }

    async fn damage(&self, store: Arc<dyn Store>, _time: TimeSource, damage: &Damage) -> Option<Arc<dyn Store>> {
        let held = self.store.lock().expect("nobody panicked with it").clone().expect("it was opened");
        let change = |event: &mut StoredEvent| event.payload = event.payload.replace(damage.from, damage.to);
        held.damage(&damage.run_id, damage.run_seq, change).expect("the event is there");
        Some(store)
    }
}

mod conformance {
    use super::{Memory, block_on};

    servo_store::conformance_tests!(Memory::default(), block_on);
}

/// Ledger rows that the conformance suite proves, on every backend that runs it.
const PROVEN: &[&str] = &[
    "ES-001", "ES-002", "ES-003", "ES-004", "ES-007", "ES-047", "ES-071", "ES-072", "ES-073", "ES-081", "RT-002",
    "RT-003", "RT-004", "RT-005", "RT-006", "RT-007", "RT-013",
];

#[test]
fn the_cases_prove_these_rows() {
    let claimed: BTreeSet<_> = CASES.iter().flat_map(|case| case.ledger).copied().collect();
    assert_eq!(claimed, PROVEN.iter().copied().collect::<BTreeSet<_>>());
    let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len(), "two cases have one name");
}
