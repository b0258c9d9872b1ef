//! Bytes of the file that changed while no server had it: each is found by whoever reads the event, and by the check of the store.

use std::fs;
use std::path::Path;

use servo_canon::Digest;
use servo_model::{RunId, Timestamp};
use servo_store::testkit::fixtures;
use servo_store::{
    AdminStore, Append, EntrypointRow, EntrypointStore, Error, Expected, Integrity, LogStore, NewEvent, Position,
    Scope, StoredEvent,
};
use servo_store_sqlite::{DATABASE_FILE, SqliteStore};
use tempfile::TempDir;

use crate::support::{config, events, folder, names, one_more, open, open_old, raw, start, wait};

/// Two runs of a few events each, the second with a payload in `blobs`; closed.
fn written(sabotage: Option<&str>) -> TempDir {
    let dir = folder();
    let mut config = config(dir.path());
    config.sabotage = sabotage.map(str::to_owned);
    let store = SqliteStore::open(config).unwrap();
    let (run, tenant) = start(&store);
    for number in 0..4 {
        let payload = format!("{{\"amount\":{number}}}");
        let event = NewEvent { payload, ..fixtures::fresh_event(&run) };
        wait(store.append(Append::one(fixtures::add(&run, &tenant, Expected::Any, vec![event])))).unwrap();
    }
    wait(store.append(fixtures::start_append(&other(), &tenant))).unwrap();
    wait(store.append(one_more(&other(), &tenant, 100_000))).unwrap();
    wait(store.close()).unwrap();
    dir
}

fn other() -> RunId {
    fixtures::run_id("other")
}

type Runs = [Vec<StoredEvent>; 2];

fn all(store: &SqliteStore) -> servo_store::Result<Runs> {
    let read = |run: &RunId| wait(store.read_run(&Scope::System, run, 0, 100)).map(|page| page.events);
    Ok([read(&names().0)?, read(&other())?])
}

/// What a reader and the check of the store say of a file.
fn judge(file: &[u8]) -> (servo_store::Result<Runs>, servo_store::Result<Integrity>) {
    let dir = folder();
    fs::write(dir.path().join(DATABASE_FILE), file).unwrap();
    match SqliteStore::open(config(dir.path())) {
        Ok(store) => (all(&store), wait(store.integrity())),
        Err(error) => (Err(error.clone()), Err(error)),
    }
}

/// Where the bytes of a value lie in the file.
fn place(file: &[u8], dir: &Path, sql: &str) -> std::ops::Range<usize> {
    let value: Vec<u8> = raw(dir).query_row(sql, [], |row| row.get(0)).unwrap();
    // A long value goes on in another page.
    let head = &value[..value.len().min(1_500)];
    let at = file.windows(head.len()).position(|window| window == head).unwrap();
    at..at + head.len()
}

const PACK: &str = "SELECT events FROM packs WHERE run_id = 'run' ORDER BY last_seq LIMIT 1";
const BLOB: &str = "SELECT bytes FROM blobs";

#[test]
fn every_changed_byte_of_a_stored_run_is_found() {
    let dir = written(None);
    let file = fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    let (whole, integrity) = judge(&file);
    let (whole, integrity) = (whole.unwrap(), integrity.unwrap());
    assert_eq!((whole[0].len(), whole[1].len(), integrity), (5, 2, Integrity::default()));
    let (pack, blob) = (place(&file, dir.path(), PACK), place(&file, dir.path(), BLOB));
    // With the other columns of the pack's row, which lie before and behind its events.
    let row = pack.start - 60..pack.end + 4;
    let every = row.step_by(3).chain(blob.step_by(331));
    let mut changed = 0;
    for (at, mask) in every.zip([0x01, 0x80, 0xff].into_iter().cycle()) {
        let mut garbled = file.clone();
        garbled[at] ^= mask;
        let (read, integrity) = judge(&garbled);
        let is_found = integrity.is_err() || integrity.is_ok_and(|found| found != Integrity::default());
        match read {
            // Nothing of what was recorded is given as something else.
            Ok(read) => assert_eq!(read, whole, "byte {at} of {pack:?} by {mask}"),
            Err(error) => {
                changed += 1;
                assert!(
                    matches!(error, Error::Corrupt { .. } | Error::TooNew { .. } | Error::NotFound),
                    "{at}: {error}"
                );
            }
        }
        let is_of_events = (pack.start..pack.end).contains(&at);
        assert!(is_found || !is_of_events, "byte {at} of {pack:?} by {mask}");
    }
    assert!(changed > 100, "{changed}");
}

/// The control: without checksums a changed payload is given as if it had been written.
#[test]
fn control_without_checksums_a_changed_byte_passes() {
    let dir = written(Some("no-checksums"));
    let mut file = fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    let text = b"\"amount\":2";
    let at = file.windows(text.len()).position(|window| window == text).unwrap();
    file[at + text.len() - 1] = b'9';
    let (read, integrity) = judge(&file);
    let read = read.unwrap();
    assert!(read[0].iter().any(|event| event.payload == "{\"amount\":9}"), "{read:?}");
    assert_eq!(integrity.unwrap(), Integrity { problems: Vec::new(), without_checksum: 7 });
}

