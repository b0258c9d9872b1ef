//! The suite that every store passes, and the comparison with the reference model.

use std::sync::Arc;

use async_trait::async_trait;
use servo_store::testkit::conformance::Backend;
use servo_store::{Store, TimeSource};
use servo_store_sqlite::{Config, SqliteStore};
use tempfile::TempDir;

use crate::support::{folder, runtime};

pub(crate) struct Sqlite {
    dir: TempDir,
    pages_max: Option<u32>,
}

impl Sqlite {
    pub(crate) fn new(pages_max: Option<u32>) -> Self {
        Self { dir: folder(), pages_max }
    }

    fn store(&self, time: TimeSource) -> Arc<dyn Store> {
        let config = Config { pages_max: self.pages_max, ..Config::new(self.dir.path(), time) };
        Arc::new(SqliteStore::open(config).unwrap())
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

servo_store::conformance_tests!(Sqlite::new(None), |task| runtime().block_on(task));

#[test]
fn differential() {
    runtime().block_on(servo_store::testkit::differential::check(|| Sqlite::new(None)));
}
