//! Opening: one process, files that are not ours, not whole or too new, and the settings that durability rests on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use servo_model::limits::Limits;
use servo_store::testkit::clock::ManualClock;
use servo_store::{AdminStore, Error, LogStore};
use servo_store_sqlite::{DATABASE_FILE, SCHEMA_VERSION, SqliteStore};

use crate::support::{PAGE, config, events, folder, many, names, open, raw, start, wait};

fn refused(dir: &Path) -> Error {
    SqliteStore::open(config(dir)).unwrap_err()
}

/// A closed store: everything is in the one file.
fn closed(events: usize) -> tempfile::TempDir {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(many(&run, &tenant, events))).unwrap();
    wait(store.close()).unwrap();
    dir
}

#[test]
fn a_second_opener_is_refused_and_told_who_has_it() {
    let dir = folder();
    let store = open(dir.path());
    let pid = std::process::id().to_string();
    assert!(matches!(refused(dir.path()), Error::InUse { pid: owner } if owner == pid));
    wait(store.close()).unwrap();
    let again = open(dir.path());
    assert!(matches!(refused(dir.path()), Error::InUse { .. }));
    drop(again);
    drop(open(dir.path()));
}

#[test]
fn everything_is_there_after_closing_and_after_dropping() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    let secret = wait(store.secret()).unwrap();
    wait(store.append(many(&run, &tenant, 3))).unwrap();
    let before = events(&store, &run);
    assert_eq!(before.len(), 4);
    wait(store.close()).unwrap();
    assert!(!dir.path().join("servo.db-wal").exists(), "a closed store is one file");
    let store = open(dir.path());
    assert_eq!(events(&store, &run), before);
    assert_eq!(wait(store.secret()).unwrap(), secret);
    wait(store.append(many(&run, &tenant, 1))).unwrap();
    drop(store);
    assert_eq!(events(&open(dir.path()), &run).len(), 5);
}

#[test]
fn what_durability_rests_on_is_read_back() {
    let dir = folder();
    let store = open(dir.path());
    let info = wait(store.info()).unwrap();
    for setting in [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"), ("wal_autocheckpoint", "0")] {
        let setting = (setting.0.to_owned(), setting.1.to_owned());
        assert!(info.settings.contains(&setting), "{setting:?} in {:?}", info.settings);
    }
    assert_eq!((info.kind, info.schema_version, info.single_process), ("sqlite", SCHEMA_VERSION, true));
    assert!(info.size_bytes > 0);
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let dir = closed(1);
    let conn = raw(dir.path());
    conn.execute("INSERT INTO schema_migrations VALUES (?1, 'later', '', 0)", [SCHEMA_VERSION + 1]).unwrap();
    conn.close().unwrap();
    let before = fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    let error = refused(dir.path());
    assert!(
        matches!(error, Error::TooNew { found, supported } if found == SCHEMA_VERSION + 1 && supported == SCHEMA_VERSION)
    );
    assert_eq!(fs::read(dir.path().join(DATABASE_FILE)).unwrap(), before);
}

#[test]
fn an_edited_migration_is_noticed() {
    let dir = closed(1);
    raw(dir.path()).execute("UPDATE schema_migrations SET sha256 = 'ab' WHERE version = 1", []).unwrap();
    let error = refused(dir.path()).to_string();
    assert!(error.contains("migration 1 (init) was applied with checksum ab"), "{error}");
}

#[test]
fn files_that_are_no_store_are_damage_with_a_name() {
    let dir = folder();
    fs::write(dir.path().join(DATABASE_FILE), "this is no database, and long enough to look like one".repeat(100))
        .unwrap();
    let error = refused(dir.path());
    assert!(
        matches!(&error, Error::Corrupt { detail } if detail.contains("servo.db is not a SQLite database")),
        "{error}"
    );

    let dir = folder();
    Connection::open(dir.path().join(DATABASE_FILE)).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let error = refused(dir.path());
    assert!(matches!(&error, Error::Corrupt { detail } if detail.contains("not one of Servo")), "{error}");
}

#[test]
fn a_truncated_file_is_damage() {
    let dir = closed(500);
    let path = dir.path().join(DATABASE_FILE);
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() / 2, whole.len() - PAGE, PAGE, 100] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refused(dir.path());
        assert!(matches!(error, Error::Corrupt { .. }), "{length} bytes: {error}");
    }
    fs::write(&path, &whole).unwrap();
    drop(open(dir.path()));
}

