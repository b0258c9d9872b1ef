//! Which database a test's server is on. A suite that is listed in [`on_every_store`] runs once on each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use servo_canon::Digest;
use servo_model::limits::Limits;
use servo_store::mem::MemStore;
use servo_store::{Store, TimeSource};
use servo_store_postgres::{Config, PostgresStore};
use servo_store_sqlite::SqliteStore;
use tokio_postgres::NoTls;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Backend {
    Memory,
    Sqlite,
    Postgres,
}

tokio::task_local! {
    static BACKEND: Backend;
}

impl Backend {
    /// Runs a test whose servers are on this database.
    pub(crate) async fn run(self, test: impl Future<Output = ()>) {
        BACKEND.scope(self, test).await;
    }

    /// What the running test is on; the memory store unless somebody said otherwise.
    pub(crate) fn here() -> Self {
        BACKEND.try_with(|backend| *backend).unwrap_or(Backend::Memory)
    }

    pub(crate) async fn open(self, limits: Limits, time: TimeSource) -> Arc<dyn Store> {
        match self {
            Backend::Memory => Arc::new(MemStore::new(time, limits, [7; 32])),
            Backend::Sqlite => Arc::new(SqliteStore::ephemeral(limits, time).unwrap()),
            Backend::Postgres => {
                // Few connections: many tests run at once.
                let config = Config {
                    limits,
                    time: Some(time),
                    tenant_connections: 3,
                    engine_connections: 2,
                    ..Config::new(database().await)
                };
                Arc::new(PostgresStore::connect(config).await.unwrap())
            }
        }
    }
}

/// The name of the running test.
fn test_name() -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        // A single test runs on the main thread and is named in full on the command line.
        _ => std::env::args().rfind(|arg| !arg.starts_with('-')).unwrap(),
    }
}

/// An empty database for one server of this test. An earlier test's of the same name is dropped only now, so that it can be
/// looked at.
async fn database() -> String {
    static SERVERS: AtomicUsize = AtomicUsize::new(0);
    #[expect(clippy::disallowed_methods, reason = "the address of the server comes from whoever started it")]
    let base = std::env::var("SERVO_TEST_POSTGRES_URL");
    let base = base.expect("SERVO_TEST_POSTGRES_URL is not set: run `cargo xtask with -- cargo nextest run`");
    let (client, connection) = tokio_postgres::connect(&base, NoTls).await.unwrap();
    let number = SERVERS.fetch_add(1, Ordering::SeqCst);
    let digest = Digest::of(format!("{}|{number}", test_name()).as_bytes()).to_string();
    let name = format!("servo_server_{}", &digest[..16]);
    let make = async {
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    };
    tokio::select! {
        () = make => {}
        ended = connection => panic!("Postgres hung up: {ended:?}"),
    }
    let (server, _) = base.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

/// Makes tests of functions: each on every database.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {
        crate::backend::on_every_store!(memory Memory $($test)+);
        crate::backend::on_every_store!(sqlite Sqlite $($test)+);
        crate::backend::on_every_store!(postgres Postgres $($test)+);
    };
    ($name:ident $backend:ident $($test:ident)+) => {
        mod $name {
            $(#[tokio::test]
            async fn $test() {
                crate::backend::Backend::$backend.run(super::$test()).await;
            })+
        }
    };
}
pub(crate) use on_every_store;
