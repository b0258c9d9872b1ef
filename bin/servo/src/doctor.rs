//! `servo doctor`: looks at a server, a configuration with its database, or a data folder, and says what is wrong and what to
//! do.

mod database;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use servo_cli::args::DoctorArgs;
use servo_cli::view::{Check, CheckStatus, Diagnosis};
use servo_cli::{Failure, Global, Out, doctor, exit};
use servo_runtime::verify::verify;
use servo_runtime::{Clock as _, SystemClock};
use servo_server::config::StoreConfig;
use servo_store::AdminStore as _;

use crate::{config, stores};

/// 2025-01-01: a clock before this is not set.
const EARLIEST_MS: i64 = 1_735_689_600_000;

pub(crate) async fn run(args: DoctorArgs, global: &Global, out: &Out) -> Result<u8, Failure> {
    let mut checks = vec![clock()];
    if let Some(path) = &args.config {
        match config::load(Some(path)) {
            Ok(config) => {
                checks.push(Check::ok("configuration", format!("{} is good", path.display())));
                checks.push(port(config.server.bind));
                if let StoreConfig::Postgres { url } = &config.store {
                    checks.extend(database::checks(url).await);
                }
            }
            Err(failure) => {
                checks.push(Check::fail("configuration", failure.to_string(), "`servo config check` says the same"));
            }
        }
    }
    match &args.data_dir {
        Some(data_dir) => folder(data_dir, &mut checks).await,
        None => checks.extend(doctor::server_checks(global).await?),
    }
    let failed = checks.iter().any(|check| check.status == CheckStatus::Fail);
    out.print(&Diagnosis { checks })?;
    Ok(if failed { exit::ERROR } else { exit::OK })
}

fn clock() -> Check {
    let now = SystemClock.now();
    if now.as_millis() < EARLIEST_MS {
        return Check::fail("clock", format!("it is {now}"), "set the system's clock; leases and timers depend on it");
    }
    Check::ok("clock", now.to_string())
}

/// Taken is only a warning: the server that the configuration is for may be running.
fn port(bind: SocketAddr) -> Check {
    match TcpListener::bind(bind) {
        Ok(_) => Check::ok("port", format!("{bind} is free")),
        Err(error) => {
            Check::warn("port", format!("{bind}: {error}"), "unless it is this server, choose another in [server] bind")
        }
    }
}

async fn folder(data_dir: &Path, checks: &mut Vec<Check>) {
    let store = match stores::existing(data_dir, None) {
        Ok(store) => store,
        Err(failure) => {
            let next = match failure.exit {
                exit::CONFLICT => "a running server has it: `servo doctor` without --data-dir asks that one",
                _ => "docs/operate.md has the usual reasons",
            };
            checks.push(Check::fail("store", failure.to_string(), next));
            return;
        }
    };
    match store.info().await {
        Ok(info) => {
            let what = format!("{} {}, schema {}", info.kind, info.engine_version, info.schema_version);
            checks.push(Check::ok("store", what));
            let settings: Vec<_> = info.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            checks.push(Check::ok("settings", settings.join(", ")));
        }
        Err(error) => checks.push(Check::fail("store", error.to_string(), "look at the folder's rights")),
    }
    let restore = "restore the last backup into an empty folder; keep this one";
    checks.push(match store.integrity().await {
        Ok(found) if found.problems.is_empty() => Check::ok("integrity", "the database found nothing wrong"),
        Ok(found) => Check::fail("integrity", found.problems.join("; "), restore),
        Err(error) => Check::fail("integrity", error.to_string(), restore),
    });
    checks.push(match verify(&store, |_| {}).await {
        Ok(report) if report.findings.is_empty() => {
            Check::ok("runs", format!("{} runs agree with their {} events", report.runs, report.events))
        }
        Ok(report) => {
            let what = format!("{} of {} runs do not agree with their events", report.findings.len(), report.runs);
            Check::fail("runs", what, "`servo store verify` lists them; a replay from cursor-0 repairs rows")
        }
        Err(error) => Check::fail("runs", error.to_string(), restore),
    });
    // Nothing was written; the lock goes with the process in any case.
    let _ = store.close().await;
}
