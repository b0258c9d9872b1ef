//! Looking at a database without changing anything in it: what a store would find there, and what its promises rest on.

use servo_store::Result;
use tokio_postgres::Client;

use crate::access::Access;
use crate::config::Config;
use crate::error::{Failure, Phase};
use crate::migrate::{SCHEMA_VERSION, SERVER_VERSION_MIN};
use crate::tasks;

/// What was found. Nobody's data is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// As the server says it, such as `15.14`.
    pub server_version: String,
    /// A version that this program works with, and an encoding that holds every text.
    pub is_supported: bool,
    /// It follows another server and takes no writes.
    pub is_standby: bool,
    /// The schema that the database has. `None` before the first start.
    pub schema_version: Option<u32>,
    /// The schema that this program brings it to.
    pub schema_known: u32,
    /// Protocol and cipher of the connection; `None` if it is in the clear.
    pub encryption: Option<String>,
    /// Whether the server's certificate was checked against roots.
    pub is_verified: bool,
    /// The connection does not leave this machine.
    pub is_local: bool,
    /// Settings without which an acknowledged write may be lost, that are off.
    pub unsafe_settings: Vec<String>,
    /// The two roles are there, or the user may make them.
    pub has_roles: bool,
}

const SERVER: &str = "SELECT current_setting('server_version') AS version,
        current_setting('server_version_num')::int AS number, current_setting('server_encoding') AS encoding,
        pg_is_in_recovery() AS standby, to_regclass('servo.schema_migrations') IS NOT NULL AS migrated,
        COALESCE(host(inet_server_addr()) = '::1' OR inet_server_addr() <<= '127.0.0.0/8', true) AS local,
        (SELECT version || ', ' || cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS encryption,
        ARRAY(SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY 1)
            AS unsafe,
        (SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user)
            OR (SELECT count(*) = 2 FROM pg_roles WHERE rolname IN ('servo_app', 'servo_engine')) AS roles";

const SCHEMA: &str = "SELECT max(version) FROM servo.schema_migrations";

/// Connects as the store would and looks. Fails only if it cannot connect.
pub async fn inspect(config: &Config) -> Result<Inspection> {
    let access = Access::new(config)?;
    let (client, connection) = access.connect().await?;
    let connection = tasks::spawn(async move {
        // The client's calls report what happens to the connection.
        let _ = connection.await;
    });
    let looked = tokio::time::timeout(config.statement_timeout, look(&client, access.tls.verifies())).await;
    drop(client);
    let _ = connection.await;
    looked.unwrap_or_else(|_| Err(Failure::Timeout.into_error(Phase::Open)))
}

async fn look(client: &Client, verifies: bool) -> Result<Inspection> {
    let open = |error: tokio_postgres::Error| Failure::from(error).into_error(Phase::Open);
    let server = client.query_one(SERVER, &[]).await.map_err(open)?;
    let schema_version = if server.get("migrated") {
        let newest: Option<i32> = client.query_one(SCHEMA, &[]).await.map_err(open)?.get(0);
        newest.and_then(|newest| u32::try_from(newest).ok())
    } else {
        None
    };
    let encryption: Option<String> = server.get("encryption");
    Ok(Inspection {
        server_version: server.get("version"),
        is_supported: server.get::<_, i32>("number") >= SERVER_VERSION_MIN
            && server.get::<_, &str>("encoding") == "UTF8",
        is_standby: server.get("standby"),
        schema_version,
        schema_known: SCHEMA_VERSION,
        is_verified: encryption.is_some() && verifies,
        encryption,
        is_local: server.get("local"),
        unsafe_settings: server.get("unsafe"),
        has_roles: server.get("roles"),
    })
}
