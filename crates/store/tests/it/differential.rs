//! The differential test on the model itself, and the proof that it finds a store that differs.

use std::future::Future;
use std::sync::Arc;

use servo_model::limits::Limits;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{LogPage, RunPage, StoredRun, StoredSnapshot};
use servo_store::mem::MemStore;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::conformance::{self, Backend};
use servo_store::testkit::differential::{check, run};
use servo_store::{Append, Appended, LogStore, Position, Result, Scope, Store, TimeSource};

use crate::Memory;
use crate::block_on::block_on;

#[test]
fn differential() {
    block_on(check(Memory::default));
}

/// A store with its pages upside down: the control that must fail.
#[derive(Debug)]
struct Swapped(MemStore);

impl Swapped {
    fn inner(&self) -> &MemStore {
        &self.0
    }

    async fn around<T: Send>(&self, _: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        call.await
    }
}

#[async_trait::async_trait]
impl LogStore for Swapped {
    async fn now(&self) -> Result<Timestamp> {
        self.0.now().await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.0.append(append).await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        let mut page = self.0.read_run(scope, run_id, after, limit).await?;
        page.events.reverse();
        Ok(page)
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        self.0.load_run(scope, run_id, limit).await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        self.0.snapshot_at(scope, run_id, seq_max).await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        self.0.put_snapshot(run_id, tenant, snapshot).await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        self.0.read_log(after, limit).await
    }

    async fn log_head(&self) -> Result<Position> {
        self.0.log_head().await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.0.count_log(after, until, most).await
    }
}

servo_store::wrap_store!([] Swapped);

struct SwappedBackend;

#[async_trait::async_trait]
impl Backend for SwappedBackend {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        Arc::new(Swapped(memory(time)))
    }
}

fn memory(time: TimeSource) -> MemStore {
    MemStore::new(time, Limits::default(), [7; 32])
}

#[test]
fn a_store_with_another_order_is_found() {
    let mut found = 0;
    for seed in 0..20 {
        let clock = ManualClock::new();
        let (model, swapped) = (memory(clock.time_source()), Swapped(memory(clock.time_source())));
        if let Err(mismatch) = block_on(run(&model, &swapped, &clock, seed, 60)) {
            let told = mismatch.to_string();
            assert!(told.contains(&format!("seed {seed} ")) && mismatch.model != mismatch.store, "{told}");
            found += 1;
        }
    }
    // A sequence may end before any run has two events, but not many do.
    assert!(found >= 15, "only {found} of 20 sequences noticed it");
}

#[test]
fn the_conformance_suite_finds_it_too() {
    for name in
        ["log::sequences_follow_the_head", "log::a_page_ends_where_it_is_told", "import::gaps_stay_and_the_run_goes_on"]
    {
        let outcome = std::panic::catch_unwind(|| conformance::check(name, Arc::new(SwappedBackend), block_on));
        assert!(outcome.is_err(), "{name} passed on a store that returns pages in reverse");
    }
}
