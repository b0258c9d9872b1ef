//! Deleting, retiring and trimming: in portions, for good, and without giving a number twice.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use servo_model::{RunId, Timestamp};
use servo_store::log::{StoredSnapshot, TimerChange};
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::fixtures;
use servo_store::{
    AdminStore, Append, DispatchChange, Error, Expected, LogStore, RunStore, Scope, StreamAppend, WorkStore,
};
use servo_store_sqlite::{Config, SqliteStore};

use crate::support::{events, folder, many, names, one_more, open, open_old, raw, start, wait};

/// Everything a run can have besides events.
fn furnish(store: &SqliteStore, run: &RunId, tenant: &servo_model::TenantId) {
    let mut stream = StreamAppend::new(run.clone(), tenant.clone(), Expected::Any);
    stream.timer = TimerChange::Set(Timestamp::from_millis(5));
    stream.snapshot = Some(StoredSnapshot { run_seq: 1, state: "{}".to_owned() });
    for (index, done) in [false, true].into_iter().enumerate() {
        let step = Some(fixtures::dispatch_step("step", u32::try_from(index).unwrap() + 1));
        let request_id = format!("{run}-{index}");
        stream.dispatches.push(DispatchChange::Queue { request_id: request_id.clone(), target: "t".to_owned(), step });
        if done {
            let channel = "c".to_owned();
            stream.dispatches.push(DispatchChange::Notify { request_id: request_id.clone(), channel, epoch: 1 });
            stream.dispatches.push(DispatchChange::Deliver { request_id });
        }
    }
    wait(store.append(Append::one(stream))).unwrap();
}

/// Rows that name the run, in all tables.
fn rows_left(dir: &std::path::Path, run: &RunId) -> i64 {
    let conn = raw(dir);
    let tables = [
        "runs",
        "events",
        "packs",
        "blobs",
        "snapshots",
        "timers",
        "queue",
        "dispatches",
        "outbox",
        "dead_letters",
        "alerts",
        "line_heads",
        "lines",
    ];
    let count = |table: &str| -> i64 {
        conn.query_row(&format!("SELECT count(*) FROM {table} WHERE run_id = ?1"), [run.as_str()], |row| row.get(0))
            .unwrap()
    };
    tables.into_iter().map(count).sum()
}

#[test]
fn a_large_run_leaves_in_portions_and_completely() {
    let dir = folder();
    let store = open_old(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(many(&run, &tenant, 1_000))).unwrap();
    for _ in 0..20 {
        wait(store.append(one_more(&run, &tenant, 70_000))).unwrap();
    }
    furnish(&store, &run, &tenant);
    let before = store.stats();
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    let commits = store.stats().commits - before.commits;
    assert!(commits >= 4, "{commits} transactions for a thousand events");
    assert_eq!(rows_left(dir.path(), &run), 0);
    assert_eq!(wait(store.backlog()).unwrap(), servo_model::contract::Backlog::default());
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
    assert!(matches!(wait(store.delete_run(&Scope::System, &run)), Err(Error::NotFound)));
    // The id is free again.
    start(&store);
    assert_eq!(events(&store, &run).len(), 1);
}

#[test]
fn many_finished_runs_are_retired_oldest_first() {
    let dir = folder();
    let store = open(dir.path());
    let tenant = fixtures::tenant("acme");
    let runs: Vec<_> = (0..40).map(|number| fixtures::run_id(&format!("run-{number:02}"))).collect();
    for (number, run) in runs.iter().enumerate() {
        let mut append = fixtures::start_append(run, &tenant);
        let finished = Timestamp::from_millis(1_000 + i64::try_from(number).unwrap());
        append.streams[0].row = Some(fixtures::finished_row(run, &tenant, finished));
        append.streams[0].events.extend((0..30).map(|_| fixtures::fresh_event(run)));
        wait(store.append(append)).unwrap();
    }
    assert_eq!(wait(store.retire(Timestamp::from_millis(1_035), 10)).unwrap(), 10);
    assert_eq!(wait(store.retire(Timestamp::from_millis(1_035), 100)).unwrap(), 25);
    assert_eq!(wait(store.retire(Timestamp::from_millis(1_035), 100)).unwrap(), 0);
    let left: Vec<_> = runs.iter().filter(|run| wait(store.get_run(&Scope::System, run)).unwrap().is_some()).collect();
    assert_eq!(left, runs[35..].iter().collect::<Vec<_>>());
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

/// What a crash in the middle of a deletion leaves.
#[test]
fn a_half_deleted_run_is_gone_for_everybody_and_finished_by_the_next_start() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(many(&run, &tenant, 600))).unwrap();
    furnish(&store, &run, &tenant);
    drop(store);
    let hidden = "UPDATE runs SET purging = 1, trim_before = 9223372036854775807 WHERE run_id = 'run'; \
                  DELETE FROM timers; DELETE FROM dispatches WHERE state = 'pending'; \
                  UPDATE dispatch_counts SET count = 0 WHERE state = 'pending'";
    raw(dir.path()).execute_batch(hidden).unwrap();
    let store = open(dir.path());
    assert!(wait(store.get_run(&Scope::System, &run)).unwrap().is_none());
    assert!(matches!(wait(store.read_run(&Scope::System, &run, 0, 1)), Err(Error::NotFound)));
    assert!(matches!(wait(store.append(many(&run, &tenant, 1))), Err(Error::NotFound)));
    assert_eq!(wait(store.count_active(&tenant, 10)).unwrap(), 0);
    until_gone(dir.path(), &run);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

