//! The reader of the global log among transactions that commit in another order than they began. R31.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_canon::Digest;
use servo_model::RunId;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::fixtures::{add, fresh_event, run_id, start_append, tenant};
use servo_store::testkit::rng::Rng;
use servo_store::{AdminStore, Append, Expected, LogStore, Position, StoredEvent};
use servo_store_postgres::PostgresStore;

use crate::support::{config, connect, connect_at, database, owner, run, spawn};

/// Adds an event to a run by hand, in a transaction that stays open.
const SLOW_WRITER: &str = "BEGIN; SET LOCAL ROLE servo_engine;
    INSERT INTO servo.events (run_seq, emitted_at, event_id, store_epoch, run_id, tenant_id, event_type, idempotency_key,
        emitted_by, payload)
    SELECT 2, 0, gen_random_uuid(), (SELECT store_epoch FROM servo.meta), 'inv_slow', 'acme', 'test.slow', sha256('slow'),
        'test', '{}'";

async fn read_all(store: &PostgresStore, mut after: Position) -> (Vec<StoredEvent>, Position) {
    let mut events = Vec::new();
    loop {
        let page = store.read_log(after, 100).await.unwrap();
        after = page.next;
        if page.events.is_empty() {
            return (events, after);
        }
        events.extend(page.events.into_iter().map(Arc::unwrap_or_clone));
    }
}

/// Waits until the reader has seen so many events; other tests on the server hold it back for a while.
async fn read_until(store: &PostgresStore, count: usize) -> (Vec<StoredEvent>, Position) {
    let (mut events, mut at) = read_all(store, Position::START).await;
    while events.len() < count {
        let (more, next) = read_all(store, at).await;
        events.extend(more);
        at = next;
    }
    (events, at)
}

/// One writer begins first and commits last. Gives what a reader sees before and after that.
async fn late_commit(sabotage: Option<&str>) -> (Vec<String>, Vec<String>) {
    let url = database().await;
    let mut config = config(&url);
    config.sabotage = sabotage.map(str::to_owned);
    let store = PostgresStore::connect(config).await.unwrap();
    let (slow, fast, acme) = (run_id("inv_slow"), run_id("inv_fast"), tenant("acme"));
    store.append(start_append(&slow, &acme)).await.unwrap();
    store.append(start_append(&fast, &acme)).await.unwrap();
    let (_, at) = read_until(&store, 2).await;

    let writer = owner(&url).await;
    writer.batch_execute(SLOW_WRITER).await.unwrap();
    let mut event = fresh_event(&fast);
    event.event_type = "test.fast".into();
    store.append(Append::one(add(&fast, &acme, Expected::Seq(1), vec![event]))).await.unwrap();
    let (before, at) = read_all(&store, at).await;
    writer.batch_execute("COMMIT").await.unwrap();
    // A marker behind both: what is not there when it is, never comes.
    let marker = add(&fast, &acme, Expected::Seq(2), vec![fresh_event(&fast)]);
    store.append(Append::one(marker)).await.unwrap();
    let (mut after, mut at) = read_all(&store, at).await;
    while after.last().is_none_or(|event| event.run_seq != 3) {
        let (more, next) = read_all(&store, at).await;
        after.extend(more);
        at = next;
    }
    let types = |events: Vec<StoredEvent>| events.into_iter().map(|event| event.event_type.into_owned()).collect();
    (types(before), types(after))
}

#[test]
fn a_late_commit_is_not_passed_over() {
    run(async {
        let (before, after) = late_commit(None).await;
        assert_eq!(before, Vec::<String>::new(), "the open transaction holds the reader back");
        assert_eq!(after, ["test.slow", "test.fast", "test.noted"]);
    });
}

/// The control: a reader that goes by id passes the late commit over for ever.
#[test]
fn a_reader_by_id_loses_the_late_commit() {
    run(async {
        let (before, after) = late_commit(Some("naive-outbox")).await;
        assert_eq!(before, ["test.fast"]);
        assert_eq!(after, ["test.noted"], "test.slow is lost");
    });
}

