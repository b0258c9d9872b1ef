//! The suite that every store passes, each case on a database of its own.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_store::testkit::conformance::Backend;
use servo_store::{Store, TimeSource};
use servo_store_postgres::PostgresStore;

use crate::support::{config, named_database, runtime, test_name};

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
}

servo_store::conformance_tests!(Postgres::new(), |task| runtime().block_on(task));
