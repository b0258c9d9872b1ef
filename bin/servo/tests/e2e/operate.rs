//! What an operator does: start, stop, back up, restore, move runs, and meet what can go wrong.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::api::{Api, finished_run};
use crate::support::process::{Servo, binary};

fn servo(arguments: &[&str]) -> Output {
    binary().args(arguments).output().expect("servo runs")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders are UTF-8")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_folder_is_refused_and_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Servo::dev(folder.path(), &[]).expect("it starts");
    let refused = Servo::dev(folder.path(), &[]).expect_err("one process per folder");
    assert!(refused.contains(&first.pid().to_string()), "{refused}");
    let looked = servo(&["store", "info", "--data-dir", text(folder.path())]);
    assert_eq!(looked.status.code(), Some(5), "{}", said(&looked));
    assert!(first.stop().success());
}

#[test]
fn a_file_that_is_no_store_is_named_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(servo_store_sqlite::DATABASE_FILE);
    std::fs::write(&file, b"this is not a database, it only looks like one".repeat(100)).expect("a file");
    let before = std::fs::read(&file).expect("the file");
    let refused = Servo::dev(folder.path(), &[]).expect_err("no store");
    assert!(refused.contains("damaged"), "{refused}");
    assert_eq!(std::fs::read(&file).expect("the file"), before);
}

