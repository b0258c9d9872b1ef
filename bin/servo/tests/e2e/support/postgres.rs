//! Postgres for the suites: a database on a server, and a configuration that uses it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::variable;

/// Short, so that a pause can outlast it.
pub(crate) const LEASE_MS: u64 = 600;

pub(crate) fn psql(url: &str, sql: &str) {
    let program = Path::new(&variable("SERVO_TEST_PG_BIN")).join("psql");
    let output =
        Command::new(program).args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, url]).output().expect("psql runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A database of its own, and a configuration that uses it.
pub(crate) fn configuration(folder: &Path, admin_url: &str, name: &str) -> PathBuf {
    psql(admin_url, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    psql(admin_url, &format!("CREATE DATABASE {name}"));
    let (base, _) = admin_url.rsplit_once('/').expect("the URL names a database");
    let path = folder.join("servo.toml");
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"postgres\"\nurl = \"{base}/{name}\"\n\
         [engines]\nmock = true\n[runtime]\npoll_ms = 50\n[runtime.authority]\nlease_ms = {LEASE_MS}\n"
    );
    std::fs::write(&path, text).expect("a configuration file");
    path
}
