//! The process dies right after an answer, at every step.

use std::fs;
use std::path::Path;
use std::process::Command;

use servo_store::AdminStore;
use servo_store::testkit::fixtures;
use servo_store_sqlite::{Config, REDO_FILES, SqliteStore, restore};

use super::reference;
use super::steps::{CALLS, STEPS, look_at};
use crate::support::{config, folder, open, start, wait};

/// Where the worker works, how many steps it makes, and whether it writes through to the database; unset elsewhere.
const DIR: &str = "SERVO_TEST_AHEAD_DIR";
const COUNT: &str = "SERVO_TEST_AHEAD_STEPS";
const THROUGH: &str = "SERVO_TEST_AHEAD_THROUGH";

/// A store with a largest size writes through.
fn config_of(dir: &Path, through: bool) -> Config {
    let mut config = config(dir);
    config.pages_max = through.then_some(100_000);
    config
}

/// Leaves a folder as a process leaves it that dies right after so many answered steps.
fn die_after(dir: &Path, count: usize, through: bool) {
    let worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ahead::crash::worker", "--nocapture"])
        .env(DIR, dir)
        .env(COUNT, count.to_string())
        .env(THROUGH, through.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&worker.stderr);
    assert!(worker.status.code().is_none() && !text.contains("panicked"), "{text}");
}

/// Makes its steps and aborts.
#[test]
fn worker() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let of = |name| std::env::var_os(name).unwrap().into_string().unwrap();
    let (count, through) = (of(COUNT).parse().unwrap(), of(THROUGH).parse().unwrap());
    let store = SqliteStore::open(config_of(dir.as_ref(), through)).unwrap();
    for (_, step) in STEPS.iter().take(count) {
        wait(step(&store));
    }
    std::process::abort();
}

fn has_redo(dir: &Path) -> [bool; 2] {
    REDO_FILES.map(|name| dir.join(name).exists())
}

/// What all calls say after so many steps.
fn expected(count: usize) -> Vec<(&'static str, String)> {
    let reference = reference();
    for (_, step) in STEPS.iter().take(count) {
        wait(step(&reference));
    }
    wait(look_at(&reference, &CALLS))
}

fn check(dir: &Path, count: usize, through: bool) {
    let store = SqliteStore::open(config_of(dir, through)).unwrap();
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new(), "after {count} steps");
    let found = wait(look_at(&store, &CALLS));
    for (found, expected) in found.iter().zip(expected(count)) {
        assert_eq!(*found, expected, "after {count} steps");
    }
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new(), "after {count} steps");
    wait(store.close()).unwrap();
}

#[test]
fn what_was_answered_is_there_after_the_process_died() {
    let mut lacking = 0;
    for count in 1..=STEPS.len() {
        let dir = folder();
        die_after(dir.path(), count, false);
        assert_eq!(has_redo(dir.path()), [true; 2]);
        let without_redo = folder();
        for file in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            if !REDO_FILES.contains(&file.file_name().to_str().unwrap()) {
                fs::copy(file.path(), without_redo.path().join(file.file_name())).unwrap();
            }
        }
        let mut config = config(without_redo.path());
        config.accept_loss = true;
        let found = wait(look_at(&SqliteStore::open(config).unwrap(), &CALLS));
        lacking += usize::from(found != expected(count));
        check(dir.path(), count, false);
    }
    assert!(lacking > 0, "the database had everything each time, so nothing of this was shown");
}

#[test]
fn what_was_written_through_is_there_after_the_process_died() {
    for count in [1, STEPS.len()] {
        for opened_through in [true, false] {
            let dir = folder();
            die_after(dir.path(), count, true);
            let sizes = REDO_FILES.map(|name| fs::metadata(dir.path().join(name)).unwrap().len());
            assert_eq!(sizes, [0; 2], "nothing came into the redo file");
            check(dir.path(), count, opened_through);
        }
    }
}

/// What was limited once and is not any more has all of both, and the other way round.
#[test]
fn a_store_may_write_through_today_and_not_tomorrow() {
    let dir = folder();
    for (number, (_, step)) in STEPS.iter().enumerate() {
        let store = SqliteStore::open(config_of(dir.path(), number % 2 == 0)).unwrap();
        wait(step(&store));
        drop(store);
    }
    check(dir.path(), STEPS.len(), false);
}

#[test]
fn the_redo_file_is_gone_after_closing_and_there_after_dying() {
    let dir = folder();
    let store = open(dir.path());
    start(&store);
    assert_eq!(has_redo(dir.path()), [true; 2]);
    wait(store.close()).unwrap();
    assert_eq!(has_redo(dir.path()), [false; 2]);
    die_after(dir.path(), 0, false);
    assert_eq!(has_redo(dir.path()), [true; 2], "also if nothing was written");
    drop(open(dir.path()));
    assert_eq!(has_redo(dir.path()), [false; 2], "dropping closes as well");
}

#[test]
fn a_redo_file_stands_in_the_way_of_a_backup() {
    let dir = folder();
    let store = open(dir.path());
    start(&store);
    let copy = dir.path().join(format!("copy-{}", fixtures::unique()));
    wait(store.backup(&copy)).unwrap();
    for name in REDO_FILES {
        let target = folder();
        let file = target.path().join(name);
        fs::write(&file, "what somebody was answered").unwrap();
        let error = restore(&copy, target.path()).unwrap_err();
        assert!(
            matches!(&error, servo_store::Error::Invalid { field, reason } if field == "data_dir" && reason.contains(name)),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "what somebody was answered");
        assert!(!target.path().join("servo.db").exists());
        fs::remove_file(&file).unwrap();
        restore(&copy, target.path()).unwrap();
    }
}