#[test]
fn a_configuration_error_names_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servo.toml");
    for (config, key) in [
        ("[server]\nbind = \"0.0.0.0:0\"\n", "server.bind"),
        ("[server]\nprot = 1\n", "prot"),
        ("[store]\nkind = \"oracle\"\n", "store"),
        ("[runtime]\npoll_ms = \"often\"\n", "runtime.poll_ms"),
        ("this is not toml", ""),
    ] {
        std::fs::write(&file, config).expect("a file");
        let checked = servo(&["config", "check", "--config", text(&file)]);
        assert_eq!(checked.status.code(), Some(2), "{config}: {}", said(&checked));
        assert!(said(&checked).contains(key), "{config}: {}", said(&checked));
        let started = servo(&["server", "--config", text(&file)]);
        assert_eq!(started.status.code(), Some(2), "{config}: {}", said(&started));
    }
    std::fs::write(&file, "[engines]\nmock = true\n").expect("a file");
    assert!(servo(&["config", "check", "--config", text(&file)]).status.success());
    let printed = servo(&["config", "print", "--config", text(&file)]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("mock = true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_working_server_restores_to_the_same_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let server = Servo::dev(&data, &[]).expect("it starts");
    let run_id = finished_run(&server.url, "first").await;
    let before = Api::new().events(&server.url, &run_id).await;
    let backup = folder.path().join("backup.db");
    let made = servo(&["store", "backup", text(&backup), "--server", &server.url]);
    assert!(made.status.success(), "{}", said(&made));
    let later = finished_run(&server.url, "later").await;
    let full = servo(&["store", "restore", text(&backup), "--data-dir", text(&data)]);
    assert!(!full.status.success(), "a folder with a store is not overwritten");
    let restored = servo(&["store", "restore", text(&backup), "--data-dir", text(&other)]);
    assert!(restored.status.success(), "{}", said(&restored));
    let second = Servo::dev(&other, &[]).expect("it starts");
    assert_eq!(Api::new().events(&second.url, &run_id).await, before);
    assert_eq!(Api::new().get(&second.url, &format!("/v1/runs/{later}")).await.map(|(status, _)| status), Some(404));
    assert!(second.stop().success());
    assert!(server.stop().success());
    let verified = servo(&["store", "verify", "--data-dir", text(&data), "--json"]);
    assert!(verified.status.success(), "{}", said(&verified));
    let healthy = servo(&["doctor", "--data-dir", text(&data)]);
    assert!(healthy.status.success(), "{}", String::from_utf8_lossy(&healthy.stdout));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_byte_in_the_file_is_found_and_costs_its_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Servo::dev(folder.path(), &[]).expect("it starts");
    let (spoiled, whole) = (finished_run(&server.url, "spoiled").await, finished_run(&server.url, "whole").await);
    let before = Api::new().events(&server.url, &whole).await;
    assert!(server.stop().success());
    let file = folder.path().join(servo_store_sqlite::DATABASE_FILE);
    let mut bytes = std::fs::read(&file).expect("the file");
    let plan = b"\"runRequestId\":\"spoiled\"";
    let at = bytes.windows(plan.len()).position(|window| window == plan).expect("what was recorded is in the file");
    bytes[at + plan.len() - 2] = b'r';
    std::fs::write(&file, &bytes).expect("the file");

    let verified = servo(&["store", "verify", "--data-dir", text(folder.path()), "--json"]);
    assert_eq!(verified.status.code(), Some(1), "{}", said(&verified));
    let report: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!((&report["withoutChecksum"], report["integrity"].as_array().map(Vec::len)), (&0.into(), Some(1)));
    assert!(report["integrity"][0].as_str().is_some_and(|found| found.contains(&spoiled)), "{report}");
    assert!(report["findings"].to_string().contains(&spoiled), "{report}");

    let server = Servo::dev(folder.path(), &[]).expect("it starts");
    let api = Api::new();
    assert_eq!(api.events(&server.url, &whole).await, before, "the rest goes on");
    finished_run(&server.url, "later").await;
    let (status, refused) = api.get(&server.url, &format!("/v1/runs/{spoiled}/events")).await.expect("an answer");
    assert_eq!((status, &refused["code"]), (409, &"RUN_QUARANTINED".into()), "{refused}");
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("event") && detail.contains(&spoiled), "{refused}");
    let exported = servo(&["runs", "export", &spoiled, "--server", &server.url]);
    assert!(!exported.status.success() && exported.stdout.is_empty(), "what changed is not given away");
    let alerts = servo(&["alerts", "--server", &server.url, "--json"]);
    assert!(String::from_utf8_lossy(&alerts.stdout).contains("RUN_QUARANTINED"), "{}", said(&alerts));
    let deleted = servo(&["runs", "delete", &spoiled, "--yes", "--server", &server.url]);
    assert!(deleted.status.success(), "{}", said(&deleted));
    assert!(server.stop().success());
    let verified = servo(&["store", "verify", "--data-dir", text(folder.path())]);
    assert!(verified.status.success(), "{}", said(&verified));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_moves_as_a_file_and_a_cut_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = Servo::dev(&folder.path().join("from"), &[]).expect("it starts");
    let to = Servo::dev(&folder.path().join("to"), &[]).expect("it starts");
    let run_id = finished_run(&from.url, "move").await;
    let exported = servo(&["runs", "export", &run_id, "--server", &from.url]);
    assert!(exported.status.success(), "{}", said(&exported));
    let file = folder.path().join("run.json");
    let mut cut: Value = serde_json::from_slice(&exported.stdout).expect("JSON");
    std::fs::write(&file, &exported.stdout).expect("a file");
    let imported = servo(&["runs", "import", text(&file), "--server", &to.url]);
    assert!(imported.status.success(), "{}", said(&imported));
    let api = Api::new();
    let mut there = api.events(&to.url, &run_id).await.expect("events");
    let mark = there.pop().expect("an event that says so");
    assert_eq!(mark["eventType"], "RunImported", "{mark}");
    assert_eq!(Some(there), api.events(&from.url, &run_id).await);
    let shown = servo(&["runs", "get", &run_id, "--server", &to.url, "-o", "table"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("from a file, by "), "{}", said(&shown));
    let again = servo(&["runs", "import", text(&file), "--server", &to.url]);
    assert_eq!(again.status.code(), Some(5), "{}", said(&again));
    assert!(said(&again).contains("servo runs delete"), "{}", said(&again));
    cut["events"].as_array_mut().expect("events").pop();
    std::fs::write(&file, cut.to_string()).expect("a file");
    let refused = servo(&["runs", "import", text(&file), "--server", &to.url]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("sha256"), "{}", said(&refused));
    let deleted = servo(&["runs", "delete", &run_id, "--yes", "--server", &to.url]);
    assert!(deleted.status.success(), "{}", said(&deleted));
    let gone = servo(&["runs", "get", &run_id, "--server", &to.url]);
    assert_eq!(gone.status.code(), Some(4), "{}", said(&gone));
    assert!(from.stop().success() && to.stop().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_keys_asks_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servo.toml");
    let sha256 = servo_canon::Digest::of(b"let-me-in");
    let config = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n[engines]\nmock = true\n\
         [[auth.keys]]\nname = \"ops\"\ntenant = \"acme\"\nroles = [\"viewer\"]\nsha256 = \"{sha256}\"\nself_made = true\n",
        folder.path().join("data")
    );
    std::fs::write(&file, config).expect("a file");
    let server = Servo::server(&file, &[]).expect("it starts");
    let nobody = servo(&["runs", "list", "--server", &server.url]);
    assert_eq!(nobody.status.code(), Some(3), "{}", said(&nobody));
    let ops = servo(&["runs", "list", "--server", &server.url, "--token", "let-me-in"]);
    assert!(ops.status.success(), "{}", said(&ops));
    let printed = servo(&["config", "print", "--config", text(&file)]);
    assert!(printed.status.success());
    assert!(server.stop().success());
}

/// The first Ctrl-C stops cleanly, with the code that shells expect of it.
#[test]
fn an_interrupt_stops_cleanly_with_130() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Servo::dev(folder.path(), &[]).expect("it starts");
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(130));
}
