//! Reading is compared with a list: whatever is a row and whatever is packed, nobody can tell.

use std::sync::Arc;

use proptest::prelude::*;
use servo_store::Integrity;
use servo_store::testkit::fixtures;

use super::fixture::{Filled, Plan, insert_row, packed, packing, row, run, tenant};
use super::*;

fn page_of<'e>(events: impl Iterator<Item = &'e Arc<StoredEvent>>, limit: u32, bytes_max: usize) -> Vec<StoredEvent> {
    let mut bytes = PageBytes::new(bytes_max);
    let fits = events.take(limit as usize).take_while(|event| bytes.takes(event.payload.len()));
    fits.map(|event| StoredEvent::clone(event)).collect()
}

const SIZES: [(u32, usize); 7] =
    [(0, 100), (1, 0), (1, 1_000), (3, 1_000), (100, 25), (100, usize::MAX), (u32::MAX, 70)];

fn check_runs(filled: &Filled) {
    let Filled { conn, log, numbers, .. } = filled;
    for (run_id, number) in numbers {
        let of_run: Vec<_> = log.iter().filter(|event| event.run_id == *run_id).collect();
        let head_seq = of_run.len() as u64;
        let found = head(conn, run_id).unwrap().unwrap();
        assert_eq!((found.seq, found.number, found.tenant), (head_seq, Some(*number), tenant()));
        for after in 0..head_seq + 2 {
            for (limit, bytes_max) in SIZES {
                let read = read_run(conn, &Scope::System, run_id, after, limit, bytes_max).unwrap();
                let left = of_run.iter().copied().filter(|event| event.run_seq > after);
                assert_eq!(read, RunPage { events: page_of(left, limit, bytes_max), head_seq }, "{after} {limit}");
            }
        }
        for event in &of_run {
            let StoredEvent { run_seq, event_id, emitted_at, .. } = ***event;
            let found = find_key(conn, *number, event.idempotency_key).unwrap();
            assert_eq!(found, Some(EventOutcome { run_seq, event_id, emitted_at, inserted: false }));
        }
        assert_eq!(find_key(conn, *number, Digest::of(b"another")).unwrap(), None);
        let rows: Vec<i64> = conn
            .prepare("SELECT position FROM events WHERE run_number = ?1")
            .unwrap()
            .query_map([number], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(has_rows(conn, *number).unwrap(), !rows.is_empty());
        let is_packed = |event: &&&Arc<StoredEvent>| !rows.contains(&int(event.position.id));
        let first =
            |event: &&Arc<StoredEvent>| u64::from_be_bytes(event.idempotency_key.as_bytes()[..8].try_into().unwrap());
        let mut keys: Vec<_> = of_run.iter().filter(is_packed).map(first).collect();
        let mut found = pack_keys(conn, *number).unwrap();
        keys.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, keys);
    }
}

fn check_log(filled: &Filled) {
    let Filled { conn, log, .. } = filled;
    let last = filled.last_position();
    assert_eq!(log_head(conn).unwrap().id, last);
    assert_eq!(next_position(conn).unwrap(), int(last) + 1);
    for after in 0..last + 2 {
        for (limit, bytes_max) in SIZES {
            let from = Position::of_id(after);
            let read = read_log(conn, from, limit, bytes_max).unwrap();
            let events = page_of(log.iter().filter(|event| event.position.id > after), limit, bytes_max);
            let events = events.into_iter().map(std::sync::Arc::new).collect();
            assert_eq!(read, LogPage::new(events, from), "{after} {limit}");
        }
        for until in (after..last + 2).chain([u64::MAX]) {
            let between = log.iter().filter(|event| event.position.id > after && event.position.id <= until);
            let between = between.count() as u64;
            for most in [0, 1, 5, u64::MAX] {
                let counted = count_log(conn, Position::of_id(after), Position::of_id(until), most).unwrap();
                assert_eq!(counted, between.min(most), "{after} {until} {most}");
            }
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    (0..3_usize, prop::bool::weighted(0.25), prop_oneof![3 => Just(0), 1 => 1..4_u64], 0..30_usize)
        .prop_map(|(run, is_row, gap, bytes)| Plan { run, is_row, gap, bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_and_packs_are_one_log(flushes in prop::collection::vec(prop::collection::vec(plan(), 0..14), 1..5)) {
        let mut filled = Filled::new();
        for flush in &flushes {
            filled.flush(flush);
        }
        check_runs(&filled);
        check_log(&filled);
        prop_assert_eq!(crate::sql::admin::integrity(&filled.conn).unwrap(), Integrity::default());
    }
}

#[test]
fn an_empty_log_has_no_head() {
    let filled = Filled::new();
    check_log(&filled);
    assert_eq!(pack_keys(&filled.conn, 7).unwrap(), Vec::<u64>::new());
}

#[test]
fn a_page_opens_no_pack_that_it_does_not_reach() {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(0), packed(1), packed(1)]);
    filled.flush(&[row(0), packed(0)]);
    let sql = "DROP TRIGGER packs_no_update; UPDATE packs SET events = x'00', checksum = NULL WHERE last_position > 2";
    filled.conn.execute_batch(sql).unwrap();
    let conn = &filled.conn;
    assert_eq!(read_log(conn, Position::START, 2, 1_000).unwrap().events.len(), 2);
    assert_eq!(read_run(conn, &Scope::System, &run(0), 0, 2, 1_000).unwrap().events.len(), 2);
    let past = read_log(conn, Position::START, 3, 1_000).unwrap();
    let detail = "the pack that ends at position 4 has a version that this program does not know".to_owned();
    let unreadable = Unreadable { position: Position::of_id(4), run: Some((run(1), tenant())), detail };
    assert_eq!((past.events.len(), past.next.id, &past.unreadable[0]), (3, 5, &unreadable));
    let next = past.unreadable.iter().map(|gone| gone.position.id).collect::<Vec<_>>();
    assert_eq!(next, [4, 6], "to know which is first, the beginning of the next one is looked at");
    assert!(find_key(conn, filled.numbers[&run(1)], Digest::of(b"another")).is_err());
    assert!(pack_keys(conn, filled.numbers[&run(1)]).is_err());
    assert_eq!(count_log(conn, Position::START, Position::of_id(6), 100).unwrap(), 6, "whole packs are not opened");
}

#[test]
fn a_pack_that_is_not_what_its_row_says_is_damage() {
    for change in ["last_seq = last_seq + 1", "first_position = first_position + 1", "first_seq = 2, last_seq = 2"] {
        let mut filled = Filled::new();
        filled.flush(&[packed(0), packed(1), packed(0)]);
        for checksum in ["", ", checksum = NULL"] {
            let change = format!("UPDATE packs SET {change}{checksum} WHERE last_position = 3");
            filled.conn.execute_batch(&format!("DROP TRIGGER IF EXISTS packs_no_update; {change}")).unwrap();
            let read = read_log(&filled.conn, Position::START, 10, 1_000).unwrap();
            let (seen, gone) = (read.events.iter().map(|event| event.position.id), &read.unreadable[0]);
            assert_eq!(
                (seen.collect::<Vec<_>>(), gone.position.id, read.next.id),
                (vec![2], 3, 3),
                "{change}: {read:?}"
            );
        }
    }
}

#[test]
fn a_hidden_run_and_anothers_run_are_not_there() {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(0)]);
    let read = |scope: &Scope| read_run(&filled.conn, scope, &run(0), 0, 10, 1_000);
    assert_eq!(read(&Scope::Tenant(tenant())).unwrap().events.len(), 2);
    assert!(matches!(read(&Scope::Tenant(fixtures::tenant("other"))), Err(Fault::Refused(Error::NotFound))));
    filled.conn.execute("UPDATE runs SET purging = 1", []).unwrap();
    assert!(matches!(read(&Scope::System), Err(Fault::Refused(Error::NotFound))));
}

