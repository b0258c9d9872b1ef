//! A redo file that a crash has cut loses what nobody was told, and one that is damaged otherwise is not read.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use servo_model::alert::AlertCode;
use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Error, LogStore, RelayStore, Scope};
use servo_store_sqlite::{CRASH_POINTS, REDO_FILES, SqliteStore};

use crate::support::{config, events, folder, names, one_more, open, start, wait};

/// The worker's folder; unset everywhere else.
const DIR: &str = "SERVO_TEST_REDO_DIR";
/// How many appends were answered, before the one that is in the redo file and was not.
const ANSWERED: usize = 5;

/// Where the records of a file begin, and the bytes of a record in front of its body.
const RECORDS_AT: usize = 4096;
const HEADER_BYTES: usize = 28;

/// A folder whose redo has a record of each append, the last of which nobody was answered for.
fn died() -> tempfile::TempDir {
    let dir = folder();
    let worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ahead::damage::worker", "--nocapture"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&worker.stderr);
    assert!(!worker.status.success() && !text.contains("panicked"), "{text}");
    dir
}

#[test]
fn worker() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    assert!(CRASH_POINTS.arm("sqlite.append.after_commit", ANSWERED as u64 + 1));
    let store = open(dir.as_ref());
    let (run, tenant) = start(&store);
    for _ in 0..ANSWERED {
        wait(store.append(one_more(&run, &tenant, 1_000))).unwrap();
    }
    panic!("the crash point was not reached");
}

/// The file that has the records, and where each of them begins and ends.
fn records(dir: &Path) -> (PathBuf, Vec<(usize, usize)>) {
    let found = REDO_FILES.map(|name| {
        let path = dir.join(name);
        let bytes = fs::read(&path).unwrap();
        let (mut records, mut at) = (Vec::new(), RECORDS_AT);
        while let Some(header) = bytes.get(at..at + HEADER_BYTES).filter(|header| header.starts_with(b"sjr\x01")) {
            let length = u32::from_le_bytes(*header[24..].first_chunk().unwrap()) as usize;
            let end = at + (HEADER_BYTES + length).next_multiple_of(8);
            records.push((at, end));
            at = end;
        }
        (path, records)
    });
    let [(path, records)] =
        found.into_iter().filter(|(_, records)| !records.is_empty()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(records.len(), ANSWERED + 1);
    (path, records)
}

fn garble(path: &Path, at: usize) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at as u64).unwrap();
}

#[test]
fn a_whole_record_counts_though_nobody_was_told() {
    let dir = died();
    records(dir.path());
    assert_eq!(events(&open(dir.path()), &names().0).len(), ANSWERED + 1);
}

#[test]
fn a_cut_last_record_is_lost_and_nothing_else() {
    let dir = died();
    let (path, records) = records(dir.path());
    let name = path.file_name().unwrap();
    let (start, end) = records[ANSWERED];
    for cut in [start, start + 1, start + HEADER_BYTES, start.midpoint(end), end - 1] {
        let copy = folder();
        for file in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let file = OpenOptions::new().write(true).open(copy.path().join(name)).unwrap();
        file.set_len(cut as u64).unwrap();
        let store = open(copy.path());
        let (run, tenant) = names();
        assert_eq!(events(&store, &run).len(), ANSWERED, "cut at {cut} of {start} to {end}");
        assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
        // What comes next takes its place, and is as durable as the rest.
        wait(store.append(one_more(&run, &tenant, 1_000))).unwrap();
        drop(store);
        assert_eq!(events(&open(copy.path()), &run).len(), ANSWERED + 1);
    }
}

/// What the store's alert says of its redo file.
fn alerts(store: &SqliteStore) -> Vec<String> {
    let found = wait(store.alerts(&Scope::System, 10)).unwrap();
    found.into_iter().filter(|alert| alert.code == AlertCode::RedoIncomplete).map(|alert| alert.message).collect()
}

