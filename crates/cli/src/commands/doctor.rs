//! `servo doctor`, the part that asks a server. The binary adds what it can see of configurations and data folders.

use jiff::fmt::rfc2822;
use servo_client::Client;
use servo_model::Timestamp;
use servo_wire::v1::StoreInfo;

use crate::args::Global;
use crate::failure::Failure;
use crate::profiles;
use crate::run::{interruptible, session};
use crate::settings::Settings;
use crate::view::Check;

/// Answers have whole seconds, and take a while.
const CLOCKS_APART_SECONDS: u64 = 5;

/// Pages of a hundred functions that are looked at.
const FUNCTION_PAGES_MAX: usize = 20;

/// Names in one line.
const NAMES_SHOWN: usize = 5;

/// Looks at the server that the options name. A failure is for options that cannot be used; a server that is down is a check.
pub async fn server_checks(global: &Global) -> Result<Vec<Check>, Failure> {
    let settings = Settings::of(global)?;
    let session = session(global)?;
    let mut found = vec![settings_check(&settings)];
    found.extend(interruptible(async { Ok(checks(&session.client, session.out.line_style().now).await) }).await?);
    Ok(found)
}

/// The first question when the wrong server answers.
fn settings_check(settings: &Settings) -> Check {
    let key = settings.token.as_ref().map_or_else(|| "no key".to_owned(), |token| format!("key from {}", token.from));
    let detail = format!("server from {}, {key}", settings.server.from);
    match &settings.file {
        Some(file) if profiles::is_open_to_others(file) => {
            let file = file.display();
            Check::warn("settings", format!("{detail}; others can read {file}"), format!("`chmod 600 {file}`"))
        }
        _ => Check::ok("settings", detail),
    }
}

/// Leases and timers follow the server's clock, ages in tables this one's.
fn clock_check(date: Option<&str>, now: Timestamp) -> Option<Check> {
    let server = rfc2822::parse(date?).ok()?.timestamp().as_millisecond();
    let apart = now.as_millis().abs_diff(server) / 1_000;
    Some(if apart <= CLOCKS_APART_SECONDS {
        Check::ok("clocks", "this machine's and the server's agree")
    } else {
        Check::warn("clocks", format!("{apart} s apart"), "set both by the same time service")
    })
}

async fn checks(client: &Client, now: Timestamp) -> Vec<Check> {
    let mut checks = Vec::new();
    match client.version().await {
        Ok(version) => checks.push(version_check(client.server(), &version.version)),
        Err(error) => {
            let next = "start one with `servo dev`, or name one with --server";
            checks.push(Check::fail("server", error.to_string(), next));
            return checks;
        }
    }
    checks.extend(client.date().await.ok().and_then(|date| clock_check(date.as_deref(), now)));
    match client.readyz().await {
        Ok(readiness) if readiness.ready => checks.push(Check::ok("readiness", "the server takes work")),
        Ok(readiness) => {
            let next = "`servo runtime snapshot` has more; a server that just started needs a moment";
            checks.push(Check::fail("readiness", readiness.reasons.join("; "), next));
        }
        Err(error) => checks.push(Check::fail("readiness", error.to_string(), "look at the server's log")),
    }
    match client.alerts(Some(100)).await {
        Ok(alerts) => checks.push(match alerts.items.len() {
            0 => Check::ok("alerts", "none"),
            count => Check::warn("alerts", format!("{count} raised"), "`servo alerts` shows them"),
        }),
        Err(error) => checks.push(refused("alerts", &error)),
    }
    match client.store_info().await {
        Ok(info) => {
            checks.push(Check::ok(
                "store",
                format!("{} {}, schema {}", info.kind, info.engine_version, info.schema_version),
            ));
            checks.extend(durability_check(&info));
        }
        Err(error) => checks.push(refused("store", &error)),
    }
    match client.dead_letters(None, Some(1)).await {
        Ok(letters) if letters.items.is_empty() => checks.push(Check::ok("dead letters", "none")),
        Ok(_) => {
            let next = "`servo dead-letters list` shows them, `redrive --all` publishes them again";
            checks.push(Check::warn("dead letters", "some events could not be published", next));
        }
        Err(error) => checks.push(refused("dead letters", &error)),
    }
    checks.push(match unattended(client).await {
        Ok(names) => workers_check(&names),
        Err(error) => refused("workers", &error),
    });
    checks
}

