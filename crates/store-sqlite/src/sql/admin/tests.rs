//! Packs under maintenance: they leave with their run, in portions, and damage to them is found.

use std::sync::Arc;

use rusqlite::Connection;
use servo_store::{Integrity, Position};

use super::*;
use crate::sql::events::fixture::{Filled, insert_row, packed, packing, row, run};
use crate::sql::events::insert_pack;

fn in_tx<T>(conn: &Connection, work: impl FnOnce(&mut Tx<'_>) -> Result<T, Fault>) -> T {
    let mut tx = Tx::new(conn, Timestamp::EPOCH);
    work(&mut tx).unwrap()
}

fn count(conn: &Connection, table: &str) -> u32 {
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_deleted_run_takes_its_packs_along_in_portions() {
    let mut filled = Filled::new();
    for _ in 0..150 {
        filled.flush(&[packed(0), packed(1), packed(0), row(0)]);
    }
    let conn = &filled.conn;
    assert_eq!((count(conn, "packs"), count(conn, "events")), (300, 150));
    let mut has_more = in_tx(conn, |tx| begin_delete(tx, &Scope::System, &run(0)));
    assert!(has_more && count(conn, "packs") > 200, "a transaction deletes a few");
    assert_eq!(count(conn, "runs"), 3, "the run stays until its packs are gone");
    let mut rounds = 0;
    while has_more {
        let changes_runs;
        (has_more, changes_runs) = in_tx(conn, |tx| Ok((purge_some(tx)?, tx.changes_runs)));
        assert!(changes_runs, "the writer may remember a dispatch of the run");
        rounds += 1;
    }
    assert!(rounds > 1, "{rounds}");
    assert_eq!((count(conn, "packs"), count(conn, "events"), count(conn, "runs")), (150, 0, 2));
    assert_eq!(integrity(conn).unwrap(), Integrity::default());
    assert_eq!(events::read_log(conn, Position::START, 1_000, 1_000_000).unwrap().events.len(), 150);
}

/// Two flushes of two runs: packs that end at 3 (run 0), 4 (run 1), 7 (run 0) and a row at 6.
fn filled() -> Filled {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(1), packed(0), packed(1)]);
    filled.flush(&[packed(0), row(1), packed(0)]);
    assert_eq!(integrity(&filled.conn).unwrap(), Integrity::default());
    filled.conn.execute_batch("DROP TRIGGER packs_no_update").unwrap();
    filled
}

fn problems_after(sql: &str) -> Vec<String> {
    let filled = filled();
    filled.conn.execute_batch(sql).unwrap();
    integrity(&filled.conn).unwrap().problems
}

#[test]
fn a_garbled_pack_is_found() {
    assert_eq!(
        problems_after("UPDATE packs SET events = substr(events, 1, 60), checksum = NULL WHERE last_position = 3"),
        ["the pack that ends at position 3 is too short for its events"]
    );
    let other = "UPDATE packs SET events = (SELECT events FROM packs WHERE last_position = 4), checksum = NULL \
                 WHERE last_position = 3";
    assert_eq!(problems_after(other), ["the pack that ends at position 3 has other events than its row says"]);
    let found = problems_after("UPDATE packs SET tenant_id = 'not a tenant', checksum = NULL WHERE last_position = 3");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_pack_of_no_run_or_of_another_is_found() {
    let gone = "DROP TRIGGER runs_no_delete; DELETE FROM runs WHERE run_id = 'run-0'";
    assert_eq!(problems_after(gone), ["run run-0 has packs of events and no row"]);
    assert_eq!(
        problems_after("UPDATE packs SET run_number = 77, checksum = NULL WHERE last_position = 3"),
        ["run run-0 has packs of events that say otherwise whose they are"]
    );
    assert_eq!(
        problems_after("UPDATE packs SET tenant_id = 'other', checksum = NULL WHERE last_position = 3"),
        ["run run-0 has packs of events that say otherwise whose they are"]
    );
}

#[test]
fn a_sequence_that_stands_twice_is_found() {
    let twice = ["run run-0 has two events at one sequence"];
    // Two packs.
    let mut damaged = filled();
    let (number, end) = (damaged.numbers[&run(0)], i64::MAX);
    let moved = |event: &StoredEvent, position: u64| {
        Arc::new(StoredEvent { position: Position::of_id(position), ..event.clone() })
    };
    let pair = [moved(&damaged.log[2], 20), moved(&damaged.log[4], 21)];
    assert_eq!((pair[0].run_seq, pair[1].run_seq), (2, 3));
    insert_pack(&damaged.conn, packing(number, end), &pair).unwrap();
    assert_eq!(integrity(&damaged.conn).unwrap().problems, twice);
    // A pack and a row.
    damaged = filled();
    insert_row(&damaged.conn, number, &moved(&damaged.log[2], 20));
    assert_eq!(integrity(&damaged.conn).unwrap().problems, twice);
}

#[test]
fn a_pack_across_two_flushes_is_found() {
    assert_eq!(
        problems_after("UPDATE packs SET flush_end = 5, checksum = NULL WHERE last_position <= 4"),
        ["the pack that ends at position 7 lies in two flushes",]
    );
}

#[test]
fn a_row_that_cannot_be_read_hides_no_other() {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(1), packed(2)]);
    let conn = &filled.conn;
    let listed = |limit| {
        let query = servo_store::runs::RunQuery { limit, ..Default::default() };
        runs::list(conn, &Scope::System, &query)
            .unwrap()
            .into_iter()
            .map(|row| row.run_id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!((listed(1), listed(9).len()), (vec!["run-2".to_owned()], 3));
    conn.execute("UPDATE runs SET status = 'RUNNINF' WHERE run_id = 'run-2'", []).unwrap();
    conn.execute("UPDATE runs SET visible = x'00' || visible WHERE run_id = 'run-1'", []).unwrap();
    assert_eq!(listed(9), ["run-0"]);
    assert_eq!(listed(1), ["run-0"], "a page has room for those that can be read");
    let problems = integrity(conn).unwrap().problems;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains("cannot be read")), "{problems:?}");
}