#[test]
fn a_garbled_last_record_is_as_good_as_a_cut_one_and_is_told() {
    let whole = died();
    assert_eq!(alerts(&open(whole.path())), Vec::<String>::new(), "nothing is wrong with a killed process");
    // In its body, in each part of its header, and at its end.
    for at in [0, 5, 9, 17, 25, 40, 500] {
        let dir = died();
        let (path, records) = records(dir.path());
        let (start, end) = records[ANSWERED];
        garble(&path, start + at);
        let store = open(dir.path());
        assert_eq!(events(&store, &names().0).len(), ANSWERED);
        let told = alerts(&store);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(told.len(), 1, "{at}: {told:?}");
        assert!(told[0].contains(name) && told[0].contains(&format!("behind record {ANSWERED} ")), "{at}: {told:?}");
        if at >= 40 {
            assert!(told[0].contains(&format!("{} bytes", end - start)), "{told:?}");
        }
        wait(store.close()).unwrap();
    }
}

/// The run may be lost, or not.
fn start_again(store: &SqliteStore) {
    let run = fixtures::run_id("after");
    wait(store.append(fixtures::start_append(&run, &names().1))).unwrap();
}

fn refusal(dir: &Path) -> String {
    match SqliteStore::open(config(dir)) {
        Err(Error::Corrupt { detail }) => detail,
        other => panic!("{other:?}"),
    }
}

/// Opens it all the same, as `servo store accept-loss` does.
fn accept(dir: &Path) -> SqliteStore {
    let mut config = config(dir);
    config.accept_loss = true;
    SqliteStore::open(config).unwrap()
}

#[test]
fn a_redo_file_that_is_missing_after_a_crash_is_missed() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let empty = |path: &Path| fs::write(path, "").unwrap();
    let replace = |path: &Path| fs::write(path, vec![0; 1024 * 1024]).unwrap();
    for (how, harm) in [("remove", remove as fn(&Path)), ("empty", empty), ("replace", replace)] {
        for both in [false, true] {
            let dir = died();
            let (path, _) = records(dir.path());
            harm(&path);
            if both {
                REDO_FILES
                    .map(|name| dir.path().join(name))
                    .iter()
                    .filter(|other| **other != path)
                    .for_each(|path| harm(path));
            }
            let before = REDO_FILES.map(|name| dir.path().join(name).exists());
            for _ in 0..2 {
                let detail = refusal(dir.path());
                assert!(detail.contains("servo store accept-loss --data-dir"), "{how}: {detail}");
                assert_eq!(before, REDO_FILES.map(|name| dir.path().join(name).exists()), "{how}: nothing is made");
            }
            let store = accept(dir.path());
            assert_eq!(alerts(&store).len(), 1, "{how}: one alert, however much is missing");
            wait(store.close()).unwrap();
            let store = open(dir.path());
            start_again(&store);
            assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
        }
    }
}

#[test]
fn a_store_that_was_closed_and_a_backup_need_no_redo_file() {
    let dir = folder();
    let store = open(dir.path());
    start(&store);
    let copy = dir.path().join("copy");
    wait(store.backup(&copy)).unwrap();
    wait(store.close()).unwrap();
    assert_eq!(REDO_FILES.map(|name| dir.path().join(name).exists()), [false; 2]);
    assert_eq!(events(&open(dir.path()), &names().0).len(), 1);
    let (restored, copied) = (folder(), folder());
    servo_store_sqlite::restore(&copy, restored.path()).unwrap();
    fs::copy(&copy, copied.path().join(servo_store_sqlite::DATABASE_FILE)).unwrap();
    for dir in [restored, copied] {
        assert_eq!(events(&open(dir.path()), &names().0).len(), 1);
    }
}

#[test]
fn a_garbled_record_in_the_middle_is_damage_with_a_name() {
    for record in 0..ANSWERED {
        let dir = died();
        let (path, records) = records(dir.path());
        let (start, end) = records[record];
        garble(&path, start.midpoint(end));
        let before = fs::read(&path).unwrap();
        // The second one finds it as the first one did.
        for _ in 0..2 {
            let error = SqliteStore::open(config(dir.path())).map(drop).unwrap_err();
            let name = path.to_str().unwrap();
            assert!(matches!(&error, Error::Corrupt { detail } if detail.contains(name)), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before, "and nothing is changed");
    }
}

#[test]
fn a_garbled_header_is_damage_with_a_name() {
    let dir = died();
    let (path, _) = records(dir.path());
    garble(&path, 20);
    let error = SqliteStore::open(config(dir.path())).map(drop).unwrap_err();
    let name = path.to_str().unwrap();
    assert!(matches!(&error, Error::Corrupt { detail } if detail.contains(name)), "{error}");
}
