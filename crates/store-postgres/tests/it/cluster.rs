//! A Postgres cluster of a test's own, with fsync on, that may be killed. `cargo xtask test` says where its programs are.
//! The suites over the real binary use this file, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const OWNER: &str = "servo_owner";

pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
}

impl Cluster {
    /// Everybody on this machine is let in.
    pub(crate) fn start() -> Self {
        let cluster = Self::make();
        cluster.ctl("start", "fast");
        cluster
    }

    /// Ready to be started, with settings that every test needs.
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a temporary folder on disk");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let cluster = Self { folder, port };
        own(cluster.folder());
        cluster.run("initdb", &["-D", text(&cluster.data()), "-U", OWNER, "-A", "trust", "--no-sync"]);
        cluster.set(&format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nfsync = on\n\
             synchronous_commit = on\nmax_connections = 60\n",
            cluster.folder().display()
        ));
        cluster
    }

    /// Adds settings, which count from the next start on.
    pub(crate) fn set(&self, settings: &str) {
        let file = self.data().join("postgresql.auto.conf");
        let known = std::fs::read_to_string(&file).expect("settings");
        std::fs::write(&file, known + settings).expect("settings");
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{}/postgres", self.port)
    }

    /// As a superuser, over the socket in the file system, where no rule of the network counts.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let options = ["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", text(self.folder()), "-p", &port];
        let output =
            Command::new(program("psql")).args(options).args(["-U", OWNER, "-d", database, "-c", sql]).output();
        let output = output.expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("utf-8").trim().to_owned()
    }

    fn run(&self, name: &str, arguments: &[&str]) {
        let mut command = match account() {
            Some(account) => {
                let mut command = Command::new("runuser");
                command.args(["-u", &account, "--"]).arg(program(name));
                command
            }
            None => Command::new(program(name)),
        };
        let log = std::fs::File::create(self.folder().join("ctl.log")).expect("a log file");
        let status = command
            .args(arguments)
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .status()
            .expect("the program runs");
        let said = std::fs::read_to_string(self.folder().join("ctl.log")).unwrap_or_default();
        assert!(status.success(), "{arguments:?}: {said}");
    }

    pub(crate) fn ctl(&self, what: &str, mode: &str) {
        let (data, log) = (self.data(), self.folder().join("server.log"));
        self.run("pg_ctl", &[what, "-D", text(&data), "-m", mode, "-w", "-t", "60", "-l", text(&log)]);
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

/// Postgres refuses to run as root; the test command names the account to use then.
fn account() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the test command sets it")]
    std::env::var("SERVO_TEST_PG_ACCOUNT").ok().filter(|name| !name.is_empty())
}

/// Gives a file or a folder to the account of the server.
pub(crate) fn own(path: &Path) {
    if let Some(account) = account() {
        let status = Command::new("chown").arg(&account).arg(path).status();
        assert!(status.is_ok_and(|status| status.success()), "chown to {account}");
    }
}

fn program(name: &str) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the test command sets it")]
    let folder = std::env::var("SERVO_TEST_PG_BIN");
    Path::new(&folder.expect("SERVO_TEST_PG_BIN is not set: run `cargo xtask test`, which finds Postgres")).join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("utf-8")
}
