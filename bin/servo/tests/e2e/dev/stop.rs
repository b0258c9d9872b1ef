//! Ending it, and beginning anew.

use serde_json::json;

use super::{open, text};
use crate::support::api::{Api, Start};
use crate::support::process::binary;

/// The first Ctrl-C lets work finish, the second does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_interrupt_ends_at_once() {
    let (servo, mut lines) = open(&["--ephemeral", "--no-sample"]);
    let plan = json!({"planId": "slow", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "long", "with": {"sleepMs": 600_000}}]});
    assert!(matches!(Api::new().start(&servo.url, "slow", &plan).await, Start::Acked { .. }));
    lines.until(&["step started", "long"]);
    servo.signal("INT");
    lines.until(&["Stopping", "Ctrl-C again ends at once"]);
    servo.signal("INT");
    lines.until(&["Ended at once"]);
    assert_eq!(servo.wait().code(), Some(130));
}

/// The first Ctrl-C alone waits for what runs: the next start has nothing left to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_interrupt_lets_work_finish() {
    let folder = tempfile::tempdir().expect("a folder");
    let (servo, mut lines) = open(&["--no-sample", "--data-dir", text(folder.path())]);
    let plan = json!({"planId": "brief", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "one", "with": {"sleepMs": 1_000}}]});
    let Start::Acked { run_id, .. } = Api::new().start(&servo.url, "brief", &plan).await else { panic!("not started") };
    lines.until(&["step started", "one"]);
    servo.signal("INT");
    lines.until(&["Stopping"]);
    lines.until(&["Stopped."]);
    assert_eq!(servo.wait().code(), Some(130));
    let verified = binary().args(["store", "verify", "--data-dir", text(folder.path())]).output().expect("it runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    let (again, _lines) = open(&["--no-sample", "--data-dir", text(folder.path())]);
    let (_, run) = Api::new().get(&again.url, &format!("/v1/runs/{run_id}")).await.expect("an answer");
    assert_eq!(run["status"], "COMPLETED", "{run}");
    let events = Api::new().events(&again.url, &run_id).await;
    assert!(!format!("{events:?}").contains("StepTakenOver"), "it was not handed out again: {events:?}");
    assert!(again.stop().success());
}

#[test]
fn a_reset_says_what_it_removed_and_removes_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (servo, _lines) = open(&["--no-sample", "--data-dir", text(&data)]);
    assert!(servo.stop().success());
    let (key, notes) = (data.join("dev.key"), data.join("notes.txt"));
    let before = std::fs::read_to_string(&key).expect("a key");
    std::fs::write(&notes, "mine").expect("a file");
    let (servo, lines) = open(&["--no-sample", "--data-dir", text(&data), "--reset"]);
    assert_ne!(std::fs::read_to_string(&key).expect("a key"), before, "a new store has a new key");
    assert_eq!(std::fs::read_to_string(&notes).expect("a file"), "mine");
    assert!(servo.stop().success());
    let seen = lines.rest();
    let said = seen.iter().find(|line| line.starts_with("Reset ")).unwrap_or_else(|| panic!("{seen:#?}"));
    assert!(said.contains(servo_store_sqlite::DATABASE_FILE) && said.contains("dev.key"), "{said}");
    assert!(!said.contains("notes"), "{said}");
}