#[test]
fn only_events_that_follow_one_another_are_packed() {
    let mut filled = Filled::new();
    filled.flush(&[packed(0), packed(0), packed(0), packed(1)]);
    let number = filled.numbers[&run(0)];
    let log = |index: usize| filled.log[index].clone();
    for events in [vec![log(0), log(2)], vec![log(1), log(0)], vec![log(2), log(3)]] {
        let written = insert_pack(&filled.conn, packing(number, 100), &events);
        assert!(matches!(written, Err(Fault::Refused(Error::Corrupt { .. }))), "{events:?}");
    }
    insert_pack(&filled.conn, packing(number, 100), &[]).unwrap();
    let next = StoredEvent { run_seq: 4, position: Position::of_id(9), ..StoredEvent::clone(&log(2)) };
    let short = insert_pack(&filled.conn, packing(number, 8), &[Arc::new(next)]);
    assert!(matches!(short, Err(Fault::Sql(_))), "a pack ends at or before its flush");
}

/// Every read of packs enters an index, or goes along the table from where it begins.
#[test]
fn no_read_looks_at_all_packs() {
    let filled = Filled::new();
    let plan = |sql: &str| {
        let mut steps = filled.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = steps.parameter_count();
        let steps = steps.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get::<_, String>(3)).unwrap();
        steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
    };
    for (sql, index) in [
        (packed::OF_RUN, "INDEX packs_run (run_number=? AND last_seq>?)"),
        (packed::OF_FLUSH, "SEARCH packs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (packed::COUNTED, "SEARCH packs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ] {
        let plan = plan(sql);
        assert!(plan.contains(index), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

/// An event whose body is of a later format stops its reader, and is no damage.
#[test]
fn a_later_format_is_for_a_later_program() {
    let mut filled = Filled::new();
    filled.flush(&[packed(0)]);
    let number = filled.numbers[&run(0)];
    insert_pack(&filled.conn, packing(number, 2), &[Arc::new(later(&filled))]).unwrap();
    let is_too_new = |read: Result<(), Fault>| matches!(read, Err(Fault::Refused(Error::TooNew { .. })));
    assert!(is_too_new(read_run(&filled.conn, &Scope::System, &run(0), 0, 10, 1_000).map(drop)));
    assert!(is_too_new(read_log(&filled.conn, Position::START, 10, 1_000).map(drop)));
    let mut filled = Filled::new();
    filled.flush(&[row(0)]);
    insert_row(&filled.conn, filled.numbers[&run(0)], &later(&filled));
    assert!(is_too_new(read_run(&filled.conn, &Scope::System, &run(0), 0, 10, 1_000).map(drop)));
    assert!(is_too_new(read_log(&filled.conn, Position::START, 10, 1_000).map(drop)));
}

fn later(filled: &Filled) -> StoredEvent {
    let (format, idempotency_key) = (servo_model::event::FORMAT + 1, Digest::of(b"later"));
    let first = StoredEvent::clone(&filled.log[0]);
    StoredEvent { position: Position::of_id(2), run_seq: 2, format, idempotency_key, ..first }
}
