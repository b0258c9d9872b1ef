//! The suite that every store passes, and the comparison with the reference model.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use servo_store::testkit::conformance::{Backend, Damage};
use servo_store::{Store, TimeSource};
use servo_store_sqlite::{Config, SqliteStore};
use tempfile::TempDir;

use crate::support::{folder, raw, runtime};

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

    async fn damage(&self, store: Arc<dyn Store>, time: TimeSource, damage: &Damage) -> Option<Arc<dyn Store>> {
        store.close().await.unwrap();
        change_bytes(self.dir.path(), damage);
        Some(self.store(time))
    }
}

/// In the row of `packs` that has the event.
fn change_bytes(dir: &Path, damage: &Damage) {
    let conn = raw(dir);
    conn.execute_batch("DROP TRIGGER packs_no_update").unwrap();
    let sql = "SELECT last_position, events FROM packs WHERE run_id = ?1 AND ?2 BETWEEN first_seq AND last_seq";
    let found = conn.query_row(sql, params![damage.run_id.as_str(), damage.run_seq as i64], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let (position, mut bytes) = found.unwrap();
    let at = bytes.windows(damage.from.len()).position(|window| window == damage.from.as_bytes()).unwrap();
    bytes[at..at + damage.to.len()].copy_from_slice(damage.to.as_bytes());
    conn.execute("UPDATE packs SET events = ?1 WHERE last_position = ?2", params![bytes, position]).unwrap();
}

servo_store::conformance_tests!(Sqlite::new(None), |task| runtime().block_on(task));

#[test]
fn differential() {
    runtime().block_on(servo_store::testkit::differential::check(|| Sqlite::new(None)));
}
