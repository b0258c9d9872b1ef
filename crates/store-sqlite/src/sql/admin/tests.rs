//! Packs under maintenance: they leave with their run, in portions, and damage to them is found.

use std::sync::Arc;

use rusqlite::Connection;
use servo_store::Position;

use super::*;
use crate::sql::events::fixture::{Filled, insert_row, packed, row, run};
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
    assert_eq!(integrity(conn).unwrap(), Vec::<String>::new());
    assert_eq!(events::read_log(conn, Position::START, 1_000, 1_000_000).unwrap().events.len(), 150);
}

/// Two flushes of two runs: packs that end at 3 (run 0), 4 (run 1), 7 (run 0) and a row at 6.
fn filled() -> Filled {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(1), packed(0), packed(1)]);
    filled.flush(&[packed(0), row(1), packed(0)]);
    assert_eq!(integrity(&filled.conn).unwrap(), Vec::<String>::new());
    filled.conn.execute_batch("DROP TRIGGER packs_no_update").unwrap();
    filled
}

fn problems_after(sql: &str) -> Vec<String> {
    let filled = filled();
    filled.conn.execute_batch(sql).unwrap();
    integrity(&filled.conn).unwrap()
}

#[test]
fn a_garbled_pack_is_found() {
    assert_eq!(
        problems_after("UPDATE packs SET events = substr(events, 1, 60) WHERE last_position = 3"),
        ["the pack that ends at position 3 is too short for its events"]
    );
    let other = "UPDATE packs SET events = (SELECT events FROM packs WHERE last_position = 4) WHERE last_position = 3";
    assert_eq!(problems_after(other), ["the pack that ends at position 3 has other events than its row says"]);
    let found = problems_after("UPDATE packs SET tenant_id = 'not a tenant' WHERE last_position = 3");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_pack_of_no_run_or_of_another_is_found() {
    let gone = "DROP TRIGGER runs_no_delete; DELETE FROM runs WHERE run_id = 'run-0'";
    assert_eq!(problems_after(gone), ["run run-0 has packs of events and no row"]);
    assert_eq!(
        problems_after("UPDATE packs SET run_number = 77 WHERE last_position = 3"),
        ["run run-0 has packs of events that say otherwise whose they are"]
    );
    assert_eq!(
        problems_after("UPDATE packs SET tenant_id = 'other' WHERE last_position = 3"),
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
    insert_pack(&damaged.conn, number, &pair, end).unwrap();
    assert_eq!(integrity(&damaged.conn).unwrap(), twice);
    // A pack and a row.
    damaged = filled();
    insert_row(&damaged.conn, number, &moved(&damaged.log[2], 20));
    assert_eq!(integrity(&damaged.conn).unwrap(), twice);
}

#[test]
fn a_pack_across_two_flushes_is_found() {
    assert_eq!(
        problems_after("UPDATE packs SET flush_end = 5 WHERE last_position <= 4"),
        ["the pack that ends at position 7 lies in two flushes",]
    );
}
