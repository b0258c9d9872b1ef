//! R3 on Postgres: the server aborts at every named point of the store, one after the other. The database stays; what the
//! server left in it must be whole, and the next one goes on from there.

use std::path::{Path, PathBuf};

use servo_store_postgres::CRASH_POINTS;

use super::super::check::{Ledger, check};
use super::super::points::{died, start_runs, sweep_until_dead};
use crate::support::api::Api;
use crate::support::postgres::configuration;
use crate::support::process::{Servo, binary};
use crate::support::variable;

/// How a point is reached.
enum Way {
    /// By starting on an empty database, in which every migration is an occurrence.
    Starting(&'static [u64]),
    /// By starting runs; the point is armed for several occurrences in turn.
    Running(&'static [u64]),
    /// By a sweep of retention.
    Sweeping,
}

fn way(point: &str) -> Way {
    match point {
        "postgres.migration.before_commit" | "postgres.migration.after_commit" => Way::Starting(&[1, 3]),
        "postgres.append.before_begin" | "postgres.append.before_commit" | "postgres.append.after_commit" => {
            Way::Running(&[1, 2, 3, 5, 8, 13])
        }
        "postgres.retire.before_commit"
        | "postgres.retire.after_commit"
        | "postgres.trim.before_commit"
        | "postgres.trim.after_commit" => Way::Sweeping,
        other => panic!("no way is known to reach {other}: a crash point that no test reaches is not tested"),
    }
}

/// A database of its own for each crash, and two configurations for it: one of them finds something to sweep at once.
struct Place {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let name = format!("servo_{name}_{}", std::process::id());
        let config = configuration(folder.path(), &variable("SERVO_TEST_POSTGRES_URL"), &name);
        Self { folder, config }
    }

    fn sweeping(&self) -> PathBuf {
        let text = std::fs::read_to_string(&self.config).expect("the configuration");
        let path = self.folder.path().join("sweeping.toml");
        let sweeping = "[runtime.retention]\nfinished_runs_days = 0\nsystem_stream_hours = 0\nevery_ms = 3600000\n";
        std::fs::write(&path, text + sweeping).expect("a configuration file");
        path
    }
}

/// After a healthy start everything acknowledged is there, once, and comes to its end.
async fn findings_after(config: &Path, ledger: &mut Ledger) -> Vec<String> {
    let mut servo = Servo::server(config, &[]).expect("the server starts after the crash");
    start_runs(&mut servo, ledger, 1, 0).await;
    let mut findings = check(&Api::new(), &servo.url, ledger).await;
    if findings.is_empty() {
        let verify = binary().args(["store", "verify", "--server", &servo.url]).output().expect("servo runs");
        if !verify.status.success() {
            findings.push(String::from_utf8_lossy(&verify.stdout).into_owned());
        }
    }
    assert!(servo.stop().success());
    findings
}

async fn crash_at(point: &str, nth: u64, sabotage: Option<&str>) -> Vec<String> {
    let place = Place::new("points");
    let armed = format!("{point}:{nth}");
    let mut variables = vec![("SERVO_CRASHPOINT", armed.as_str())];
    variables.extend(sabotage.map(|name| ("SERVO_SABOTAGE", name)));
    let mut ledger = Ledger::default();
    match way(point) {
        Way::Starting(_) => {
            Servo::server(&place.config, &variables).expect_err("it dies while it starts");
        }
        Way::Running(_) => match Servo::server(&place.config, &variables) {
            // An early point is reached by the start itself.
            Err(_) => {}
            Ok(mut servo) => {
                start_runs(&mut servo, &mut ledger, 50, 0).await;
                died(servo, point).await;
            }
        },
        Way::Sweeping => {
            let mut servo = Servo::server(&place.sweeping(), &variables).expect("it starts");
            let mut short = Ledger::default();
            start_runs(&mut servo, &mut short, 3, 0).await;
            sweep_until_dead(servo, point).await;
        }
    }
    findings_after(&place.config, &mut ledger).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_every_named_point_of_postgres_leaves_a_whole_store() {
    for point in CRASH_POINTS.all() {
        let occurrences = match way(point) {
            Way::Starting(occurrences) | Way::Running(occurrences) => occurrences,
            Way::Sweeping => &[1],
        };
        for nth in occurrences {
            let findings = crash_at(point, *nth, None).await;
            assert!(findings.is_empty(), "{point}:{nth}: {findings:#?}");
        }
    }
}

/// The control: a store that answers before it writes has promised what the crash then takes, and the checker must say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_a_point_of_postgres_control_finds_answers_before_the_commit() {
    for nth in 1..12 {
        let findings = crash_at("postgres.append.before_commit", nth, Some("ack-before-commit")).await;
        if findings.iter().any(|finding| finding.contains("acknowledged before, but started again")) {
            return;
        }
    }
    panic!("a store that answers before it writes went unnoticed");
}
