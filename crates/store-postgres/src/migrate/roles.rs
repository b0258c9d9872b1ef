//! The two roles that connections take. Roles belong to the whole cluster, where other databases may be making the same
//! ones at this moment.

use servo_store::{Error, Result};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::open;
use crate::error::corrupt;

const ROLES: [&str; 2] = ["servo_app", "servo_engine"];

/// Two sessions that change the same row of the cluster's catalog get in each other's way, and the loser tries again.
const ATTEMPTS_MAX: u32 = 20;

/// Makes what is missing, lets this user take the roles, and refuses roles that row security would not hold back.
pub(super) async fn ensure(client: &Client) -> Result<()> {
    for role in ROLES {
        let exists = "SELECT FROM pg_roles WHERE rolname = $1";
        if client.query_opt(exists, &[&role]).await.map_err(open)?.is_none() {
            contended(client, &format!("CREATE ROLE {role} NOLOGIN NOBYPASSRLS NOSUPERUSER NOCREATEDB NOCREATEROLE"))
                .await?;
        }
        // Not only a member: newer servers make the creator of a role a member who may neither act as it nor use its rights.
        let may_take = "SELECT pg_has_role(current_user, $1::text::name, 'USAGE')";
        if !client.query_one(may_take, &[&role]).await.map_err(open)?.get::<_, bool>(0) {
            contended(client, &format!("GRANT {role} TO CURRENT_USER")).await?;
        }
        let unbound = "SELECT FROM pg_roles WHERE rolname = $1 AND (rolsuper OR rolbypassrls)";
        if client.query_opt(unbound, &[&role]).await.map_err(open)?.is_some() {
            return Err(corrupt(&format!("role {role} is exempt from row security")));
        }
    }
    // An app connection must not be able to act as the engine.
    let mixed = "SELECT pg_has_role('servo_app', 'servo_engine', 'MEMBER')";
    if client.query_one(mixed, &[]).await.map_err(open)?.get::<_, bool>(0) {
        return Err(corrupt("role servo_app may act as servo_engine"));
    }
    Ok(())
}

async fn contended(client: &Client, sql: &str) -> Result<()> {
    for _ in 0..ATTEMPTS_MAX {
        let Err(error) = client.batch_execute(sql).await else { return Ok(()) };
        let Some(state) = error.code() else { return Err(open(error)) };
        // The second is how two CREATE ROLE at once can end; the third says `tuple concurrently updated`.
        if *state == SqlState::DUPLICATE_OBJECT || *state == SqlState::UNIQUE_VIOLATION {
            return Ok(());
        }
        if *state == SqlState::INSUFFICIENT_PRIVILEGE {
            return Err(corrupt(
                "the database user may not create the roles servo_app and servo_engine (needs CREATEROLE)",
            ));
        }
        if *state != SqlState::INTERNAL_ERROR {
            return Err(open(error));
        }
    }
    Err(Error::Unavailable { detail: "the roles are being changed by others".to_owned(), maybe_written: false })
}
