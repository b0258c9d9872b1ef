//! Pull functions: `awslambdaric`, AWS's own runtime client for Python, as worker, started by the server or by hand.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::service::{Service, marks};
use super::{DUMMY, Peer, file, python};
use crate::support::process::Servo;
use crate::support::{until, variable};

/// `--function NAME=SCRIPT`, with a script that becomes the runtime client.
fn given(folder: &Path, function: &str) -> String {
    let script = folder.join(function);
    let text = format!(
        "#!/bin/sh\nexport PYTHONPATH={} PYTHONDONTWRITEBYTECODE=1\nexec {} -m awslambdaric handlers.{function}\n",
        file("").display(),
        variable("SERVO_TEST_PYTHON"),
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a program");
    format!("--function={function}={}", script.display())
}

fn order(path: &Path, seconds: u64) -> Value {
    json!({"marks": path, "order": 7, "seconds": seconds})
}

fn done() -> Value {
    json!({"steps": ["reserve", "charge"], "order": 7})
}

/// DX-094: the worker knows what the server tells every worker, and an address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_started_by_hand_serves_a_pull_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
    let service = Service::at(&servo.url);
    let address = service.register("order", &json!({"kind": "pull"})).await.expect("where workers ask");
    let path = folder.path().join("marks");
    // Before there is a worker: it waits for one.
    let arn = service.start("order", &order(&path, 1)).await;
    let mut command = python(&servo.url, DUMMY);
    command.args(["-m", "awslambdaric", "handlers.order"]).env("AWS_LAMBDA_RUNTIME_API", address);
    let _worker = Peer::start(&mut command);
    assert_eq!(service.result(&arn).await, done());
    assert_eq!(marks(&path), ["reserve", "charge"]);
}

/// DX-093: a supervised worker that is killed is started again and goes on behind what was recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_is_replaced_and_recorded_steps_do_not_run_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let function = given(folder.path(), "gated");
    let servo = Servo::dev_with(&folder.path().join("data"), &[&function], &[]).expect("it starts");
    let service = Service::at(&servo.url);
    let (path, gate) = (folder.path().join("marks"), folder.path().join("gate"));
    let arn = service.start("gated", &json!({"marks": path, "gate": gate})).await;
    service.event(&arn, "StepSucceeded").await;
    let hangs = until("the second step", async || marks(&path).get(1).cloned()).await;
    let pid = hangs.strip_prefix("hang ").expect("the worker's process");
    assert!(Command::new("kill").args(["-KILL", pid]).status().is_ok_and(|status| status.success()));
    std::fs::write(&gate, "open").expect("a gate");
    let result = service.result(&arn).await;
    let seen = marks(&path);
    assert_eq!((seen.len(), seen[0].as_str(), seen[3].as_str()), (4, "first", "last"), "{seen:?}");
    assert_eq!(seen[2], format!("hang {}", result[1]), "{result}");
    assert_ne!(seen[2], hangs, "another process");
}

/// DX-092: a wait goes on through kill -9 of the server, and ends on the one that is started after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_survives_the_death_of_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let function = given(folder.path(), "order");
    let (data, path) = (folder.path().join("data"), folder.path().join("marks"));
    let first = Servo::dev_with(&data, &[&function], &[]).expect("it starts");
    let service = Service::at(&first.url);
    let arn = service.start("order", &order(&path, 3)).await;
    service.event(&arn, "WaitStarted").await;
    first.kill();
    assert_eq!(marks(&path), ["reserve"]);
    let second = Servo::dev_with(&data, &[&function], &[]).expect("it starts again");
    assert_eq!(Service::at(&second.url).result(&arn).await, done());
    assert_eq!(marks(&path), ["reserve", "charge"]);
    assert!(second.stop().success());
}