/// Of a database server, whose settings are somebody else's.
fn durability_check(info: &StoreInfo) -> Option<Check> {
    let off = |name: &&str| info.settings.get(*name).is_some_and(|value| value == "off");
    let weak: Vec<_> = ["fsync", "full_page_writes"].into_iter().filter(off).collect();
    if info.kind != "postgres" {
        return None;
    }
    Some(if weak.is_empty() {
        Check::ok("durability", "the database syncs what it commits")
    } else {
        let next = "set it to on in postgresql.conf: as it is, a power cut can destroy the database";
        Check::fail("durability", format!("{} is off", weak.join(" and ")), next)
    })
}

/// Functions whose workers ask for work, of which none does.
async fn unattended(client: &Client) -> Result<Vec<String>, servo_client::Error> {
    let (mut names, mut after) = (Vec::new(), None::<String>);
    for _ in 0..FUNCTION_PAGES_MAX {
        let page = client.functions(after.as_deref(), Some(100)).await?;
        names.extend(page.items.iter().filter(|item| item.workers == Some(0)).map(|item| item.name.clone()));
        after = page.after.clone();
        if after.is_none() {
            break;
        }
    }
    Ok(names)
}

fn workers_check(unattended: &[String]) -> Check {
    if unattended.is_empty() {
        return Check::ok("workers", "every function that needs a worker has one");
    }
    let shown = unattended.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = unattended.len().saturating_sub(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let next = "`servo functions show NAME` says where they ask; with several nodes, look at each";
    Check::warn("workers", format!("nobody asks this node for calls of {shown}{more}"), next)
}

fn version_check(server: &str, version: &str) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    if version == own {
        Check::ok("server", format!("{server} answers, version {version}"))
    } else {
        let detail = format!("{server} has version {version}, this program {own}");
        Check::warn("server", detail, "use the same version on both sides")
    }
}

/// A key that may not look is no fault of the server.
fn refused(name: &str, error: &servo_client::Error) -> Check {
    match error.exit_code() {
        crate::exit::AUTH => Check::warn(name, "not allowed to look", "use a platform-admin key to see this too"),
        _ => Check::fail(name, error.to_string(), "look at the server's log"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::CheckStatus;

    #[test]
    fn clocks_that_differ_are_told() {
        let now = Timestamp::parse("2026-11-16T10:00:00Z").unwrap();
        let status = |date: &str| clock_check(Some(date), now).map(|check| check.status);
        assert_eq!(status("Mon, 16 Nov 2026 09:59:58 GMT"), Some(CheckStatus::Ok));
        assert_eq!(status("Mon, 16 Nov 2026 10:01:00 GMT"), Some(CheckStatus::Warn));
        assert_eq!(status("yesterday"), None);
        assert!(clock_check(None, now).is_none());
    }

    #[test]
    fn functions_without_workers_are_named_up_to_a_line() {
        assert_eq!(workers_check(&[]).status, CheckStatus::Ok);
        let names: Vec<_> = (1..=7).map(|number| format!("f{number}")).collect();
        let check = workers_check(&names);
        assert_eq!(check.status, CheckStatus::Warn);
        assert!(check.detail.ends_with("f1, f2, f3, f4, f5 and 2 more"), "{}", check.detail);
    }

    #[test]
    fn a_database_that_does_not_sync_fails() {
        let info = |kind: &str, fsync: &str| StoreInfo {
            kind: kind.to_owned(),
            engine_version: "15.14".to_owned(),
            schema_version: 8,
            single_process: false,
            size_bytes: 0,
            settings: [("fsync".to_owned(), fsync.to_owned())].into(),
        };
        let status = |kind, fsync| durability_check(&info(kind, fsync)).map(|check| check.status);
        assert_eq!(status("postgres", "off"), Some(CheckStatus::Fail));
        assert_eq!(status("postgres", "on"), Some(CheckStatus::Ok));
        assert_eq!(status("sqlite", "off"), None, "whose settings are ours");
    }
}
