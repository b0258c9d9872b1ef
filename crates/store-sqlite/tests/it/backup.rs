//! Copies: a moment of the store taken while it works, and put back only where nothing is lost by it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Append, Error, Expected, LogStore, Position, StoredEvent};
use servo_store_sqlite::{DATABASE_FILE, SCHEMA_VERSION, SqliteStore, restore};

use crate::support::{PAGE, events, folder, many, one_more, open, open_old, raw, spawn, start, wait};

fn whole_log(store: &SqliteStore) -> Vec<StoredEvent> {
    let (mut events, mut after) = (Vec::new(), Position::START);
    loop {
        let page = wait(store.read_log(after, 1_000)).unwrap();
        if page.events.is_empty() {
            return events;
        }
        after = page.next;
        events.extend(page.events.into_iter().map(Arc::unwrap_or_clone));
    }
}

#[test]
fn a_backup_during_writes_is_a_moment_of_the_store() {
    let dir = folder();
    let store = open(dir.path());
    let stop = Arc::new(AtomicBool::new(false));
    let tenant = fixtures::tenant("acme");
    let writers: Vec<_> = (0..4)
        .map(|number| {
            let (store, stop, tenant) = (store.clone(), stop.clone(), tenant.clone());
            let run = fixtures::run_id(&format!("run-{number}"));
            spawn(async move {
                store.append(fixtures::start_append(&run, &tenant)).await.unwrap();
                let mut seq = 1;
                while !stop.load(Ordering::Relaxed) {
                    // Two events that only ever come together.
                    let pair = vec![fixtures::fresh_event(&run), fixtures::fresh_event(&run)];
                    let stream = fixtures::add(&run, &tenant, Expected::Seq(seq), pair);
                    store.append(Append::one(stream)).await.unwrap();
                    seq += 2;
                }
            })
        })
        .collect();
    let mut copies = Vec::new();
    for number in 0..5 {
        let acknowledged = wait(store.log_head()).unwrap();
        let path = dir.path().join(format!("copy-{number}"));
        wait(store.backup(&path)).unwrap();
        copies.push((path, acknowledged));
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        wait(writer).unwrap();
    }
    let all = whole_log(&store);
    for (path, acknowledged) in copies {
        let target = folder();
        restore(&path, target.path()).unwrap();
        let copy = open(target.path());
        let log = whole_log(&copy);
        assert!(
            log.last().map_or(Position::START, |event| event.position) >= acknowledged,
            "what was answered is in it"
        );
        assert_eq!(log[..], all[..log.len()], "the log up to a moment");
        for number in 0..4 {
            let run = fixtures::run_id(&format!("run-{number}"));
            let count = log.iter().filter(|event| event.run_id == run).count();
            assert!(count == 0 || count % 2 == 1, "no half of a transaction");
        }
        assert_eq!(wait(copy.integrity()).unwrap().problems, Vec::<String>::new());
    }
}

/// A store with some events, and its backup.
fn backed_up() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = folder();
    backed_up_by(&open(dir.path()), dir)
}

fn backed_up_by(store: &SqliteStore, dir: tempfile::TempDir) -> (tempfile::TempDir, std::path::PathBuf) {
    let (run, tenant) = start(store);
    wait(store.append(one_more(&run, &tenant, 100_000))).unwrap();
    let path = dir.path().join("copy");
    wait(store.backup(&path)).unwrap();
    wait(store.append(many(&run, &tenant, 50))).unwrap();
    wait(store.close()).unwrap();
    (dir, path)
}

#[test]
fn a_restored_store_works_and_reuses_no_position() {
    let (dir, path) = backed_up();
    let lost = wait(open(dir.path()).log_head()).unwrap();
    let target = folder();
    let deep = target.path().join("new/data");
    restore(&path, &deep).unwrap();
    let store = open(&deep);
    let (run, tenant) = crate::support::names();
    assert_eq!(events(&store, &run).len(), 2);
    wait(store.append(many(&run, &tenant, 1))).unwrap();
    assert!(wait(store.log_head()).unwrap() > lost, "a reader of the lost store misses nothing of this one");
    assert_eq!(
        fs::read_dir(&deep)
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains("partial") })
            .count(),
        0
    );
}

