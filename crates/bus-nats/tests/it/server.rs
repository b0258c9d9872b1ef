//! A NATS server of the test's own, on a port and in a folder of its own.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use servo_bus_nats::NatsBus;
use servo_runtime::Bus;
use tempfile::TempDir;

pub(crate) struct NatsServer {
    child: Child,
    port: u16,
    folder: TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the test command says where the server is")]
fn program() -> String {
    std::env::var("SERVO_TEST_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned())
}

#[expect(clippy::zombie_processes, reason = "the caller waits for it, or the test fails")]
fn spawn(port: u16, folder: &TempDir) -> Child {
    let child = Command::new(program())
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server is not installed; `cargo xtask test` installs it");
    // Level-triggered: the port answers, or the server is gone.
    for _ in 0..1_000_000 {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = stream.write_all(b"PING\r\n");
            return child;
        }
        std::thread::yield_now();
    }
    panic!("nats-server did not open its port");
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        Self { child: spawn(port, &folder), port, folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.port, &self.folder);
    }

    /// Until the bus has found the server.
    pub(crate) async fn wait_connected(&self, bus: &NatsBus) {
        while bus.publish(&[]).await.is_empty() && !bus.is_connected() {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
