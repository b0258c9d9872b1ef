//! R3: every named crash point, one after the other. The process aborts there; what is left must be whole.
#![cfg(feature = "sabotage")]

use std::path::Path;

use serde_json::{Value, json};
use servo_store_sqlite::CRASH_POINTS;

use super::check::{Entry, Ledger, check};
use crate::support::api::{Api, Start};
use crate::support::process::{Servo, binary};
use crate::support::until;

/// How a point is reached.
enum Way {
    /// By starting on an empty folder.
    Starting,
    /// By starting runs; the point is armed for several occurrences in turn.
    Running(&'static [u64]),
    /// By starting after a crash that left something in the redo file.
    Recovering,
    /// By payloads that fill the write-ahead log.
    Filling,
    /// By a sweep of retention.
    Sweeping,
    BackingUp,
    Restoring,
    Stopping,
}

fn way(point: &str) -> Way {
    match point {
        "sqlite.migration.before_commit" | "sqlite.migration.after_commit" | "sqlite.redo.switched" => Way::Starting,
        "sqlite.append.before_begin" | "sqlite.append.before_commit" | "sqlite.append.after_commit" => {
            Way::Running(&[1, 2, 3, 4, 6, 9, 14])
        }
        "sqlite.apply.before_commit" | "sqlite.apply.after_commit" => Way::Running(&[1, 2, 3, 5]),
        "sqlite.direct.before_commit" | "sqlite.direct.after_commit" => Way::Running(&[1, 2]),
        "sqlite.recover.applied" => Way::Recovering,
        "sqlite.checkpoint.before" | "sqlite.checkpoint.after" => Way::Filling,
        "sqlite.retire.hidden" | "sqlite.retire.purged" | "sqlite.trim.deleted" => Way::Sweeping,
        "sqlite.backup.before_rename" => Way::BackingUp,
        "sqlite.restore.before_rename" => Way::Restoring,
        "sqlite.close.before_checkpoint" => Way::Stopping,
        other => panic!("no way is known to reach {other}: a crash point that no test reaches is not tested"),
    }
}

fn plan(filler: usize) -> Value {
    let with =
        json!({"artifacts": [{"uri": format!("s3://bucket/{}", "x".repeat(filler.min(1_900))), "kind": "filler"}]});
    let mut steps = vec![json!({"stepId": "a", "with": with, "retry": {"maxAttempts": 2}})];
    steps.push(json!({"stepId": "b", "dependsOn": ["a"]}));
    json!({"planId": "points", "planVersion": "1", "schemaVersion": "v1", "steps": steps})
}

/// Settings under which a sweep has something to do at once.
fn sweeping_config(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("servo.toml");
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n[engines]\nmock = true\n\
         [runtime.retention]\nfinished_runs_days = 0\nsystem_stream_hours = 0\nevery_ms = 3600000\n",
        folder.join("data")
    );
    std::fs::write(&path, text).expect("a configuration file");
    path
}

/// Starts runs until the server dies or enough were started; what was acknowledged is in the ledger.
pub(super) async fn start_runs(servo: &mut Servo, ledger: &mut Ledger, count: usize, filler: usize) {
    let api = Api::new();
    for _ in 0..count {
        let request_id = format!("request-{}", ledger.requests.len());
        let plan = plan(filler);
        let outcome = api.start(&servo.url, &request_id, &plan).await;
        let acked = match outcome {
            Start::Acked { run_id, .. } => Some(run_id),
            Start::Unknown => None,
            Start::Refused(status, text) => panic!("{status} {text}"),
        };
        let died = acked.is_none();
        ledger.requests.insert(request_id, Entry { plan, acked });
        if died || servo.has_ended() {
            return;
        }
    }
}

/// The server must be dead by its own hand.
pub(super) async fn died(mut servo: Servo, point: &str) {
    until(&format!("crash at {point}"), async || servo.has_ended().then_some(())).await;
    assert!(!servo.wait().success(), "{point}");
}

/// Asks for retention until the server dies of it.
pub(super) async fn sweep_until_dead(mut servo: Servo, point: &str) {
    let sweep = format!("{}/v1/store/retention", servo.url);
    until(&format!("sweep to {point}"), async || {
        let answer = reqwest::Client::new().post(&sweep).send().await;
        (answer.is_err() || servo.has_ended()).then_some(())
    })
    .await;
    died(servo, point).await;
}