#[test]
fn a_reader_that_is_held_back_can_be_noticed() {
    run(async {
        let url = database().await;
        let clock = ManualClock::new();
        let store = connect_at(&url, &clock).await;
        let age = async || {
            let info = store.info().await.unwrap();
            let (_, age) = info.settings.into_iter().find(|(name, _)| name == "xmin_age_ms").unwrap();
            age.parse::<u64>().unwrap()
        };
        store.append(start_append(&run_id("inv_slow"), &tenant("acme"))).await.unwrap();
        let writer = owner(&url).await;
        writer.batch_execute(SLOW_WRITER).await.unwrap();
        store.append(start_append(&run_id("inv_2"), &tenant("acme"))).await.unwrap();
        clock.advance(5_000);
        assert_eq!(age().await, 5_000);
        writer.batch_execute("ROLLBACK").await.unwrap();
        while age().await > 0 {}
    });
}

/// Otherwise it could write a run's later event under an older transaction id than the writer it waited for, and a
/// reader, who goes by transaction, would see them in the wrong order.
#[test]
fn a_transaction_gets_its_id_after_its_last_lock() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        let acme = tenant("acme");
        let mut runs = [run_id("inv_1"), run_id("inv_2")];
        for run in &runs {
            store.append(start_append(run, &acme)).await.unwrap();
        }
        // As the store counts them: the first eight bytes of a digest. Locks are taken in that order.
        let lock = |run: &RunId| {
            let digest = Digest::of_parts(&["run", run.as_str()], '|');
            i64::from_be_bytes(digest.as_bytes()[..8].try_into().unwrap())
        };
        runs.sort_by_key(lock);
        let (holder, observer) = (owner(&url).await, owner(&url).await);
        holder.execute("SELECT pg_advisory_lock($1)", &[&lock(&runs[1])]).await.unwrap();
        let streams = runs.each_ref().map(|run| add(run, &acme, Expected::Seq(1), vec![fresh_event(run)]));
        let append = spawn(async move { store.append(Append { streams: streams.into(), ..Append::default() }).await });
        let waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while observer.query(waits, &[]).await.unwrap().is_empty() {}
        let between: String = observer.query_one("SELECT pg_current_xact_id()::text", &[]).await.unwrap().get(0);
        holder.execute("SELECT pg_advisory_unlock($1)", &[&lock(&runs[1])]).await.unwrap();
        append.await.unwrap().unwrap();
        let later = "SELECT count(*) FROM servo.events WHERE run_seq = 2 AND xid > $1::text::xid8";
        assert_eq!(observer.query_one(later, &[&between]).await.unwrap().get::<_, i64>(0), 2);
    });
}

/// Two processes' worth of writers append to the same runs, several at a time, while a reader follows.
#[test]
fn each_run_is_read_in_order_and_whole() {
    const RUNS: usize = 6;
    const WRITERS: u64 = 8;
    const APPENDS: usize = 25;
    run(async {
        let url = database().await;
        let (one, two) = (connect(&url).await, connect(&url).await);
        let runs: Vec<RunId> = (0..RUNS).map(|number| run_id(&format!("inv_{number}"))).collect();
        for run in &runs {
            one.append(start_append(run, &tenant("acme"))).await.unwrap();
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|seed| {
                let (store, runs) = (Arc::clone(if seed % 2 == 0 { &one } else { &two }), runs.clone());
                spawn(async move {
                    let mut rng = Rng::new(seed);
                    for _ in 0..APPENDS {
                        let first = usize::try_from(rng.below(RUNS as u64)).unwrap();
                        let streams = [first, (first + 1) % RUNS]
                            .map(|run| add(&runs[run], &tenant("acme"), Expected::Any, vec![fresh_event(&runs[run])]));
                        store.append(Append { streams: streams.into(), ..Append::default() }).await.unwrap();
                    }
                })
            })
            .collect();
        let total = RUNS + usize::try_from(WRITERS).unwrap() * APPENDS * 2;
        let (events, _) = read_until(&two, total).await;
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(events.len(), total);
        let mut seen: BTreeMap<&RunId, u64> = BTreeMap::new();
        for event in &events {
            let last = seen.entry(&event.run_id).or_default();
            assert_eq!(event.run_seq, *last + 1, "{}", event.run_id);
            *last = event.run_seq;
        }
    });
}
