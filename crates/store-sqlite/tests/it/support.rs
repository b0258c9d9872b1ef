//! A folder per test, a runtime per process, and a connection that knows nothing of the store.

use std::future::Future;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::Connection;
use servo_model::{RunId, TenantId};
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::fixtures;
use servo_store::{Append, Expected, LogStore, Scope, StoredEvent};
use servo_store_sqlite::{Config, DATABASE_FILE, SqliteStore};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// One per process, for all threads of a test.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).build().unwrap())
}

pub(crate) fn wait<T>(task: impl Future<Output = T>) -> T {
    runtime().block_on(task)
}

pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    runtime().spawn(task)
}

/// Bytes of a page of a new file.
pub(crate) const PAGE: usize = 8192;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn config(dir: &Path) -> Config {
    Config::new(dir, ManualClock::new().time_source())
}

pub(crate) fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(config(dir)).unwrap()
}

/// One that writes events as earlier versions did.
pub(crate) fn open_old(dir: &Path) -> SqliteStore {
    let mut config = config(dir);
    config.sabotage = Some("events-as-rows".to_owned());
    SqliteStore::open(config).unwrap()
}

/// Any program's connection to the file.
pub(crate) fn raw(dir: &Path) -> Connection {
    Connection::open(dir.join(DATABASE_FILE)).unwrap()
}

pub(crate) fn names() -> (RunId, TenantId) {
    (fixtures::run_id("run"), fixtures::tenant("acme"))
}

/// Starts the run `run` of the tenant `acme`.
pub(crate) fn start(store: &SqliteStore) -> (RunId, TenantId) {
    let (run, tenant) = names();
    wait(store.append(fixtures::start_append(&run, &tenant))).unwrap();
    (run, tenant)
}

/// One more event, of this many bytes.
pub(crate) fn one_more(run: &RunId, tenant: &TenantId, bytes: usize) -> Append {
    let mut event = fixtures::fresh_event(run);
    event.payload = fixtures::payload(bytes);
    Append::one(fixtures::add(run, tenant, Expected::Any, vec![event]))
}

/// So many events, in one append.
pub(crate) fn many(run: &RunId, tenant: &TenantId, events: usize) -> Append {
    let events = (0..events).map(|_| fixtures::fresh_event(run)).collect();
    Append::one(fixtures::add(run, tenant, Expected::Any, events))
}

pub(crate) fn events(store: &SqliteStore, run: &RunId) -> Vec<StoredEvent> {
    let mut all: Vec<StoredEvent> = Vec::new();
    loop {
        // Pages are limited in bytes, too.
        let after = all.last().map_or(0, |event| event.run_seq);
        let page = wait(store.read_run(&Scope::System, run, after, u32::MAX)).unwrap().events;
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
