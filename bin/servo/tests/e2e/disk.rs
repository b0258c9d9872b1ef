//! Disks that fail under a server: it says so, answers what it can, and ends where only a new start helps.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use servo_powercut::faults::{EIO, ENOSPC, Faults, Rules};
use servo_store_sqlite::REDO_FILES;

use crate::support::api::{Api, Start};
use crate::support::process::{Lines, Servo, binary};
use crate::support::until;

/// The exit code of a server whose disk has reported an error.
const DISK: i32 = 10;

struct Disk {
    faults: Faults,
    rules: Rules,
    data: PathBuf,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, path) = (folder.path().join("data"), folder.path().join("rules"));
        let rules = Rules::at(&path);
        rules.set(&[]).expect("a file");
        let faults = Faults::build().expect("a C compiler; `cargo xtask test` installs one");
        Self { faults, rules, data, path, _folder: folder }
    }

    fn server(&self) -> (Servo, Lines) {
        let variables = self.faults.variables(&self.data, &self.path);
        let variables = variables.each_ref().map(|(name, value)| (*name, text(value)));
        Servo::dev_watched(&self.data, &variables).expect("it starts")
    }

    fn fail(&self, rules: &[(&str, &str, i32, u32)]) {
        self.rules.set(rules).expect("a file");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders are UTF-8")
}

fn plan() -> Value {
    json!({"planId": "disk", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]})
}

/// Starts runs until one is not acknowledged, and gives those that were.
async fn starts(servo: &Servo, prefix: &str) -> Vec<String> {
    let (api, mut acked) = (Api::new(), Vec::new());
    until("a start that fails", async || {
        match api.start(&servo.url, &format!("{prefix}-{}", acked.len()), &plan()).await {
            Start::Acked { run_id, .. } => {
                acked.push(run_id);
                None
            }
            Start::Refused(..) | Start::Unknown => Some(()),
        }
    })
    .await;
    acked
}

async fn readiness(servo: &Servo) -> (u16, String) {
    let (status, document) = Api::new().get(&servo.url, "/readyz").await.expect("an answer");
    (status, document["reasons"].to_string())
}

