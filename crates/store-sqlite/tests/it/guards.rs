//! The database itself keeps the log's rules, whoever writes to the file.

use rusqlite::{Connection, params};
use servo_store::AdminStore;
use servo_store::testkit::fixtures;

use crate::support::{events, folder, many, names, one_more, open, open_old, raw, start, wait};

/// A run with three events, one of them with a payload in `blobs`, and somebody else's connection.
fn written() -> (tempfile::TempDir, Connection) {
    let dir = folder();
    let store = open_old(dir.path());
    let (run, tenant) = start(&store);
    wait(servo_store::LogStore::append(&store, many(&run, &tenant, 1))).unwrap();
    wait(servo_store::LogStore::append(&store, one_more(&run, &tenant, 100_000))).unwrap();
    wait(store.close()).unwrap();
    let conn = raw(dir.path());
    (dir, conn)
}

fn refusal(conn: &Connection, sql: &str) -> String {
    conn.execute(sql, []).unwrap_err().to_string()
}

const COPY: &str = "INSERT INTO events (run_number, run_id, run_seq, tenant_id, event_id, event_type, idempotency_key, emitted_at, \
                    emitted_by, payload) SELECT run_number, run_id, ?1, tenant_id, event_id, event_type, ?2, emitted_at, emitted_by, \
                    '{}' FROM events WHERE run_seq = 2";

// ES-005
#[test]
fn a_sequence_is_given_once() {
    let (_dir, conn) = written();
    let error = conn.execute(COPY, params![2, [7_u8; 32]]).unwrap_err().to_string();
    assert!(error.contains("UNIQUE constraint failed: events.run_number, events.run_seq"), "{error}");
    // With a sequence of its own the same row is taken.
    assert_eq!(conn.execute(COPY, params![9, [7_u8; 32]]).unwrap(), 1);
}

// ES-006
#[test]
fn a_key_is_taken_once() {
    let (_dir, conn) = written();
    let key: Vec<u8> =
        conn.query_row("SELECT idempotency_key FROM events WHERE run_seq = 2", [], |row| row.get(0)).unwrap();
    let error = conn.execute(COPY, params![9, key]).unwrap_err().to_string();
    assert!(error.contains("UNIQUE constraint failed: index 'events_key'"), "{error}");
}

// ES-008
#[test]
fn events_are_neither_changed_nor_deleted() {
    let (_dir, conn) = written();
    for sql in [
        "UPDATE events SET payload = '{}'",
        "UPDATE events SET run_seq = run_seq + 10",
        "UPDATE events SET position = position + 10 WHERE run_seq = 3",
        "UPDATE blobs SET bytes = x'00'",
    ] {
        assert!(refusal(&conn, sql).contains("never changed"), "{sql}");
    }
    for sql in ["DELETE FROM events", "DELETE FROM events WHERE run_seq = 3"] {
        assert!(refusal(&conn, sql).contains("deleted only below trim_before"), "{sql}");
    }
    assert!(refusal(&conn, "DELETE FROM blobs").contains("an event has this payload"));
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    assert!(refusal(&conn, "DELETE FROM runs WHERE run_id = 'run'").contains("the run has events"));
    let left: i64 = conn.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 3);
}

// ES-008
#[test]
fn retention_may_delete_what_it_has_marked_and_no_more() {
    let (_dir, conn) = written();
    conn.execute("UPDATE runs SET trim_before = 3 WHERE run_id = 'run'", []).unwrap();
    assert!(refusal(&conn, "DELETE FROM events WHERE run_seq = 3").contains("deleted only below trim_before"));
    assert_eq!(conn.execute("DELETE FROM events WHERE run_seq < 3", []).unwrap(), 2);
}

#[test]
fn one_request_starts_one_run() {
    let (_dir, conn) = written();
    let twice = "INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, \
                 request_key, created_at, changed_seq) \
                 VALUES (?1, 'acme', '', '', '', '', 'PENDING', 'queued', x'01', 0, 0)";
    conn.execute(twice, ["a"]).unwrap();
    let error = conn.execute(twice, ["b"]).unwrap_err().to_string();
    assert!(error.contains("UNIQUE constraint failed: runs.tenant_id, runs.request_key"), "{error}");
}

#[test]
fn damage_done_past_the_guards_is_found() {
    let (dir, conn) = written();
    conn.execute_batch("DROP TRIGGER blobs_no_update; UPDATE blobs SET bytes = x'7b7d'").unwrap();
    conn.execute_batch("UPDATE dispatch_counts SET count = 5 WHERE state = 'failed'").unwrap();
    conn.execute_batch("PRAGMA foreign_keys = off; INSERT INTO timers VALUES ('nobody', 'acme', 1)").unwrap();
    drop(conn);
    let store = open(dir.path());
    let mut problems = wait(store.integrity()).unwrap().problems;
    problems.sort();
    assert_eq!(
        problems,
        [
            "a payload of run run has changed",
            "a row of timers names a run that is not there",
            "event 3 of run run is not as written: the checksum differs",
            "the number of failed dispatches is wrong"
        ]
    );
}