#[test]
fn a_changed_byte_is_named_and_the_rest_goes_on() {
    let dir = written(None);
    let conn = raw(dir.path());
    conn.execute_batch("DROP TRIGGER blobs_no_update").unwrap();
    conn.execute_batch("UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'a', 'b') AS BLOB)").unwrap();
    drop(conn);
    let store = open(dir.path());
    let read = wait(store.read_run(&Scope::System, &other(), 0, 100));
    let Err(Error::Corrupt { detail }) = read else { panic!("{read:?}") };
    assert_eq!(detail, "event 2 of run other is not as written: the checksum differs");
    assert_eq!(events(&store, &names().0).len(), 5);
    let log = wait(store.read_log(Position::START, 100)).unwrap();
    assert_eq!((log.events.len(), log.unreadable.len()), (6, 1), "{log:?}");
    assert_eq!(log.unreadable[0].run.as_ref().map(|(run, _)| run), Some(&other()));
    let mut problems = wait(store.integrity()).unwrap().problems;
    problems.sort();
    assert_eq!(
        problems,
        ["a payload of run other has changed", "event 2 of run other is not as written: the checksum differs"]
    );
}

/// Rows of a version that wrote no checksums are read as they are, and counted.
#[test]
fn what_was_written_without_a_checksum_is_read() {
    let dir = folder();
    let store = open_old(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(one_more(&run, &tenant, 100_000))).unwrap();
    let before = events(&store, &run);
    wait(store.close()).unwrap();
    let conn = raw(dir.path());
    conn.execute_batch("DROP TRIGGER events_no_update; UPDATE events SET checksum = NULL").unwrap();
    let store = open(dir.path());
    assert_eq!(events(&store, &run), before);
    assert_eq!(wait(store.integrity()).unwrap(), Integrity { problems: Vec::new(), without_checksum: 2 });
    wait(store.close()).unwrap();
    // A large payload had a digest even then.
    conn.execute_batch("DROP TRIGGER blobs_no_update; UPDATE blobs SET bytes = x'7b7d'").unwrap();
    let store = open(dir.path());
    let read = wait(store.read_run(&Scope::System, &run, 0, 100));
    assert!(matches!(&read, Err(Error::Corrupt { detail }) if detail.contains("payload")), "{read:?}");
}

fn entrypoint() -> EntrypointRow {
    EntrypointRow {
        id: "ep_1".to_owned(),
        tenant: names().1,
        owner_type: "tenant".to_owned(),
        owner_id: "acme".to_owned(),
        address: "a.b".to_owned(),
        version: "1.0.0".to_owned(),
        status: "active".to_owned(),
        adapter: "starlark".to_owned(),
        title: "t".to_owned(),
        tags: vec!["x".to_owned()],
        document: "{\"code\":\"return one\"}".to_owned(),
        created_at: Timestamp::from_millis(1),
        updated_at: Timestamp::from_millis(1),
        revision: 1,
    }
}

#[test]
fn a_changed_snapshot_function_or_entrypoint_is_found() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    let snapshot = servo_store::log::StoredSnapshot { run_seq: 1, state: "{}".to_owned() };
    wait(store.put_snapshot(&run, &tenant, snapshot)).unwrap();
    wait(store.put_entrypoint(entrypoint())).unwrap();
    assert_eq!(wait(store.integrity()).unwrap(), Integrity::default());
    wait(store.close()).unwrap();
    let conn = raw(dir.path());
    conn.execute_batch("UPDATE snapshots SET state = '[]'").unwrap();
    let function = "INSERT INTO functions VALUES ('acme', 'f', 1);
                    INSERT INTO function_versions VALUES ('acme', 'f', 1, ?1, '{}', 0)";
    let (first, second) = function.split_once(';').unwrap();
    conn.execute(first, []).unwrap();
    conn.execute(second, [Digest::of(b"[]").as_bytes()]).unwrap();
    conn.execute_batch("UPDATE entrypoints SET document = replace(document, 'one', 'two')").unwrap();
    let store = open(dir.path());
    let read = wait(store.get_entrypoint(&Scope::System, "ep_1"));
    assert!(matches!(&read, Err(Error::Corrupt { detail }) if detail.contains("entrypoint ep_1")), "{read:?}");
    assert!(wait(store.find_entrypoint(&tenant, "a.b")).is_err(), "it is not called");
    let found = wait(store.snapshot_at(&Scope::System, &run, 9)).unwrap().unwrap();
    assert_eq!((found.run_seq, found.state.as_str()), (1, ""), "it is not used");
    assert_eq!(
        wait(store.integrity()).unwrap().problems,
        [
            "the snapshot of run run at event 1 is not as written; it is not used",
            "version 1 of function f is not as registered",
            "entrypoint ep_1 of tenant acme is not as written: the checksum differs"
        ]
    );
    wait(store.remove_entrypoint(&tenant, "ep_1", 1)).unwrap();
    assert_eq!(wait(store.integrity()).unwrap().problems.len(), 2);
}
