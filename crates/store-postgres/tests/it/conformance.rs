//! The suite that every store passes, and the comparison with the reference model.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_store::testkit::conformance::Backend;
use servo_store::{Store, TimeSource};
use servo_store_postgres::PostgresStore;

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

/// One database for all sequences, emptied before each.
struct Emptied {
    url: String,
}

#[async_trait]
impl Backend for Emptied {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        let created_at = time().as_millis();
        let sql = format!(
            "BEGIN;
             ALTER TABLE servo.events DISABLE TRIGGER USER;
             ALTER TABLE servo.blobs DISABLE TRIGGER USER;
             TRUNCATE servo.runs, servo.events, servo.blobs, servo.snapshots, servo.timers, servo.queue,
                 servo.dispatches, servo.authority, servo.cursors, servo.outbox, servo.dead_letters, servo.alerts;
             ALTER TABLE servo.events ENABLE TRIGGER USER;
             ALTER TABLE servo.blobs ENABLE TRIGGER USER;
             INSERT INTO servo.runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible,
                 created_at, changed_seq)
             VALUES ('_system', '_system', '', '', '', '', 'RUNNING', 'running', {created_at}, 0);
             COMMIT"
        );
        owner(&self.url).await.batch_execute(&sql).await.unwrap();
        open(&self.url, time).await
    }
}

#[test]
fn differential() {
    runtime().block_on(async {
        let url = named_database("differential").await;
        Box::pin(servo_store::testkit::differential::check(move || Emptied { url: url.clone() })).await;
    });
}
