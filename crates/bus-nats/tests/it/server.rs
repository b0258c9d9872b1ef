//! A NATS server of the test's own, on a port and in a folder of its own. The suite of the whole binary has it from here.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

pub(crate) struct NatsServer {
    child: Child,
    port: u16,
    folder: TempDir,
    has_streams: bool,
}

pub(crate) const CONFIGURATION: &str = "server.conf";

#[expect(clippy::disallowed_methods, reason = "the test command says where the server is")]
fn program() -> String {
    std::env::var("SERVO_TEST_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned())
}

/// Starts a server on this port, or on one that the server picks, and says on which.
fn spawn(port: Option<u16>, folder: &TempDir, has_streams: bool) -> (Child, u16) {
    let mut command = Command::new(program());
    if has_streams {
        command.arg("-js");
    }
    let configuration = folder.path().join(CONFIGURATION);
    if configuration.exists() {
        command.arg("-c").arg(configuration);
    }
    let mut child = command
        .args(["-a", "127.0.0.1", "-p", &port.map_or("-1".to_owned(), |port| port.to_string()), "-sd"])
        .arg(folder.path())
        .arg("--ports_file_dir")
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server is not installed; `cargo xtask test` installs it");
    // Level-triggered: the server writes this file once its port is open, or it is gone.
    let ports = folder.path().join(format!("nats-server_{}.ports", child.id()));
    loop {
        if let Some(port) = read_port(&ports) {
            return (child, port);
        }
        assert!(matches!(child.try_wait(), Ok(None)), "nats-server ended at its start");
        std::thread::yield_now();
    }
}

/// The port in the server's own file, once it is written completely.
fn read_port(file: &Path) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    ports["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::begin(folder, true)
    }

    /// With a configuration of the test's, which lies in the folder.
    pub(crate) fn begin(folder: TempDir, has_streams: bool) -> Self {
        let (child, port) = spawn(None, &folder, has_streams);
        Self { child, port, folder, has_streams }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the child is ours");
        self.child.wait().expect("the child is ours");
    }

    pub(crate) fn start_again(&mut self) {
        self.child = spawn(Some(self.port), &self.folder, self.has_streams).0;
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