#[test]
fn a_lost_payload_is_damage_and_no_empty_event() {
    let (dir, conn) = written();
    conn.execute_batch("DROP TRIGGER blobs_no_delete; DELETE FROM blobs").unwrap();
    drop(conn);
    let store = open(dir.path());
    let (run, _) = names();
    let page = wait(servo_store::LogStore::read_run(&store, &servo_store::Scope::System, &run, 0, 10));
    assert!(matches!(&page, Err(servo_store::Error::Corrupt { detail }) if detail.contains("payload")), "{page:?}");
    assert_eq!(wait(store.integrity()).unwrap().problems, ["the event at position 3 has lost its payload"]);
}

#[test]
fn payloads_around_the_threshold_come_back() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    let inline = servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
    for bytes in [inline - 1, inline, inline + 1, 6 * 1024 * 1024] {
        wait(servo_store::LogStore::append(&store, one_more(&run, &tenant, bytes))).unwrap();
        assert_eq!(events(&store, &run).pop().unwrap().payload, fixtures::payload(bytes));
    }
    // What was read is in the database.
    let blobs: i64 = raw(dir.path()).query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(blobs, 2, "only what is above the threshold");
}

/// A run with a row of its own and two packs, of sequences 5 to 6 and 7.
fn packed() -> (tempfile::TempDir, Connection) {
    let (dir, conn) = written();
    conn.execute_batch(
        "INSERT INTO packs SELECT 11, 12, 10, number, 5, 6, run_id, tenant_id, x'01', NULL FROM runs WHERE run_id = 'run';
         INSERT INTO packs SELECT 12, 12, 12, number, 7, 7, run_id, tenant_id, x'01', NULL FROM runs WHERE run_id = 'run'",
    )
    .unwrap();
    (dir, conn)
}

// ES-008
#[test]
fn packs_are_neither_changed_nor_deleted() {
    let (_dir, conn) = packed();
    for sql in ["UPDATE packs SET events = x'02'", "UPDATE packs SET last_position = 99 WHERE last_seq = 7"] {
        assert!(refusal(&conn, sql).contains("never changed"), "{sql}");
    }
    for sql in ["DELETE FROM packs", "DELETE FROM packs WHERE last_seq = 7"] {
        assert!(refusal(&conn, sql).contains("deleted only below trim_before"), "{sql}");
    }
    // A pack goes when all of its sequences may.
    conn.execute("UPDATE runs SET trim_before = 6 WHERE run_id = 'run'", []).unwrap();
    assert!(refusal(&conn, "DELETE FROM packs WHERE last_seq = 6").contains("deleted only below trim_before"));
    conn.execute("UPDATE runs SET trim_before = 7 WHERE run_id = 'run'", []).unwrap();
    assert_eq!(conn.execute("DELETE FROM packs WHERE last_seq < 7", []).unwrap(), 1);
    assert_eq!(conn.execute("DELETE FROM events", []).unwrap(), 3);
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    assert!(refusal(&conn, "DELETE FROM runs WHERE run_id = 'run'").contains("the run has events"));
    conn.execute("UPDATE runs SET trim_before = 8 WHERE run_id = 'run'", []).unwrap();
    conn.execute("DELETE FROM packs", []).unwrap();
    assert_eq!(conn.execute("DELETE FROM runs WHERE run_id = 'run'", []).unwrap(), 1);
}

// ES-005
#[test]
fn a_pack_that_cannot_be_is_refused() {
    let (_dir, conn) = packed();
    let columns = [
        ("10, 10, 9, number, 7, 7", "UNIQUE constraint failed: packs.run_number, packs.last_seq"),
        ("12, 12, 12, number, 8, 8", "UNIQUE constraint failed: packs.last_position"),
        ("20, 19, 20, number, 8, 8", "flush_end >= last_position"),
        ("20, 20, 21, number, 8, 8", "first_position"),
        ("20, 20, 20, number, 9, 8", "last_seq >= first_seq"),
        ("20, 20, 20, number, 0, 8", "first_seq > 0"),
    ];
    for (columns, words) in columns {
        let sql = format!(
            "INSERT INTO packs SELECT {columns}, run_id, tenant_id, x'01', NULL FROM runs WHERE run_id = 'run'"
        );
        let error = refusal(&conn, &sql);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_damaged_pack_is_damage_and_no_missing_event() {
    let (dir, conn) = packed();
    drop(conn);
    let store = open(dir.path());
    let (run, _) = names();
    let page = wait(servo_store::LogStore::read_run(&store, &servo_store::Scope::System, &run, 0, 10));
    assert!(matches!(&page, Err(servo_store::Error::Corrupt { detail }) if detail.contains("position 11")), "{page:?}");
    assert_eq!(
        wait(store.integrity()).unwrap().problems,
        ["the pack that ends at position 11 ends too early", "the pack that ends at position 12 ends too early"]
    );
}
