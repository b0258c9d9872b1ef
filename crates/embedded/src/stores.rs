//! Choosing and opening the store.

use std::path::PathBuf;
use std::sync::Arc;

use servo_model::limits::Limits;
use servo_runtime::{Clock as _, SystemClock};
use servo_store::mem::MemStore;
use servo_store::{Store, TimeSource};
use servo_store_postgres::PostgresStore;
use servo_store_sqlite::SqliteStore;
use tokio::sync::watch;

use crate::error::Error;

#[derive(Clone)]
pub(crate) enum Choice {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
}

/// An open store, and hints of what other programs append to it, where there can be others.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) place: String,
    pub(crate) hints: Option<watch::Receiver<u64>>,
}

pub(crate) async fn open(choice: &Choice, limits: &Limits) -> Result<Opened, Error> {
    let time: TimeSource = Arc::new(|| SystemClock.now());
    match choice {
        Choice::Memory => {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(|error| {
                Error::Builder(format!("the operating system gives no random numbers ({error}); try again"))
            })?;
            let store = Arc::new(MemStore::new(time, limits.clone(), secret));
            Ok(Opened { store, place: "memory".to_owned(), hints: None })
        }
        Choice::Sqlite(folder) => {
            let place = folder.display().to_string();
            let mut config = servo_store_sqlite::Config::new(folder, time);
            config.limits = limits.clone();
            let store = SqliteStore::open(config).map_err(|error| Error::store(&place, error))?;
            Ok(Opened { store: Arc::new(store), place, hints: None })
        }
        Choice::Postgres(url) => {
            // The address holds a password, so errors do not show it.
            let place = "the database".to_owned();
            let mut config = servo_store_postgres::Config::new(url);
            config.limits = limits.clone();
            let store = PostgresStore::connect(config).await.map_err(|error| Error::store(&place, error))?;
            let hints = Some(store.subscribe());
            Ok(Opened { store: Arc::new(store), place, hints })
        }
    }
}
