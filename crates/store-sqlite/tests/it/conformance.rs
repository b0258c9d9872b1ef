//! The suite that every store passes, and the comparison with the reference model.

use std::sync::Arc;

use async_trait::async_trait;
use servo_store::testkit::conformance::Backend;
use servo_store::{Store, TimeSource};
use servo_store_sqlite::{Config, SqliteStore};
use tempfile::TempDir;

use crate::support::{folder, runtime};

struct Sqlite {
    dir: TempDir,
}

impl Sqlite {
    fn new() -> Self {
        Self { dir: folder() }
    }

    fn store(&self, time: TimeSource) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(Config::new(self.dir.path(), time)).unwrap())
    }
}

#[async_trait]
impl Backend for Sqlite {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        self.store(time)
    }

    async fn reopen(&self, time: TimeSource) -> Option<Arc<dyn Store>> {
        Some(self.store(time))
    }
}

servo_store::conformance_tests!(Sqlite::new(), |task| runtime().block_on(task));

#[test]
fn differential() {
    runtime().block_on(servo_store::testkit::differential::check(Sqlite::new));
}
