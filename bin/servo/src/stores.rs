//! Choosing and opening a store, and saying clearly why one does not open.

use std::path::Path;
use std::sync::Arc;

use servo_cli::{Failure, exit};
use servo_model::limits::Limits;
use servo_model::{Timestamp, codes};
use servo_runtime::{Clock, SystemClock};
use servo_server::config::StoreConfig;
use servo_store::admin::Condition;
use servo_store::{Store, TimeSource};
use servo_store_postgres::PostgresStore;
use servo_store_sqlite::SqliteStore;
use tokio::sync::watch;

use crate::sabotage;

/// An open store, and hints of what other processes do to it, where there can be others.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hints: Option<Hints>,
    /// How a store in a file stands.
    pub(crate) condition: Option<watch::Receiver<Condition>>,
}

pub(crate) struct Hints {
    /// Something was appended.
    pub(crate) wrote: watch::Receiver<u64>,
    /// The authority was given up.
    pub(crate) freed: watch::Receiver<u64>,
}

/// A database server has a clock of its own; a file goes by ours.
pub(crate) async fn open(config: &StoreConfig, limits: &Limits, clock: &Arc<dyn Clock>) -> Result<Opened, Failure> {
    match config {
        StoreConfig::Sqlite { path } => {
            let clock = clock.clone();
            let time: TimeSource = Arc::new(move || clock.now());
            let store = sqlite(path, limits, time)?;
            let condition = Some(store.watch());
            Ok(Opened { store: Arc::new(store), hints: None, condition })
        }
        StoreConfig::Postgres { url } => {
            if let Some(words) = servo_store_postgres::exposure(url) {
                tracing::warn!("{words}: say sslmode=verify-full in [store] url");
            }
            let mut config = servo_store_postgres::Config::new(url);
            config.limits = limits.clone();
            config.sabotage = sabotage::variant();
            let store = PostgresStore::connect(config).await.map_err(|error| refused("the database", error))?;
            let hints = Some(Hints { wrote: store.subscribe(), freed: store.subscribe_freed() });
            Ok(Opened { store: Arc::new(store), hints, condition: None })
        }
    }
}

pub(crate) fn sqlite(path: &Path, limits: &Limits, time: TimeSource) -> Result<SqliteStore, Failure> {
    let mut config = servo_store_sqlite::Config::new(path, time);
    config.limits = limits.clone();
    sabotage::weaken(&mut config);
    SqliteStore::open(config).map_err(|error| refused(&path.display().to_string(), error))
}

/// A store that crashed, without what its redo files lack.
pub(crate) fn accepting_loss(path: &Path) -> Result<SqliteStore, Failure> {
    check_existing(path)?;
    let mut config = servo_store_sqlite::Config::new(path, system_time());
    config.accept_loss = true;
    SqliteStore::open(config).map_err(|error| refused(&path.display().to_string(), error))
}

/// A folder that must hold a store already: looking must not make one.
pub(crate) fn existing(path: &Path, at: Option<Timestamp>) -> Result<SqliteStore, Failure> {
    check_existing(path)?;
    made(path, at)
}

fn check_existing(path: &Path) -> Result<(), Failure> {
    if path.join(servo_store_sqlite::DATABASE_FILE).exists() {
        return Ok(());
    }
    let what = format!("{} holds no store", path.display());
    Err(Failure::new(exit::NOT_FOUND, what).hint("name the data folder of a server, such as ./.servo"))
}

/// A store, made if need be, at the clock's time or another.
pub(crate) fn made(path: &Path, at: Option<Timestamp>) -> Result<SqliteStore, Failure> {
    let time: TimeSource = match at {
        Some(at) => Arc::new(move || at),
        None => system_time(),
    };
    sqlite(path, &Limits::default(), time)
}

pub(crate) fn system_time() -> TimeSource {
    Arc::new(|| SystemClock.now())
}

/// A store's error as a person should read it.
pub(crate) fn refused(place: &str, error: servo_store::Error) -> Failure {
    let error = servo_runtime::Error::from(error);
    let hint = match error.code() {
        code if code == codes::STORE_IN_USE => "stop that process, or use another folder",
        code if code == codes::STORE_TOO_NEW => "start the version that wrote it, or a newer one",
        code if code == codes::STORE_CORRUPT => {
            "keep a copy of the folder; `servo store restore` puts a backup into an empty one"
        }
        code if code == codes::STORE_FULL => "free some space and start again; nothing acknowledged is lost",
        _ => "docs/operate.md says what a store needs",
    };
    Failure::code(error.code(), format!("{place}: {error}")).hint(hint)
}
