//! A server whose push functions are served by AWS's Python SDK.

use std::net::TcpListener;

use serde_json::json;
use tempfile::TempDir;

use super::service::Service;
use super::{DUMMY, Keys, Peer, file, handed_over, python, socket};
use crate::support::process::Servo;

const FUNCTIONS: [&str; 8] = ["order", "fan", "approval", "parent", "flaky", "broken", "gated", "large"];

pub(super) struct Pushed {
    pub(super) folder: TempDir,
    pub(super) service: Service,
    listener: TcpListener,
    peer: Option<Peer>,
    _servo: Servo,
}

impl Pushed {
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
        let service = Service::at(&servo.url);
        Self::over(folder, servo, service, DUMMY).await
    }

    pub(super) async fn over(folder: TempDir, servo: Servo, service: Service, keys: Keys<'_>) -> Self {
        let (listener, url) = socket();
        let mut pushed = Self { folder, service, listener, peer: None, _servo: servo };
        pushed.serve(keys);
        for function in FUNCTIONS {
            pushed.service.register(function, &json!({"kind": "push", "url": url})).await;
        }
        pushed
    }

    pub(super) fn serve(&mut self, keys: Keys<'_>) {
        let mut command = python(&self.service.api, keys);
        command.arg(file("push.py")).stdin(handed_over(&self.listener));
        self.peer = Some(Peer::start(&mut command));
    }

    /// Kills the process of the handlers with everything it is doing.
    pub(super) fn kill_handlers(&mut self) {
        self.peer.take().expect("it runs").kill();
    }
}
