//! Disks that fail: without room the store refuses writes and reads on, and goes on by itself; after an error it writes nothing
//! more, says so, and closes. Each case runs in a process of its own, whose disk does as it is told.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use servo_powercut::faults::{EIO, ENOSPC, Faults, Rules};
use servo_store::admin::Condition;
use servo_store::runs::RunQuery;
use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Error, LogStore, RunStore, Scope};
use servo_store_sqlite::SqliteStore;

use crate::support::{config, events, folder, names, one_more, open, start, wait};

/// The data folder, the rules of its disk, and which of them is tried; unset everywhere else.
const DIR: &str = "SERVO_TEST_DISK_DIR";
const RULES: &str = "SERVO_TEST_DISK_RULES";
const CASE: &str = "SERVO_TEST_DISK_CASE";
const VARIANT: &str = "SERVO_TEST_DISK_VARIANT";
/// Generous: only a store that hangs takes so long.
const DEADLINE: Duration = Duration::from_secs(60);

/// What fails, in which file, with which error.
type Case = (&'static str, &'static str, i32);

const NO_ROOM: [Case; 4] = [
    ("write", "servo.db-wal", ENOSPC),
    ("write", "servo.redo-*", ENOSPC),
    // Quotas.
    ("write", "servo.db-wal", 122),
    ("write", "servo.*", ENOSPC),
];

const ERRORS: [Case; 8] = [
    ("sync", "servo.redo-*", EIO),
    ("write", "servo.redo-*", EIO),
    // A sync that finds no room has lost what was handed over before.
    ("sync", "servo.redo-*", ENOSPC),
    ("write", "servo.db-wal", EIO),
    ("sync", "servo.db-wal", EIO),
    ("write", "servo.db", EIO),
    ("sync", "servo.db", EIO),
    ("sync", "servo.db*", ENOSPC),
];

/// Lets this test binary run one of its tests on such a disk, with a broken variant of the store or none.
fn output(test: &str, data: &Path, case: usize, variant: &str) -> Output {
    let faults = Faults::build().expect("a C compiler; `cargo xtask test` installs one");
    let rules = data.parent().unwrap().join("rules");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env(DIR, data).env(RULES, &rules).env(CASE, case.to_string()).env(VARIANT, variant);
    let rules = faults.attach(&mut command, data, &rules);
    rules.set(&[]).unwrap();
    command.output().unwrap()
}

fn run(test: &str, data: &Path, case: usize) -> String {
    let output = output(test, data, case, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "case {case}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn told(text: &str, word: &str) -> usize {
    let after = text.rsplit(&format!("{word} ")).next().unwrap();
    after.split_whitespace().next().unwrap().parse().unwrap()
}

/// What a worker is asked, if this is one.
fn asked() -> Option<(std::path::PathBuf, Rules, usize)> {
    let dir = std::env::var_os(DIR)?.into();
    let rules = Rules::at(Path::new(&std::env::var_os(RULES)?));
    Some((dir, rules, std::env::var_os(CASE)?.into_string().ok()?.parse().ok()?))
}

/// Appends until one is refused, and counts those that were not.
fn fill(store: &SqliteStore, bytes: usize) -> (usize, Error) {
    let ((run, tenant), start) = (names(), Instant::now());
    let mut written = 0;
    loop {
        match wait(store.append(one_more(&run, &tenant, bytes))) {
            Ok(_) => written += 1,
            Err(error) => return (written, error),
        }
        assert!(start.elapsed() < DEADLINE, "nothing fails");
    }
}

#[test]
fn without_room_writes_are_refused_and_reads_are_answered_until_there_is_room() {
    for (case, rules) in NO_ROOM.iter().enumerate() {
        let dir = folder();
        let data = dir.path().join("data");
        let text = run("disk::no_room", &data, case);
        let store = open(&data);
        assert_eq!(events(&store, &names().0).len(), told(&text, "written"), "{rules:?}");
        assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
    }
}

/// The control.
#[test]
fn a_store_whose_reads_need_room_is_noticed() {
    let dir = folder();
    let failed = output("disk::no_room", &dir.path().join("data"), 0, "reads-need-room");
    let text = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && (text.contains("no space left") || text.contains("disk is full")), "{text}");
}

