//! Postgres for the suites: a database on the server of the test command, or a cluster of a test's own.

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

/// A cluster of the test's own, with fsync on, that may be killed.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a temporary folder on disk");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let cluster = Self { folder, port };
        cluster.give_away();
        cluster.run(
            "initdb",
            &["-D", cluster.data().to_str().expect("utf-8"), "-U", "servo_owner", "-A", "trust", "--no-sync"],
        );
        let settings = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nfsync = on\n\
             synchronous_commit = on\nmax_connections = 60\n",
            cluster.folder.path().display()
        );
        let file = cluster.data().join("postgresql.auto.conf");
        std::fs::write(&file, settings).expect("settings");
        cluster.ctl("start", "fast");
        cluster
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://servo_owner@127.0.0.1:{}/postgres", self.port)
    }

    /// Postgres refuses to run as root; the test command names the account to use then.
    fn account() -> Option<String> {
        #[expect(clippy::disallowed_methods, reason = "the test command sets it")]
        std::env::var("SERVO_TEST_PG_ACCOUNT").ok().filter(|name| !name.is_empty())
    }

    fn give_away(&self) {
        if let Some(account) = Self::account() {
            let status = Command::new("chown").arg(&account).arg(self.folder.path()).status();
            assert!(status.is_ok_and(|status| status.success()), "chown to {account}");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = Path::new(&variable("SERVO_TEST_PG_BIN")).join(program);
        let mut command = match Self::account() {
            Some(account) => {
                let mut command = Command::new("runuser");
                command.args(["-u", &account, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let log = std::fs::File::create(self.folder.path().join("ctl.log")).expect("a log file");
        let status = command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .status()
            .expect("the program runs");
        let said = std::fs::read_to_string(self.folder.path().join("ctl.log")).unwrap_or_default();
        assert!(status.success(), "{arguments:?}: {said}");
    }

    pub(crate) fn ctl(&self, what: &str, mode: &str) {
        let (data, log) = (self.data(), self.folder.path().join("server.log"));
        let (data, log) = (data.to_str().expect("utf-8"), log.to_str().expect("utf-8"));
        self.run("pg_ctl", &[what, "-D", data, "-m", mode, "-w", "-t", "60", "-l", log]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ctl("stop", "immediate");
            return;
        }
        // Already failing: stop what we started and leave the message to the test.
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(pid) = pid.lines().next() {
            let _ = Command::new("kill").args(["-QUIT", pid.trim()]).status();
        }
    }
}
