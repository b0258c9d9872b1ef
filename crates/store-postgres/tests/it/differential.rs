//! The comparison with the reference model: random operations on both, and every answer alike. R5.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{LogPage, RunPage, StoredRun, StoredSnapshot};
use servo_store::mem::MemStore;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::differential::{self, Coverage};
use servo_store::{Append, Appended, LogStore, Position, Result, Scope, Store, TimeSource};
use tokio_postgres::Client;

use crate::conformance;
use crate::support::{named_database, owner, runtime, spawn};

/// Sequences that run side by side, each on a database of its own.
const LANES: u64 = 4;
const OPERATIONS: usize = 60;
const SEQUENCES_DEFAULT: u64 = 300;

/// `SERVO_DIFF_SEQUENCES` says how many, `SERVO_DIFF_SEED` from which on.
#[test]
fn differential() {
    let first = from_environment("SERVO_DIFF_SEED").unwrap_or(0);
    let sequences = from_environment("SERVO_DIFF_SEQUENCES").unwrap_or(SEQUENCES_DEFAULT);
    runtime().block_on(async {
        let lanes: Vec<_> = (0..LANES.min(sequences))
            .map(|number| {
                spawn(async move {
                    let lane = Lane::open(number).await;
                    let mut coverage = Coverage::default();
                    for seed in (first + number..first + sequences).step_by(LANES as usize) {
                        coverage.merge(Box::pin(lane.run(seed)).await);
                    }
                    coverage
                })
            })
            .collect();
        let mut coverage = Coverage::default();
        for lane in lanes {
            coverage.merge(lane.await.unwrap());
        }
        // A handful of sequences, as when one is run again, cannot reach everything.
        if sequences >= SEQUENCES_DEFAULT {
            let missing = coverage.missing();
            assert!(missing.is_empty(), "never reached in {sequences} sequences: {missing:?}");
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "a test's length is set from outside, and there is no command line here")]
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// A store for many sequences, emptied before each: connecting takes longer than a sequence.
struct Lane {
    store: Settled,
    /// The clock of the sequence that is running.
    time: Arc<Mutex<TimeSource>>,
}

const EMPTY: &str = "
    UPDATE servo.runs SET trim_before = 9223372036854775807, trim_xid = pg_current_xact_id();
    DELETE FROM servo.events; DELETE FROM servo.blobs; DELETE FROM servo.snapshots; DELETE FROM servo.timers;
    DELETE FROM servo.queue; DELETE FROM servo.dispatches; DELETE FROM servo.outbox; DELETE FROM servo.dead_letters;
    DELETE FROM servo.lines; DELETE FROM servo.line_heads; DELETE FROM servo.function_aliases;
    DELETE FROM servo.function_versions; DELETE FROM servo.functions; DELETE FROM servo.alerts; DELETE FROM servo.authority; DELETE FROM servo.cursors;
    DELETE FROM servo.api_keys; DELETE FROM servo.audit_log; DELETE FROM servo.entrypoints; DELETE FROM servo.invocation_counts;
    DELETE FROM servo.runs WHERE run_id <> '_system';
    UPDATE servo.runs SET trim_before = 0, head_floor = 0, quarantined = NULL, created_at = ";

impl Lane {
    async fn open(number: u64) -> Self {
        let url = named_database(&format!("differential {number}")).await;
        let start: TimeSource = Arc::new(|| Timestamp::EPOCH);
        let time = Arc::new(Mutex::new(start));
        let current = Arc::clone(&time);
        let store = conformance::open(&url, Arc::new(move || (current.lock().unwrap())())).await;
        Self { store: Settled { store, observer: owner(&url).await }, time }
    }

    async fn run(&self, seed: u64) -> Coverage {
        let clock = ManualClock::new();
        let sql = format!("BEGIN; {EMPTY} {}; COMMIT", clock.now().as_millis());
        self.store.observer.batch_execute(&sql).await.unwrap();
        *self.time.lock().unwrap() = clock.time_source();
        let model = MemStore::new(clock.time_source(), Limits::default(), [1; 32]);
        let compared = differential::run(&model, &self.store, &clock, seed, OPERATIONS).await;
        compared.unwrap_or_else(|mismatch| panic!("{mismatch}"))
    }
}

/// A store whose readers wait until nobody holds them back: other tests use the same server.
struct Settled {
    store: Arc<dyn Store>,
    observer: Client,
}

impl Settled {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn around<T: Send>(&self, _: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        call.await
    }

    /// Until every transaction of this moment is over, mostly at once.
    async fn settle(&self) {
        let now =
            "SELECT pg_snapshot_xmax(s)::text, pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() s";
        let row = self.observer.query_one(now, &[]).await.unwrap();
        let (last, mut is_over): (String, bool) = (row.get(0), row.get(1));
        while !is_over {
            let later = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8";
            is_over = self.observer.query_one(later, &[&last]).await.unwrap().get(0);
        }
    }
}

servo_store::wrap_store!([] Settled);

#[async_trait]
impl LogStore for Settled {
    async fn now(&self) -> Result<Timestamp> {
        self.store.now().await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.store.append(append).await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        self.store.read_run(scope, run_id, after, limit).await
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        self.store.load_run(scope, run_id, limit).await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        self.store.snapshot_at(scope, run_id, seq_max).await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        self.store.put_snapshot(run_id, tenant, snapshot).await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        self.settle().await;
        self.store.read_log(after, limit).await
    }

    async fn log_head(&self) -> Result<Position> {
        self.settle().await;
        self.store.log_head().await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.settle().await;
        self.store.count_log(after, until, most).await
    }
}
