//! A database per test, cloned from one that is migrated already. The last test's is dropped when the name is used again,
//! so a failed test leaves its database to be looked at.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use servo_canon::Digest;
use servo_store::testkit::clock::ManualClock;
use servo_store_postgres::{Config, PostgresStore};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// Any number: held in the base database by whoever makes the template.
const TEMPLATE_LOCK: i64 = 7_310_001;

/// Far longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// One per process, for all threads of a test.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// Runs a test that waits for conditions: should one never come true, it fails.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let bounded = async { tokio::time::timeout(PATIENCE, test).await };
    runtime().block_on(bounded).expect("the test comes to its end");
}

#[expect(clippy::disallowed_methods, reason = "tests have no runtime::tasks")]
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// The name of the running test.
pub(crate) fn test_name() -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        // A single test runs on the main thread and is named in full on the command line.
        _ => std::env::args().rfind(|arg| !arg.starts_with('-')).expect("a test's name"),
    }
}

/// The database that the servers' owner was given.
pub(crate) fn base_url() -> String {
    #[expect(clippy::disallowed_methods, reason = "the address of the server comes from whoever started it")]
    let url = std::env::var("SERVO_TEST_POSTGRES_URL");
    url.expect("SERVO_TEST_POSTGRES_URL is not set: run `cargo xtask test`, which starts Postgres")
}

/// The same server, another database.
pub(crate) fn url_of(database: &str) -> String {
    let base = base_url();
    let (server, _) = base.rsplit_once('/').expect("the URL ends with a database");
    format!("{server}/{database}")
}

/// A connection as the owner, without the store's roles and settings.
pub(crate) async fn owner(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("Postgres answers");
    spawn(async move {
        let _ = connection.await;
    });
    client
}

/// An empty database without a schema.
pub(crate) async fn bare_database(name: &str) -> String {
    let admin = owner(&base_url()).await;
    drop_database(&admin, name).await;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    url_of(name)
}

/// A migrated database for this test alone.
pub(crate) async fn database() -> String {
    named_database(&test_name()).await
}

pub(crate) async fn named_database(test: &str) -> String {
    let admin = owner(&base_url()).await;
    let template = template(&admin).await;
    let name = format!("servo_it_{}", &Digest::of(test.as_bytes()).to_string()[..16]);
    drop_database(&admin, &name).await;
    admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await.unwrap();
    url_of(&name)
}

async fn drop_database(admin: &Client, name: &str) {
    admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
}

async fn template(admin: &Client) -> String {
    let schema = Digest::of(include_bytes!("../../migrations/0001_initial.sql")).to_string();
    let name = format!("servo_it_template_{}", &schema[..16]);
    admin.batch_execute(&format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})")).await.unwrap();
    let made = admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name]).await.unwrap();
    if made.is_none() {
        let draft = format!("{name}_draft");
        let url = bare_database(&draft).await;
        let store = PostgresStore::connect(config(&url)).await.unwrap();
        servo_store::AdminStore::close(&store).await.unwrap();
        drop(store);
        // It is a template once it has the name, and it can have the name once nobody is connected.
        let rename = format!("ALTER DATABASE {draft} RENAME TO {name}");
        while admin.batch_execute(&rename).await.is_err() {
            let busy = admin.query("SELECT FROM pg_stat_activity WHERE datname = $1", &[&draft]).await.unwrap();
            assert!(busy.len() < 20, "nobody else uses the template");
        }
    }
    admin.batch_execute(&format!("SELECT pg_advisory_unlock({TEMPLATE_LOCK})")).await.unwrap();
    name
}

/// Few connections: many tests run at once.
pub(crate) fn config(url: &str) -> Config {
    let mut config = Config::new(url);
    config.tenant_connections = 3;
    config.engine_connections = 2;
    config.hints = false;
    config
}

pub(crate) async fn connect(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::connect(config(url)).await.unwrap())
}

/// A store whose clock the test moves.
pub(crate) async fn connect_at(url: &str, clock: &ManualClock) -> Arc<PostgresStore> {
    let mut config = config(url);
    config.time = Some(clock.time_source());
    Arc::new(PostgresStore::connect(config).await.unwrap())
}
