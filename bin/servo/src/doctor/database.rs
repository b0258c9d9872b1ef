//! What `servo doctor` says of a configured Postgres. It looks as the server would, and changes nothing: no migration is run.

use servo_cli::view::Check;
use servo_store_postgres::{Config, Inspection, inspect};

pub(super) async fn checks(url: &str) -> Vec<Check> {
    match inspect(&Config::new(url)).await {
        Ok(found) => vec![server(&found), schema(&found), roles(&found), encryption(&found), durability(&found)],
        Err(error) => {
            let next = "the message says what to change in [store] url, or on the database server";
            vec![Check::fail("database", error.to_string(), next)]
        }
    }
}

fn server(found: &Inspection) -> Check {
    let version = format!("postgres {}", found.server_version);
    if !found.is_supported {
        return Check::fail("database", version, "use PostgreSQL 15 or newer, with a database whose encoding is UTF8");
    }
    if found.is_standby {
        let next = "name the primary in [store] url: a standby takes no writes";
        return Check::fail("database", format!("{version}, a standby"), next);
    }
    Check::ok("database", version)
}

fn schema(found: &Inspection) -> Check {
    let known = found.schema_known;
    match found.schema_version {
        None => Check::ok("schema", format!("none yet; the first start makes version {known}")),
        Some(version) if version == known => Check::ok("schema", format!("version {version}")),
        Some(version) if version < known => {
            let next = "make a backup first; docs/guides/upgrading.md has the order";
            Check::warn("schema", format!("version {version}; the next start migrates it to {known}"), next)
        }
        Some(version) => {
            let detail = format!("version {version}; this program knows up to {known}");
            Check::fail("schema", detail, "start the version that wrote it, or a newer one")
        }
    }
}

fn roles(found: &Inspection) -> Check {
    if found.has_roles {
        return Check::ok("roles", "servo_app and servo_engine are there, or can be made");
    }
    let next = "give the user CREATEROLE, or make both roles and grant them to it";
    Check::fail("roles", "servo_app and servo_engine are missing, and the user may not make them", next)
}

/// On one machine there is nobody in between.
fn encryption(found: &Inspection) -> Check {
    match &found.encryption {
        Some(how) if found.is_verified => Check::ok("encryption", format!("{how}, the certificate is verified")),
        Some(how) if found.is_local => Check::ok("encryption", how.as_str()),
        Some(how) => {
            let next = "say sslmode=verify-full in [store] url, and sslrootcert if the system does not know its signer";
            Check::warn("encryption", format!("{how}, but nothing says that it is this database"), next)
        }
        None if found.is_local => Check::ok("encryption", "none, and the connection stays on this machine"),
        None => {
            let next = "set ssl = on in the database and say sslmode=verify-full in [store] url";
            Check::warn("encryption", "none: the network can see and change everything", next)
        }
    }
}

fn durability(found: &Inspection) -> Check {
    if found.unsafe_settings.is_empty() {
        return Check::ok("durability", "the database syncs what it commits");
    }
    let off = found.unsafe_settings.join(" and ");
    let next = "set it to on in postgresql.conf: as it is, a power cut can destroy the database";
    Check::fail("durability", format!("{off} is off"), next)
}

#[cfg(test)]
mod tests {
    use servo_cli::view::CheckStatus::{Fail, Ok, Warn};

    use super::*;

    fn found() -> Inspection {
        Inspection {
            server_version: "15.14".to_owned(),
            is_supported: true,
            is_standby: false,
            schema_version: Some(8),
            schema_known: 8,
            encryption: Some("TLSv1.3".to_owned()),
            is_verified: true,
            is_local: false,
            unsafe_settings: Vec::new(),
            has_roles: true,
        }
    }

    #[test]
    fn each_finding_has_its_weight() {
        let good = found();
        for check in [server(&good), schema(&good), roles(&good), encryption(&good), durability(&good)] {
            assert_eq!((check.status, check.next), (Ok, None), "{}", check.name);
        }
        for (schema_version, status) in [(None, Ok), (Some(7), Warn), (Some(9), Fail)] {
            assert_eq!(schema(&Inspection { schema_version, ..found() }).status, status, "{schema_version:?}");
        }
        let plain = || Inspection { encryption: None, is_verified: false, ..found() };
        for (found, status) in [
            (Inspection { is_verified: false, ..found() }, Warn),
            (plain(), Warn),
            (Inspection { is_local: true, ..plain() }, Ok),
        ] {
            assert_eq!(encryption(&found).status, status, "{found:?}");
        }
        let unsafe_settings = vec!["fsync".to_owned()];
        assert_eq!(durability(&Inspection { unsafe_settings, ..found() }).status, Fail);
        assert_eq!(server(&Inspection { is_standby: true, ..found() }).status, Fail);
        assert_eq!(server(&Inspection { is_supported: false, ..found() }).status, Fail);
        assert_eq!(roles(&Inspection { has_roles: false, ..found() }).status, Fail);
    }
}
