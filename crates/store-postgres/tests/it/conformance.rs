//! The suite that every store passes, and the comparison with the reference model.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{LogPage, RunPage, StoredSnapshot};
use servo_store::testkit::conformance::Backend;
use servo_store::{Append, Appended, Error, LogStore, Position, Result, Scope, Store, TimeSource};
use servo_store_postgres::PostgresStore;
use tokio_postgres::Client;

use crate::support::{config, named_database, owner, runtime, test_name};

/// A database per test.
struct Postgres {
    test: String,
    url: Mutex<Option<String>>,
}

impl Postgres {
    fn new() -> Self {
        Self { test: test_name(), url: Mutex::new(None) }
    }
}

async fn open(url: &str, time: TimeSource) -> Arc<dyn Store> {
    let mut config = config(url);
    config.time = Some(time);
    Arc::new(PostgresStore::connect(config).await.unwrap())
}

#[async_trait]
impl Backend for Postgres {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        let url = named_database(&self.test).await;
        *self.url.lock().unwrap() = Some(url.clone());
        open(&url, time).await
    }

    async fn reopen(&self, time: TimeSource) -> Option<Arc<dyn Store>> {
        let url = self.url.lock().unwrap().clone()?;
        Some(open(&url, time).await)
    }
}

servo_store::conformance_tests!(Postgres::new(), |task| runtime().block_on(task));

/// One store for all sequences, emptied before each and never closed: connecting takes longer than a sequence.
struct Emptied(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    observer: Client,
    /// The clock of the sequence that is running.
    time: Arc<Mutex<TimeSource>>,
}

const EMPTY: &str = "
    UPDATE servo.runs SET trim_before = 9223372036854775807, trim_xid = pg_current_xact_id();
    DELETE FROM servo.events; DELETE FROM servo.blobs; DELETE FROM servo.snapshots; DELETE FROM servo.timers;
    DELETE FROM servo.queue; DELETE FROM servo.dispatches; DELETE FROM servo.outbox; DELETE FROM servo.dead_letters;
    DELETE FROM servo.alerts; DELETE FROM servo.authority; DELETE FROM servo.cursors;
    DELETE FROM servo.runs WHERE run_id <> '_system';
    UPDATE servo.runs SET trim_before = 0, head_floor = 0, quarantined = NULL, created_at = ";

#[async_trait]
impl Backend for Emptied {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        let sql = format!("BEGIN; {EMPTY} {}; COMMIT", time().as_millis());
        self.0.observer.batch_execute(&sql).await.unwrap();
        *self.0.time.lock().unwrap() = time;
        Arc::new(Settled(Arc::clone(&self.0)))
    }
}

/// A store whose readers wait until nobody holds them back: other tests use the same server.
struct Settled(Arc<Shared>);

impl Settled {
    fn inner(&self) -> &dyn Store {
        &*self.0.store
    }

    async fn around<T: Send>(&self, method: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        if method == "close" { Err(Error::Closed) } else { call.await }
    }

    /// Until every transaction of this moment is over, mostly at once.
    async fn settle(&self) {
        let now =
            "SELECT pg_snapshot_xmax(s)::text, pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() s";
        let row = self.0.observer.query_one(now, &[]).await.unwrap();
        let (last, mut is_over): (String, bool) = (row.get(0), row.get(1));
        while !is_over {
            let later = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8";
            is_over = self.0.observer.query_one(later, &[&last]).await.unwrap().get(0);
        }
    }
}

servo_store::wrap_store!([] Settled);

#[async_trait]
impl LogStore for Settled {
    async fn now(&self) -> Result<Timestamp> {
        self.0.store.now().await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.0.store.append(append).await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        self.0.store.read_run(scope, run_id, after, limit).await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        self.0.store.snapshot_at(scope, run_id, seq_max).await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        self.0.store.put_snapshot(run_id, tenant, snapshot).await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        self.settle().await;
        self.0.store.read_log(after, limit).await
    }

    async fn log_head(&self) -> Result<Position> {
        self.settle().await;
        self.0.store.log_head().await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.settle().await;
        self.0.store.count_log(after, until, most).await
    }
}

#[test]
fn differential() {
    runtime().block_on(async {
        let url = named_database("differential").await;
        let start: TimeSource = Arc::new(|| Timestamp::EPOCH);
        let time = Arc::new(Mutex::new(start));
        let current = Arc::clone(&time);
        let store = open(&url, Arc::new(move || (current.lock().unwrap())())).await;
        let shared = Arc::new(Shared { store, observer: owner(&url).await, time });
        Box::pin(servo_store::testkit::differential::check(|| Emptied(Arc::clone(&shared)))).await;
    });
}
