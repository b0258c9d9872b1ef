//! The process ends at every crash point, and the next one finds everything that was answered.
//!
//! Each round runs `worker` below in a process of its own. This shows what a killed process leaves; what a power cut
//! leaves is shown under `tests/power`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use servo_model::{RunId, Timestamp};
use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Append, LogStore, RunStore, Scope};
use servo_store_sqlite::CRASH_POINTS;

use crate::support::{folder, one_more, open, wait};

/// Where the worker works and at which point, and for the how manieth time, it ends; unset everywhere else.
const DIR: &str = "SERVO_TEST_CRASH_DIR";
const POINT: &str = "SERVO_TEST_CRASH_POINT";
const NTH: &str = "SERVO_TEST_CRASH_NTH";
/// The worker's exit status when it came to its end.
const NEVER_REACHED: i32 = 86;

/// True if the worker ended at the point.
fn crash(dir: &Path, point: &str, nth: u64) -> bool {
    let worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::worker", "--nocapture"])
        .env(DIR, dir)
        .env(POINT, point)
        .env(NTH, nth.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&worker.stderr);
    assert!(!text.contains("panicked"), "{point}: {text}");
    worker.status.code() != Some(NEVER_REACHED)
}

fn check(dir: &Path, point: &str) {
    let data = dir.join("data");
    let store = open(&data);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new(), "{point}");
    let acknowledged = fs::read_to_string(dir.join("acknowledged")).unwrap_or_default();
    let last = |word: &str, run: &str| {
        let prefix = format!("{word} {run} ");
        acknowledged
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix))
            .map(|number| number.parse::<u64>().unwrap())
            .max()
    };
    for run in ["kept", "_system"] {
        let head = wait(store.read_run(&Scope::System, &fixtures::run_id(run), 0, 0)).map_or(0, |page| page.head_seq);
        assert!(head >= last("appended", run).unwrap_or(0), "{point}: an answered event of {run} is lost");
    }
    for line in acknowledged.lines().filter_map(|line| line.strip_prefix("gone ")) {
        let run = wait(store.get_run(&Scope::System, &fixtures::run_id(line))).unwrap();
        assert!(run.is_none(), "{point}: {line} was deleted and is back");
    }
    let kept = wait(store.read_run(&Scope::System, &fixtures::run_id("kept"), 0, u32::MAX));
    let sequences = kept.into_iter().flat_map(|page| page.events).map(|event| event.run_seq);
    assert!(sequences.zip(1..).all(|(seq, expected)| seq == expected), "{point}: a gap");
}

/// Every point ends the process once, and the process after it once more from what is left.
fn survive(nth: u64) {
    for point in CRASH_POINTS.all() {
        let dir = folder();
        let recovers = *point == "sqlite.recover.applied";
        if recovers {
            // There is something to recover after a crash.
            assert!(crash(dir.path(), "sqlite.append.after_commit", 3));
        }
        let reached = crash(dir.path(), point, nth);
        let once = point.starts_with("sqlite.migration") || *point == "sqlite.restore.before_rename" || recovers;
        assert!(reached || (once && nth > 1), "{point} was not reached {nth} times");
        check(dir.path(), point);
        crash(dir.path(), point, nth);
        check(dir.path(), point);
    }
}

#[test]
fn every_crash_point_is_reached_and_survived() {
    survive(1);
}

#[test]
fn every_crash_point_is_survived_later_on() {
    survive(2);
}

#[test]
fn unknown_points_cannot_be_armed() {
    assert!(!CRASH_POINTS.arm("sqlite.no.such.point", 1));
}

/// A whole line at once: the process may die between any two calls, and half a note says nothing.
fn note(notes: &mut File, line: &str) {
    notes.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Does everything that has a crash point, and notes what it was told.
#[test]
fn worker() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let point = std::env::var_os(POINT).unwrap();
    let nth = std::env::var_os(NTH).unwrap();
    assert!(CRASH_POINTS.arm(point.to_str().unwrap(), nth.to_str().unwrap().parse().unwrap()));
    let mut notes = OpenOptions::new().create(true).append(true).open(dir.join("acknowledged")).unwrap();
    let data = dir.join("data");
    let tenant = fixtures::tenant("acme");
    let (kept, system) = (fixtures::run_id("kept"), RunId::system());
    for round in 0..2 {
        let store = open(&data);
        if wait(store.get_run(&Scope::System, &kept)).unwrap().is_none() {
            wait(store.append(fixtures::start_append(&kept, &tenant))).unwrap();
            note(&mut notes, "appended kept 1");
        }
        for _ in 0..70 {
            let seq = wait(store.append(one_more(&kept, &tenant, 60_000))).unwrap().streams[0].events[0].run_seq;
            note(&mut notes, &format!("appended kept {seq}"));
        }
        for how in ["deleted", "retired"] {
            let name = format!("{how}-{round}-{}", fixtures::unique());
            let run = fixtures::run_id(&name);
            let mut append = fixtures::start_append(&run, &tenant);
            append.streams[0].row = Some(fixtures::finished_row(&run, &tenant, Timestamp::from_millis(1)));
            append.streams[0].events.extend((0..300).map(|_| fixtures::fresh_event(&run)));
            // A name that an interrupted round has left behind is as good.
            let _ = wait(store.append(append));
            match how {
                "deleted" => wait(store.delete_run(&Scope::System, &run)).unwrap(),
                _ => assert!(wait(store.retire(Timestamp::from_millis(2), 10)).unwrap() >= 1),
            }
            note(&mut notes, &format!("gone {name}"));
        }
        let facts = fixtures::system_stream((0..5).map(|_| fixtures::fresh_event(&system)).collect());
        let seq = wait(store.append(Append::one(facts))).unwrap().streams[0].events[4].run_seq;
        note(&mut notes, &format!("appended _system {seq}"));
        wait(store.trim_system(Timestamp::MAX, 3)).unwrap();
        let copy = dir.join(format!("copy-{round}-{}", std::process::id()));
        wait(store.backup(&copy)).unwrap();
        wait(store.close()).unwrap();
        if round == 1 {
            servo_store_sqlite::restore(&copy, &dir.join(format!("restored-{}", std::process::id()))).unwrap();
        }
    }
    std::process::exit(NEVER_REACHED);
}