#[test]
fn no_room() {
    let Some((dir, rules, case)) = asked() else { return };
    let (what, file, error) = NO_ROOM[case];
    let mut config = config(&dir);
    config.sabotage =
        std::env::var_os(VARIANT).and_then(|variant| variant.into_string().ok()).filter(|variant| !variant.is_empty());
    let store = SqliteStore::open(config).unwrap();
    let (run, tenant) = start(&store);
    assert_eq!(events(&store, &run).len(), 1);
    assert_eq!(store.condition(), Condition::Good);
    let all = RunQuery { limit: 100, ..RunQuery::default() };
    let mut written = 1;
    for round in 0..3 {
        rules.set(&[(what, file, error, 0)]).unwrap();
        let other = fixtures::run_id(&format!("other-{round}"));
        let started = wait(store.append(fixtures::start_append(&other, &tenant))).is_ok();
        let (more, refused) = fill(&store, 9_000);
        written += more;
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert!(matches!(store.condition(), Condition::Full { .. }));
        for _ in 0..3 {
            // Of everything that was answered, the last as well, whether the database has it or not.
            assert_eq!(events(&store, &run).len(), written);
            assert_eq!(wait(store.get_run(&Scope::System, &other)).unwrap().is_some(), started);
            let listed = wait(store.list_runs(&Scope::System, &all)).unwrap();
            assert_eq!(listed.iter().any(|row| row.run_id == other), started);
            assert!(matches!(wait(store.append(one_more(&run, &tenant, 9_000))), Err(Error::Full { .. })));
        }
        rules.set(&[]).unwrap();
        let since = Instant::now();
        while store.condition() != Condition::Good {
            match wait(store.append(one_more(&run, &tenant, 100))) {
                Ok(_) => written += 1,
                Err(error) => assert!(matches!(error, Error::Full { .. }), "{error}"),
            }
            assert!(since.elapsed() < DEADLINE, "it does not go on");
        }
        assert_eq!(events(&store, &run).len(), written);
    }
    wait(store.close()).unwrap();
    println!("written {written} events");
}

#[test]
fn after_an_error_of_the_disk_nothing_more_is_written_and_the_store_closes() {
    for (case, rule) in ERRORS.iter().enumerate() {
        let dir = folder();
        let data = dir.path().join("data");
        let text = run("disk::error", &data, case);
        let store = open(&data);
        let found = events(&store, &names().0).len();
        // The one that met the error may have happened.
        let written = told(&text, "written");
        assert!((written..=written + 1).contains(&found), "{rule:?}: {found} of {written}");
        assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn error() {
    let Some((dir, rules, case)) = asked() else { return };
    let (what, file, error) = ERRORS[case];
    let store = open(&dir);
    let (run, tenant) = start(&store);
    assert_eq!(events(&store, &run).len(), 1);
    // Once: whoever tried again would be told that all is well.
    rules.set(&[(what, file, error, 1)]).unwrap();
    let (written, _) = fill(&store, 60_000);
    let mut watch = store.watch();
    let stopped = |condition: &Condition| matches!(condition, Condition::Stopped { .. });
    wait(async { watch.wait_for(stopped).await.map(drop) }).unwrap();
    for _ in 0..3 {
        let later = wait(store.append(one_more(&run, &tenant, 100))).unwrap_err();
        assert!(matches!(&later, Error::Unavailable { .. }), "{later}");
    }
    // Answered, in whatever way.
    let _ = wait(store.read_run(&Scope::System, &run, 0, u32::MAX));
    let _ = wait(store.close());
    println!("written {} events", written + 1);
}