#[test]
fn a_backup_overwrites_nothing() {
    let dir = folder();
    let store = open(dir.path());
    let path = dir.path().join("copy");
    fs::write(&path, "mine").unwrap();
    assert!(matches!(wait(store.backup(&path)), Err(Error::Invalid { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert!(matches!(wait(store.backup(&dir.path().join("no/such/folder"))), Err(Error::Unavailable { .. })));
}

#[test]
fn restoring_over_a_store_or_under_a_process_is_refused() {
    let (dir, path) = backed_up();
    let before = fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    assert!(matches!(restore(&path, dir.path()), Err(Error::Invalid { .. })));
    let store = open(dir.path());
    assert!(matches!(restore(&path, dir.path()), Err(Error::InUse { .. })));
    wait(store.close()).unwrap();
    assert_eq!(fs::read(dir.path().join(DATABASE_FILE)).unwrap().len(), before.len());
}

/// A backup that was taken before there were packs.
#[test]
fn a_backup_of_an_earlier_schema_is_restored_and_brought_up_to_date() {
    let dir = folder();
    let (dir, path) = backed_up_by(&open_old(dir.path()), dir);
    let lost = wait(open(dir.path()).log_head()).unwrap();
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(
            "DROP TRIGGER runs_no_delete;
             CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
             WHEN EXISTS (SELECT 1 FROM events WHERE run_number = OLD.number)
             BEGIN
                 SELECT RAISE(ABORT, 'the run has events');
             END;
             DROP TABLE packs;
             ALTER TABLE events DROP COLUMN checksum;
             ALTER TABLE events DROP COLUMN format;
             ALTER TABLE snapshots DROP COLUMN checksum;
             ALTER TABLE entrypoints DROP COLUMN checksum;
             DROP INDEX runs_root;
             ALTER TABLE runs DROP COLUMN root_id;
             DELETE FROM schema_migrations WHERE version > 10",
        )
        .unwrap();
    let target = folder();
    restore(&path, target.path()).unwrap();
    let store = open(target.path());
    assert_eq!(wait(store.info()).unwrap().schema_version, SCHEMA_VERSION);
    let (run, tenant) = crate::support::names();
    assert_eq!(events(&store, &run).len(), 2);
    wait(store.append(many(&run, &tenant, 1))).unwrap();
    assert!(wait(store.log_head()).unwrap() > lost);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

fn refused(backup: &Path) -> Error {
    let target = folder();
    let error = restore(backup, target.path()).unwrap_err();
    assert!(!target.path().join(DATABASE_FILE).exists());
    error
}

#[test]
fn only_a_whole_backup_is_restored() {
    let (dir, path) = backed_up();
    assert!(matches!(refused(&dir.path().join("none")), Error::Invalid { .. }));
    let whole = fs::read(&path).unwrap();
    let bad = dir.path().join("bad");
    fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(refused(&bad), Error::Corrupt { .. }));
    fs::write(&bad, "not a database at all, but a text of some length".repeat(50)).unwrap();
    assert!(matches!(refused(&bad), Error::Corrupt { .. }));
    let mut damaged = whole.clone();
    let page = whole.len() / PAGE / 2 * PAGE;
    damaged[page..page + PAGE].fill(0x5a);
    fs::write(&bad, &damaged).unwrap();
    assert!(matches!(refused(&bad), Error::Corrupt { .. }));
    fs::write(&bad, "").unwrap();
    assert!(matches!(refused(&bad), Error::Corrupt { .. }));
    let newer = folder();
    fs::copy(&path, newer.path().join(DATABASE_FILE)).unwrap();
    raw(newer.path())
        .execute("INSERT INTO schema_migrations VALUES (?1, 'later', '', 0)", [SCHEMA_VERSION + 1])
        .unwrap();
    assert!(matches!(refused(&newer.path().join(DATABASE_FILE)), Error::TooNew { .. }));
}

/// What a killed backup leaves goes with the next one or the next start, and what a running one writes does not.
#[cfg(target_os = "linux")]
#[test]
fn what_an_interrupted_backup_left_is_removed() {
    let dir = folder();
    let (data, aside) = (dir.path().join("data"), dir.path().join("aside"));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&aside).unwrap();
    let leave = |folder: &Path| {
        for name in [".servo-old.partial", ".servo-old.partial-journal", ".servo-used.partial", ".servo-other"] {
            fs::write(folder.join(name), "left").unwrap();
        }
        let used = fs::File::open(folder.join(".servo-used.partial")).unwrap();
        used.lock().unwrap();
        used
    };
    let check = |folder: &Path| {
        let has = |name: &str| folder.join(name).exists();
        assert!(!has(".servo-old.partial") && !has(".servo-old.partial-journal"), "{}", folder.display());
        assert!(has(".servo-used.partial") && has(".servo-other"), "{}", folder.display());
    };
    let _used = [leave(&data), leave(&aside)];
    let store = open(&data);
    check(&data);
    start(&store);
    wait(store.backup(&aside.join("copy"))).unwrap();
    check(&aside);
}
