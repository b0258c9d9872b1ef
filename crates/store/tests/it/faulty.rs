//! The fault-injecting store: a transparent wrapper until it is told to fail, and then exactly as told.

use std::sync::Arc;

use servo_model::limits::Limits;
use servo_store::log::Expected;
use servo_store::mem::MemStore;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::conformance::{Backend, Damage};
use servo_store::testkit::faulty::{Fault, FaultyStore, Fired, Plan};
use servo_store::testkit::fixtures::{add, fresh_event, run_id, start_append, tenant};
use servo_store::{Append, Error, LogStore as _, Position, RelayStore as _, RunStore as _, Scope, Store, TimeSource};

use crate::Memory;
use crate::block_on::block_on;

/// The wrapper around `dyn Store`, as the runtime's tests use it.
#[derive(Default)]
struct Wrapped(Memory);

#[async_trait::async_trait]
impl Backend for Wrapped {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        Arc::new(FaultyStore::new(self.0.open(time).await, Plan::new()))
    }

    async fn damage(&self, store: Arc<dyn Store>, time: TimeSource, damage: &Damage) -> Option<Arc<dyn Store>> {
        self.0.damage(store, time, damage).await
    }
}

mod conformance {
    use super::{Wrapped, block_on};

    servo_store::conformance_tests!(Wrapped::default(), block_on);
}

fn open(plan: &Plan) -> (Arc<MemStore>, FaultyStore<MemStore>) {
    let clock = ManualClock::new();
    let store = Arc::new(MemStore::new(clock.time_source(), Limits::default(), [7; 32]));
    (Arc::clone(&store), FaultyStore::new(store, plan.clone()))
}

#[test]
fn each_fault_keeps_its_promise() {
    for fault in Fault::ALL {
        let plan = Plan::new().fail_method("append", 2, fault);
        let (below, store) = open(&plan);
        let (run, acme) = (run_id("inv_1"), tenant("acme"));
        block_on(store.append(start_append(&run, &acme))).unwrap();
        let stream = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]);
        let error = block_on(store.append(Append::one(stream))).unwrap_err();
        let written = block_on(below.read_run(&Scope::System, &run, 0, 10)).unwrap().head_seq == 2;
        let (expected_written, may_have_happened) = match fault {
            Fault::Conflict | Fault::Unavailable | Fault::Full => (false, false),
            Fault::Timeout => (false, true),
            Fault::ExecuteThenUnavailable => (true, true),
        };
        assert_eq!((written, error.may_have_happened()), (expected_written, may_have_happened), "{fault:?}: {error}");
        match fault {
            Fault::Conflict => assert!(matches!(error, Error::Conflict { expected: 1, actual: 2, .. }), "{error}"),
            Fault::Full => assert!(matches!(error, Error::Full { .. }), "{error}"),
            Fault::Unavailable | Fault::Timeout | Fault::ExecuteThenUnavailable => {
                assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            }
        }
        assert_eq!(plan.fired(), [Fired { call: 2, method: "append", fault }]);
    }
}

#[test]
fn calls_are_counted_in_all_and_by_method() {
    let plan = Plan::new().fail_call(2, Fault::Unavailable).fail_between(4, 5, Fault::Full);
    let (_, store) = open(&plan);
    let run = run_id("inv_1");
    block_on(async {
        assert!(store.log_head().await.is_ok());
        assert!(matches!(store.get_run(&Scope::System, &run).await, Err(Error::Unavailable { .. })));
        assert!(store.get_run(&Scope::System, &run).await.is_ok());
        assert!(matches!(store.log_head().await, Err(Error::Full { .. })));
        assert!(matches!(store.outbox_len().await, Err(Error::Full { .. })));
        assert!(store.outbox_len().await.is_ok());
        assert!(store.read_log(Position::START, 1).await.is_ok());
    });
    assert_eq!(
        (plan.calls(), plan.calls_of("log_head"), plan.calls_of("get_run"), plan.calls_of("append")),
        (7, 2, 2, 0)
    );
    assert_eq!(plan.record()[..3], ["log_head", "get_run", "get_run"]);
    let fired: Vec<_> = plan.fired().into_iter().map(|fired| (fired.call, fired.method)).collect();
    assert_eq!(fired, [(2, "get_run"), (4, "log_head"), (5, "outbox_len")]);

    plan.heal();
    let sick = plan.clone().fail_call(9, Fault::Timeout);
    sick.heal();
    block_on(async {
        assert!(store.log_head().await.is_ok());
        assert!(store.log_head().await.is_ok());
    });
    assert_eq!(plan.fired().len(), 3);
}

#[test]
fn a_cursor_meets_a_conflict_of_its_own() {
    let plan = Plan::new().fail_method("move_cursor", 1, Fault::Conflict);
    let (below, store) = open(&plan);
    let row = servo_store::relay::CursorRow::at("relay", Position::of_id(1));
    let error = block_on(store.move_cursor(None, row, None)).unwrap_err();
    assert!(matches!(error, Error::CursorMoved { .. }), "{error}");
    assert_eq!(block_on(below.cursor("relay")).unwrap(), None);
}
