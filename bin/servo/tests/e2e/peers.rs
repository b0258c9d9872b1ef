//! AWS's own clients and SDKs against the binary, unmodified: they are told an address and keys, and nothing else. Beside them
//! the published example of the Rust SDK.
//!
//! `bin/servo/tests/peers` has what runs on their side, and the pins of their versions; the test command installs them.

mod approval;
mod described;
mod guide;
mod handlers;
mod javascript;
mod local_runner;
mod published;
mod push;
mod service;
mod workers;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::variable;

/// Any will do on a development server.
const DUMMY: Keys<'static> = Keys { id: "dummy", secret: "dummy" };

#[derive(Clone, Copy)]
struct Keys<'a> {
    id: &'a str,
    secret: &'a str,
}

/// A process on AWS's side. Killed when dropped.
struct Peer(Child);

impl Peer {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the peer starts"))
    }

    /// As `kill -9`.
    fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// Python with AWS's packages, configured as on a machine that knows only this server.
fn python(api: &str, keys: Keys<'_>) -> Command {
    let mut command = Command::new(variable("SERVO_TEST_PYTHON"));
    command.env("PYTHONPATH", file("")).env("PYTHONDONTWRITEBYTECODE", "1");
    at(&mut command, api, keys);
    command
}

fn at(command: &mut Command, api: &str, keys: Keys<'_>) {
    command.env("AWS_ENDPOINT_URL_LAMBDA", api).env("AWS_REGION", "us-east-1").env("AWS_DEFAULT_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", keys.id).env("AWS_SECRET_ACCESS_KEY", keys.secret);
    // Nobody's own settings, proxies or machine roles.
    command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
}

/// A socket that a handler's server takes over as its standard input, and where it is.
fn socket() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}"))
}

fn handed_over(listener: &TcpListener) -> Stdio {
    OwnedFd::from(listener.try_clone().expect("a second handle")).into()
}

/// Runs one scenario of `drive.py` to its end.
async fn drive(scenario: &str, folder: &Path, api: &str, keys: Keys<'_>) {
    let mut command = python(api, keys);
    command.arg(file("drive.py")).arg(scenario).arg(folder);
    let output = tokio::process::Command::from(command).kill_on_drop(true).output();
    let output = tokio::time::timeout(crate::support::PATIENCE, output).await.expect("in time").expect("it runs");
    assert!(output.status.success(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
}
