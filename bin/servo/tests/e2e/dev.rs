//! `servo dev` as the person at the terminal sees it: lines as things happen, files that register themselves, time that jumps, and
//! the ways to end it.

mod entrypoints;
mod stop;
mod time;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::process::{Lines, Servo};
use crate::support::until;

const API: &str = "/api/serverless-runtime/v1";

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders are UTF-8")
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// Starts an entrypoint by the own part of its address and gives back the whole answer.
async fn start(servo: &Servo, kind: &str, name: &str, mode: &str, params: Value) -> Value {
    let address = format!("gts.x.core.serverless.entrypoint.v1~x.core.serverless.{kind}.v1~{name}~");
    let request = json!({"entrypoint_id": address, "mode": mode, "params": params});
    let request = client().post(format!("{}{API}/invocations", servo.url)).json(&request);
    request.send().await.expect("an answer").json().await.expect("JSON")
}

async fn ended(servo: &Servo, id: &str, status: &str) -> Value {
    let client = client();
    until(&format!("{id} is {status}"), async || {
        let path = format!("{}{API}/invocations/{id}", servo.url);
        let record: Value = client.get(path).send().await.ok()?.json().await.ok()?;
        (record["status"] == status).then_some(record)
    })
    .await
}

fn open(arguments: &[&str]) -> (Servo, Lines) {
    Servo::watched(arguments).expect("it starts")
}

/// One line for each event, with the time, the run, what it is called and what happened; none with `--quiet`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_shown_as_they_happen_unless_nobody_wants_them() {
    let (servo, mut lines) = open(&["--ephemeral"]);
    lines.until(&["demo.shop.order.v1", "waits for", "approval"]);
    let queued = lines.seen.iter().find(|line| line.contains("queued") && line.contains("demo.shop.order.v1"));
    let queued = queued.unwrap_or_else(|| panic!("{:#?}", lines.seen));
    let (short, id) = (queued.split_whitespace().nth(1), queued.split_whitespace().last());
    assert!(id.zip(short).is_some_and(|(id, short)| id.starts_with("inv_") && id.ends_with(short)), "{queued}");
    let has = |parts: [&str; 2]| lines.seen.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(["step succeeded", "reserve"]) && has(["failed", "card_declined"]), "{:#?}", lines.seen);
    assert!(!lines.seen.iter().any(|line| line.contains('\u{1b}')), "a pipe has no colours");
    assert!(servo.stop().success());

    let (servo, lines) = open(&["--ephemeral", "--quiet"]);
    let client = client();
    until("the demo has gone its ways", async || {
        let url = format!("{}{API}/invocations?status=compensated", servo.url);
        let page: Value = client.get(url).send().await.ok()?.json().await.ok()?;
        (page["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    assert!(servo.stop().success());
    let seen = lines.rest();
    assert!(!seen.iter().any(|line| line.contains("demo.shop")), "{seen:#?}");
}

/// A worker is started anew when its program was built again.
#[test]
fn a_program_that_changed_is_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("worker");
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        // Moved into place, as a linker does: a running program cannot be written to.
        let new = folder.path().join("new");
        std::fs::write(&new, text).expect("a file");
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).expect("rights");
        std::fs::rename(&new, &program).expect("a file");
    };
    let started = folder.path().join("started");
    write(&format!("#!/bin/sh\ntouch {}\nexec sleep 600\n", started.display()));
    let function = format!("worker={}", program.display());
    let (servo, mut lines) = open(&["--ephemeral", "--no-sample", "--function", &function]);
    // What is built before the first start is what is started.
    let begun = std::time::Instant::now();
    while !started.exists() {
        assert!(begun.elapsed() < crate::support::PATIENCE, "the worker was not started");
        std::thread::yield_now();
    }
    write("#!/bin/sh\n# built again\nexec sleep 600\n");
    lines.until(&["1 worker replaced"]);
    assert!(servo.stop().success());
}