#[test]
fn a_damaged_page_is_found_by_the_check_and_not_served() {
    let dir = closed(2_000);
    let path = dir.path().join(DATABASE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / PAGE * PAGE;
    bytes[middle..middle + PAGE].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    // The pages that opening needs are whole.
    let store = open(dir.path());
    let found = wait(store.integrity());
    assert!(matches!(&found, Ok(found) if !found.problems.is_empty()) || matches!(found, Err(Error::Corrupt { .. })));
    drop(store);
}

#[test]
fn a_folder_that_cannot_be_made_is_unavailable() {
    let dir = folder();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(refused(&file.join("data")), Error::Unavailable { maybe_written: false, .. }));
}

#[test]
fn missing_folders_are_made_for_their_owner_only() {
    let dir = folder();
    let deep = dir.path().join("a/b/c");
    drop(open(&deep));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&deep).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn an_ephemeral_store_is_a_file_until_it_is_dropped() {
    let store = SqliteStore::ephemeral(Limits::default(), ManualClock::new().time_source()).unwrap();
    let (run, _) = start(&store);
    assert_eq!(events(&store, &run).len(), 1);
    let path = store.path().to_owned();
    assert!(path.is_file());
    let clone = store.clone();
    drop(store);
    assert_eq!(events(&clone, &run).len(), 1);
    drop(clone);
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn a_closed_store_says_so() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.close()).unwrap();
    assert!(matches!(wait(store.append(many(&run, &tenant, 1))), Err(Error::Closed)));
    assert!(matches!(wait(store.log_head()), Err(Error::Closed)));
    assert!(matches!(wait(store.integrity()), Err(Error::Closed)));
    assert!(matches!(wait(store.backup(&dir.path().join("copy"))), Err(Error::Closed)));
    assert!(matches!(wait(store.close()), Err(Error::Closed)));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_for_their_owner_whatever_the_folder_allows() {
    let dir = folder();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let all = |store: &SqliteStore| {
        let (run, tenant) = names();
        wait(store.append(many(&run, &tenant, 1))).unwrap();
        let files: Vec<_> = fs::read_dir(&data).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 6, "{files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    };
    let store = open(&data);
    start(&store);
    all(&store);
    let copy = dir.path().join("copy");
    wait(store.backup(&copy)).unwrap();
    assert_eq!(mode(&copy), 0o600);
    wait(store.close()).unwrap();
    // Of an earlier version, or of somebody's copy.
    for file in fs::read_dir(&data).unwrap() {
        fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(0o664)).unwrap();
    }
    all(&open(&data));
}

#[test]
fn no_file_of_the_store_is_opened_through_a_link() {
    for name in ["servo.db", "servo.db-wal", "servo.db-shm", "servo.redo-a", "servo.redo-b", "servo.lock"] {
        for there in [true, false] {
            let dir = folder();
            let (data, precious) = (dir.path().join("data"), dir.path().join("precious"));
            fs::create_dir(&data).unwrap();
            if there {
                fs::write(&precious, "").unwrap();
            }
            std::os::unix::fs::symlink(&precious, data.join(name)).unwrap();
            let error = refused(&data).to_string();
            assert!(error.contains(&format!("{name} is a symbolic link")), "{error}");
            assert_eq!(precious.exists(), there, "{name}");
            assert!(!there || fs::read(&precious).unwrap().is_empty(), "{name}");
        }
    }
}

/// What is acknowledged must be where the next start looks for it.
#[test]
fn a_folder_that_is_moved_or_replaced_stops_the_store() {
    let moved = |data: &Path, aside: &Path| fs::rename(data, aside).unwrap();
    let replaced = |data: &Path, aside: &Path| {
        fs::create_dir(aside).unwrap();
        fs::rename(data.join(DATABASE_FILE), aside.join(DATABASE_FILE)).unwrap();
        fs::write(data.join(DATABASE_FILE), "").unwrap();
    };
    for harm in [moved as fn(&Path, &Path), replaced] {
        let dir = folder();
        let (data, aside) = (dir.path().join("data"), dir.path().join("aside"));
        let store = open(&data);
        let (run, tenant) = start(&store);
        assert_eq!(events(&store, &run).len(), 1);
        harm(&data, &aside);
        let mut watch = store.watch();
        let stopped = wait(async {
            loop {
                if let Err(error) = store.append(many(&run, &tenant, 1)).await {
                    watch.wait_for(|now| matches!(now, servo_store::admin::Condition::Stopped { .. })).await.unwrap();
                    return error;
                }
            }
        });
        assert!(stopped.to_string().contains("moved or replaced"), "{stopped}");
    }
}