/// Packs leave as rows do, and a purge does not read them.
#[test]
fn a_run_leaves_with_its_packs() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(many(&run, &tenant, 10))).unwrap();
    assert_eq!(events(&store, &run).len(), 11, "from here on the database has them");
    raw(dir.path())
        .execute_batch(
            "WITH RECURSIVE n (i) AS (VALUES (100) UNION ALL SELECT i + 1 FROM n WHERE i < 299)
             INSERT INTO packs SELECT i, i, i, number, i, i, run_id, tenant_id, x'01', NULL FROM n, runs WHERE run_id = 'run'",
        )
        .unwrap();
    let before = store.stats();
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    let commits = store.stats().commits - before.commits;
    assert!(commits >= 3, "{commits} transactions for two hundred packs");
    assert_eq!(rows_left(dir.path(), &run), 0);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_deletion_whose_caller_has_gone_is_finished() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(many(&run, &tenant, 2_000))).unwrap();
    let scope = Scope::System;
    let mut forgotten = Box::pin(store.delete_run(&scope, &run));
    assert!(forgotten.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(forgotten);
    until_gone(dir.path(), &run);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

/// Waits until no table names the run.
fn until_gone(dir: &std::path::Path, run: &RunId) {
    let until = Instant::now() + Duration::from_secs(60);
    while rows_left(dir, run) > 0 {
        assert!(Instant::now() < until, "the leftovers stay");
        std::thread::yield_now();
    }
}

#[test]
fn trimming_the_system_stream_gives_no_sequence_and_no_position_twice() {
    let dir = folder();
    let clock = ManualClock::new();
    let config = || Config::new(dir.path(), clock.time_source());
    let store = SqliteStore::open(config()).unwrap();
    let system = RunId::system();
    let facts = |count: usize| fixtures::system_stream((0..count).map(|_| fixtures::fresh_event(&system)).collect());
    wait(store.append(Append::one(facts(600)))).unwrap();
    let last = events(&store, &system).pop().unwrap();
    clock.advance(1_000);
    assert_eq!(wait(store.trim_system(clock.now(), 500)).unwrap(), 500);
    assert_eq!(wait(store.trim_system(clock.now(), 500)).unwrap(), 100);
    assert!(events(&store, &system).is_empty());
    drop(store);
    let store = SqliteStore::open(config()).unwrap();
    let appended = wait(store.append(Append::one(facts(1)))).unwrap();
    assert_eq!(appended.streams[0].events[0].run_seq, last.run_seq + 1);
    assert!(events(&store, &system)[0].position > last.position);
}

#[test]
fn a_deleted_last_event_does_not_free_its_position() {
    let dir = folder();
    let store = open(dir.path());
    let (run, _) = start(&store);
    let last = wait(store.log_head()).unwrap();
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    drop(store);
    let store = open(dir.path());
    start(&store);
    assert!(wait(store.log_head()).unwrap() > last);
}

#[test]
fn trimming_keeps_a_payload_that_another_fact_has() {
    let dir = folder();
    let clock = ManualClock::new();
    let store = SqliteStore::open(Config::new(dir.path(), clock.time_source())).unwrap();
    let (system, payload) = (RunId::system(), fixtures::payload(100_000));
    let fact = || {
        let mut fact = fixtures::fresh_event(&system);
        fact.payload = payload.clone();
        Append::one(fixtures::system_stream(vec![fact]))
    };
    wait(store.append(fact())).unwrap();
    clock.advance(1_000);
    let between = clock.now();
    wait(store.append(fact())).unwrap();
    assert_eq!(wait(store.trim_system(between, 10)).unwrap(), 1);
    assert_eq!(events(&store, &system)[0].payload, payload);
    clock.advance(1_000);
    assert_eq!(wait(store.trim_system(clock.now(), 10)).unwrap(), 1);
    let blobs: i64 = raw(dir.path()).query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(blobs, 0);
}

#[test]
fn an_imported_run_goes_on_where_it_stopped() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    wait(store.append(one_more(&run, &tenant, 100_000))).unwrap();
    let before = events(&store, &run);
    let row = wait(store.get_run(&Scope::System, &run)).unwrap().unwrap();
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    // The writer knew the run before, and must not now.
    wait(store.import_run(row, before.clone())).unwrap();
    let (run, tenant) = names();
    let appended = wait(store.append(many(&run, &tenant, 1))).unwrap();
    assert_eq!(appended.streams[0].events[0].run_seq, 3);
    let after = events(&store, &run);
    assert_eq!((&after[1].payload, after[1].emitted_at), (&before[1].payload, before[1].emitted_at));
    assert!(after[0].position > before[1].position);
}