/// After a healthy start everything acknowledged is there, once, and comes to its end.
async fn healed(folder: &Path, ledger: &mut Ledger, point: &str) {
    let mut servo = Servo::dev(folder, &[]).expect("the server starts after the crash");
    start_runs(&mut servo, ledger, 1, 0).await;
    let findings = check(&Api::new(), &servo.url, ledger).await;
    assert!(findings.is_empty(), "{point}: {findings:#?}");
    assert!(servo.stop().success());
    let verify = binary().args(["store", "verify", "--data-dir"]).arg(folder).output().expect("servo runs");
    assert!(verify.status.success(), "{point}: {}", String::from_utf8_lossy(&verify.stdout));
}

async fn crash_at(point: &str, nth: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let armed = format!("{point}:{nth}");
    let variables = [("SERVO_CRASHPOINT", armed.as_str())];
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a data folder");
    let mut ledger = Ledger::default();
    match way(point) {
        Way::Starting => {
            Servo::dev(&data, &variables).expect_err("it dies while it starts");
        }
        Way::Running(_) => match Servo::dev(&data, &variables) {
            // An early point is reached by the start itself.
            Err(_) => {}
            Ok(mut servo) => {
                start_runs(&mut servo, &mut ledger, 50, 0).await;
                died(servo, point).await;
            }
        },
        Way::Recovering => {
            let mut servo =
                Servo::dev(&data, &[("SERVO_CRASHPOINT", "sqlite.append.after_commit:12")]).expect("it starts");
            start_runs(&mut servo, &mut ledger, 50, 0).await;
            died(servo, "sqlite.append.after_commit").await;
            Servo::dev(&data, &variables).expect_err("it dies while it recovers");
        }
        Way::Filling => {
            let mut servo = Servo::dev(&data, &variables).expect("it starts");
            start_runs(&mut servo, &mut ledger, 2_000, 1_900).await;
            died(servo, point).await;
        }
        Way::Sweeping => {
            let config = sweeping_config(folder.path());
            let mut servo = Servo::server(&config, &variables).expect("it starts");
            let mut short = Ledger::default();
            start_runs(&mut servo, &mut short, 3, 0).await;
            let findings = check(&Api::new(), &servo.url, &short).await;
            assert!(findings.is_empty(), "{findings:#?}");
            sweep_until_dead(servo, point).await;
        }
        Way::BackingUp => {
            let mut servo = Servo::dev(&data, &variables).expect("it starts");
            start_runs(&mut servo, &mut ledger, 2, 0).await;
            let _ = reqwest::get(format!("{}/v1/store/backup", servo.url)).await;
            died(servo, point).await;
        }
        Way::Restoring => {
            let mut servo = Servo::dev(&data, &[]).expect("it starts");
            start_runs(&mut servo, &mut ledger, 2, 0).await;
            let findings = check(&Api::new(), &servo.url, &ledger).await;
            assert!(findings.is_empty(), "{findings:#?}");
            assert!(servo.stop().success());
            restore_in_two_tries(folder.path(), &data, &variables);
        }
        Way::Stopping => {
            let mut servo = Servo::dev(&data, &variables).expect("it starts");
            start_runs(&mut servo, &mut ledger, 2, 0).await;
            servo.signal("TERM");
            died(servo, point).await;
        }
    }
    healed(&data, &mut ledger, point).await;
}

/// A restore that dies half-way leaves nothing that looks like a store; the second one succeeds.
fn restore_in_two_tries(folder: &Path, data: &Path, variables: &[(&str, &str)]) {
    let backup = folder.join("backup.db");
    let run = |what: &str, variables: &[(&str, &str)]| {
        let mut command = binary();
        command.args(["store", what]).arg(&backup).arg("--data-dir").arg(data).envs(variables.iter().copied());
        command.output().expect("servo runs")
    };
    let made = run("backup", &[]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::remove_dir_all(data).expect("the data folder is ours");
    assert!(!run("restore", variables).status.success(), "it dies");
    assert!(!data.join(servo_store_sqlite::DATABASE_FILE).exists(), "half a store is no store");
    let restored = run("restore", &[]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_every_named_point_leaves_a_whole_store() {
    for point in CRASH_POINTS.all() {
        let occurrences: &[u64] = match way(point) {
            Way::Running(occurrences) => occurrences,
            _ => &[1],
        };
        for nth in occurrences {
            crash_at(point, *nth).await;
        }
    }
}
