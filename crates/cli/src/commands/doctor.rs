//! `servo doctor`, the part that asks a server. The binary adds what it can see of configurations and data folders.

use servo_client::Client;

use crate::args::Global;
use crate::failure::Failure;
use crate::run::{interruptible, session};
use crate::view::Check;

/// Looks at the server that the options name. A failure is for options that cannot be used; a server that is down is a check.
pub async fn server_checks(global: &Global) -> Result<Vec<Check>, Failure> {
    let session = session(global)?;
    interruptible(async { Ok(checks(&session.client).await) }).await
}

async fn checks(client: &Client) -> Vec<Check> {
    let mut checks = Vec::new();
    match client.version().await {
        Ok(version) => checks.push(version_check(client.server(), &version.version)),
        Err(error) => {
            let next = "start one with `servo dev`, or name one with --server";
            checks.push(Check::fail("server", error.to_string(), next));
            return checks;
        }
    }
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
    checks
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
