//! The suite that every store passes, each case on a database of its own.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_store::testkit::conformance::{Backend, Damage};
use servo_store::{Store, TimeSource};
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

pub(crate) async fn open(url: &str, time: TimeSource) -> Arc<dyn Store> {
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

    async fn damage(&self, store: Arc<dyn Store>, _time: TimeSource, damage: &Damage) -> Option<Arc<dyn Store>> {
        let url = self.url.lock().unwrap().clone()?;
        let (run, seq, from, to) = (&damage.run_id, damage.run_seq, damage.from, damage.to);
        let change = format!(
            "UPDATE servo.events SET payload = replace(payload, '{from}', '{to}') WHERE run_id = '{run}' AND run_seq = {seq}"
        );
        past_guards(&owner(&url).await, &change).await;
        Some(store)
    }
}

/// A change that the log's guards refuse, as bytes in a file would change.
pub(crate) async fn past_guards(owner: &Client, change: &str) {
    let all = format!(
        "BEGIN; ALTER TABLE servo.events DISABLE TRIGGER USER; ALTER TABLE servo.events NO FORCE ROW LEVEL SECURITY; {change};
         ALTER TABLE servo.events FORCE ROW LEVEL SECURITY; ALTER TABLE servo.events ENABLE TRIGGER USER; COMMIT"
    );
    owner.batch_execute(&all).await.unwrap();
}

servo_store::conformance_tests!(Postgres::new(), |task| runtime().block_on(task));
