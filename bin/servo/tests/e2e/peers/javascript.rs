//! A push function on AWS's JavaScript SDK.

use std::process::Command;

use serde_json::json;

use super::service::{Service, marks};
use super::{DUMMY, Peer, at, file, handed_over, socket};
use crate::support::process::Servo;
use crate::support::variable;

/// DX-094: step, wait and map of AWS's JavaScript SDK, each step run once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_javascript_handler_runs_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
    let service = Service::at(&servo.url);
    let (listener, url) = socket();
    let mut command = Command::new(variable("SERVO_TEST_NODE"));
    at(&mut command, &servo.url, DUMMY);
    command.arg(file("handler.mjs")).env("PACKAGES", variable("SERVO_TEST_NODE_DIR")).stdin(handed_over(&listener));
    let _handler = Peer::start(&mut command);
    service.register("order", &json!({"kind": "push", "url": url})).await;
    let path = folder.path().join("marks");
    let arn = service.start("order", &json!({"marks": path, "items": [1, 2, 3]})).await;
    let expected = json!({"steps": ["reserve", "charge"], "squares": [1, 4, 9]});
    assert_eq!(service.result(&arn).await, expected);
    assert_eq!(marks(&path), ["reserve", "charge"]);
}