async fn has_alert(servo: &Servo, code: &str) -> bool {
    let (_, document) = Api::new().get(&servo.url, "/v1/alerts").await.expect("an answer");
    document["items"].as_array().expect("a list").iter().any(|alert| alert["code"] == code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_reads_are_answered_and_it_goes_on_by_itself() {
    for file in ["servo.db-wal", "servo.*"] {
        let disk = Disk::new();
        let (servo, lines) = disk.server();
        let before = crate::support::api::finished_run(&servo.url, "before").await;
        disk.fail(&[("write", file, ENOSPC, 0)]);
        let mut acked = starts(&servo, "full").await;
        acked.push(before);
        let refused = until("a start that is refused for want of room", async || {
            let client = reqwest::Client::builder().no_proxy().build().expect("a client");
            let sha256 = servo_canon::fingerprint(&plan()).expect("plans are finite").to_string();
            let body = json!({"plan": plan(), "runRequestId": "refused", "planRef":
                {"sha256": sha256, "schemaVersion": "v1", "planId": "disk", "planVersion": "1"}});
            let answer = client.post(format!("{}/v1/runs", servo.url)).json(&body).send().await.ok()?;
            (answer.status() == 507).then_some(answer)
        })
        .await;
        assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
        for run_id in &acked {
            let (status, run) = Api::new().get(&servo.url, &format!("/v1/runs/{run_id}")).await.expect("an answer");
            assert_eq!(status, 200, "{file}: {run}");
            let events = Api::new().events(&servo.url, run_id).await.expect("an answer");
            assert!(!events.is_empty());
        }
        let (status, reasons) = readiness(&servo).await;
        assert!(status == 503 && reasons.contains("no room"), "{status} {reasons}");
        assert!(!reasons.contains(text(&disk.data)), "{reasons}");
        assert!(has_alert(&servo, "STORE_FULL").await);
        disk.fail(&[]);
        until("the server is ready again", async || (readiness(&servo).await.0 == 200).then_some(())).await;
        until("the alert has gone", async || (!has_alert(&servo, "STORE_FULL").await).then_some(())).await;
        for run_id in &acked {
            until("the run's end", async || {
                let (_, run) = Api::new().get(&servo.url, &format!("/v1/runs/{run_id}")).await?;
                (run["status"] == "COMPLETED").then_some(())
            })
            .await;
        }
        assert!(servo.stop().success());
        let said = lines.rest();
        assert_eq!(said.iter().filter(|line| line.contains("the store has no room")).count(), 1, "{said:#?}");
        assert!(!said.iter().any(|line| line.contains("the log could not be copied")), "{said:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_room_stops_in_order() {
    let disk = Disk::new();
    let (servo, _lines) = disk.server();
    disk.fail(&[("write", "servo.*", ENOSPC, 0)]);
    let acked = starts(&servo, "full").await;
    assert!(servo.stop().code().is_some(), "it ends by itself");
    disk.fail(&[]);
    all_there(&disk, &acked).await;
}

async fn all_there(disk: &Disk, acked: &[String]) {
    let (again, _lines) = disk.server();
    for run_id in acked {
        until("the run's end", async || {
            let (status, run) = Api::new().get(&again.url, &format!("/v1/runs/{run_id}")).await?;
            assert_eq!(status, 200, "an acknowledged run is lost: {run}");
            (run["status"] == "COMPLETED").then_some(())
        })
        .await;
    }
    assert!(again.stop().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_disk_ends_the_server_with_a_code_of_its_own() {
    for (what, file) in
        [("sync", "servo.redo-*"), ("write", "servo.redo-*"), ("write", "servo.db-wal"), ("sync", "servo.db*")]
    {
        let disk = Disk::new();
        let (servo, mut lines) = disk.server();
        disk.fail(&[(what, file, EIO, 1)]);
        // By the server's own work, if not by these.
        let acked = starts(&servo, "error").await;
        lines.until(&["the disk reported an error"]);
        assert_eq!(servo.wait().code(), Some(DISK), "{what} {file}");
        disk.fail(&[]);
        let said = lines.rest();
        assert!(
            said.iter().filter(|line| line.contains("the disk reported an error: nothing")).count() <= 1,
            "{said:#?}"
        );
        all_there(&disk, &acked).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redo_files_that_are_missing_after_a_kill_are_missed() {
    let disk = Disk::new();
    let (servo, _lines) = disk.server();
    let run_id = crate::support::api::finished_run(&servo.url, "one").await;
    servo.kill();
    for name in REDO_FILES {
        std::fs::remove_file(disk.data.join(name)).expect("a redo file");
    }
    let refused = Servo::dev(&disk.data, &[]).expect_err("something is missing");
    assert!(refused.contains("servo store accept-loss --data-dir"), "{refused}");
    let accepted = binary().args(["store", "accept-loss", "--data-dir", text(&disk.data)]).output().expect("it runs");
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    let (again, _lines) = disk.server();
    assert!(has_alert(&again, "REDO_INCOMPLETE").await);
    // Long in the database.
    let (_, run) = Api::new().get(&again.url, &format!("/v1/runs/{run_id}")).await.expect("an answer");
    assert!(run["runId"] == run_id.as_str() || run["code"] == "RUN_NOT_FOUND", "{run}");
    assert!(again.stop().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_becomes_of_the_lock_file_no_second_server_comes_in() {
    let disk = Disk::new();
    let (servo, _lines) = disk.server();
    let lock = disk.data.join("servo.lock");
    std::fs::remove_file(&lock).expect("a lock file");
    for _ in 0..2 {
        let refused = Servo::dev(&disk.data, &[]).expect_err("one process per folder");
        assert!(refused.contains("in use"), "{refused}");
    }
    let run_id = crate::support::api::finished_run(&servo.url, "one").await;
    assert!(servo.stop().success());
    all_there(&disk, &[run_id]).await;
}