/// Every byte of a pack and every other value of its row: found by the check, and by whoever reads the run.
#[test]
fn every_changed_byte_of_a_pack_is_found_and_refused() {
    let filled = filled();
    let conn = &filled.conn;
    let bytes: Vec<u8> =
        conn.query_row("SELECT events FROM packs WHERE last_position = 3", [], |row| row.get(0)).unwrap();
    let set = |bytes: &[u8]| conn.execute("UPDATE packs SET events = ?1 WHERE last_position = 3", [bytes]).unwrap();
    for (at, mask) in (0..bytes.len()).flat_map(|at| [1, 0x80, 0xff].map(|mask| (at, mask))) {
        let mut garbled = bytes.clone();
        garbled[at] ^= mask;
        set(&garbled);
        let problems = integrity(conn).unwrap().problems;
        assert_eq!(problems, ["events 1 to 2 of run run-0 are not as written: the checksum differs"], "{at} {mask}");
        assert!(events::read_run(conn, &Scope::System, &run(0), 0, 10, 1_000).is_err(), "{at} {mask}");
        assert_eq!(events::read_run(conn, &Scope::System, &run(1), 0, 10, 1_000).unwrap().events.len(), 3);
    }
    set(&bytes);
    assert_eq!(integrity(conn).unwrap(), Integrity::default());
}

#[test]
fn every_changed_column_is_found_and_refused() {
    let changes = [
        ("packs", "flush_end = 5", "last_position = 3"),
        ("packs", "first_position = 2", "last_position = 3"),
        ("packs", "first_seq = 2, last_seq = 3", "last_position = 3"),
        ("packs", "tenant_id = 'acmf'", "last_position = 3"),
        ("packs", "run_id = 'run-1'", "last_position = 3"),
        ("packs", "run_id = 'run 0'", "last_position = 3"),
        ("packs", "checksum = checksum + 1", "last_position = 3"),
        ("events", "position = 60", "position = 6"),
        ("events", "run_id = 'run-0'", "position = 6"),
        ("events", "run_seq = 9", "position = 6"),
        ("events", "tenant_id = 'acmf'", "position = 6"),
        ("events", "event_id = randomblob(16)", "position = 6"),
        ("events", "event_type = 'test.other'", "position = 6"),
        ("events", "idempotency_key = randomblob(32)", "position = 6"),
        ("events", "emitted_at = emitted_at + 1", "position = 6"),
        ("events", "emitted_by = 'by-9'", "position = 6"),
        ("events", "occurred_at = 1", "position = 6"),
        ("events", "occurred_at = NULL", "position = 6"),
        ("events", "payload = 'y' || substr(payload, 2)", "position = 6"),
        ("events", "checksum = checksum + 1", "position = 6"),
        ("events", "format = 0", "position = 6"),
    ];
    for (table, change, which) in changes {
        let filled = filled();
        let conn = &filled.conn;
        let sql = format!("DROP TRIGGER events_no_update; UPDATE {table} SET {change} WHERE {which}");
        conn.execute_batch(&sql).unwrap();
        let problems = integrity(conn).unwrap().problems;
        assert!(!problems.is_empty(), "{table} {change}");
        let read = |index| events::read_run(conn, &Scope::System, &run(index), 0, 10, 1_000);
        assert!(read(0).is_err() || read(1).is_err(), "{table} {change}");
        let log = events::read_log(conn, Position::START, 100, 10_000).unwrap();
        assert_eq!(log.unreadable.len(), 1, "{table} {change}");
    }
}
