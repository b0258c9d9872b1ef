//! Faults that the server reports: a session that is ended, a lock that is not to be had, a full disk, contention. Each
//! answer says truly whether the write may have happened.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_store::testkit::fixtures::{add, fresh_event, run_id, start_append, tenant};
use servo_store::{Append, Appended, Error, Expected, LogStore, Result, RunStore, Scope};
use servo_store_postgres::PostgresStore;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::{config, connect, database, owner, run, spawn};

fn one_more(expected: u64) -> Append {
    expecting(Expected::Seq(expected))
}

fn expecting(expected: Expected) -> Append {
    let run = run_id("inv_1");
    Append::one(add(&run, &tenant("acme"), expected, vec![fresh_event(&run)]))
}

async fn prepared() -> (Arc<PostgresStore>, Client, String) {
    let url = database().await;
    let store = connect(&url).await;
    store.append(start_append(&run_id("inv_1"), &tenant("acme"))).await.unwrap();
    (store, owner(&url).await, url)
}

fn begin(store: &Arc<PostgresStore>, append: &Append) -> JoinHandle<Result<Appended>> {
    let (store, append) = (Arc::clone(store), append.clone());
    spawn(async move { store.append(append).await })
}

/// Ends the session that waits for a lock, once there is one.
async fn end_waiting_session(observer: &Client) {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'servo' AND wait_event_type = 'Lock'";
    while observer.query(sql, &[]).await.unwrap().is_empty() {}
}

/// A session ends in the middle of an append, which is then sent again under the same keys.
async fn ended_while(lock: &str, expected: Expected) {
    let (store, owner, url) = prepared().await;
    owner.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
    let work = expecting(expected);
    let append = begin(&store, &work);
    end_waiting_session(&crate::support::owner(&url).await).await;
    let error = append.await.unwrap().unwrap_err();
    // One statement commits by itself, and a session that ends in it may have come to that.
    let is_one_statement = expected != Expected::Any;
    let is_told = matches!(error, Error::Unavailable { maybe_written, .. } if maybe_written == is_one_statement);
    assert!(is_told, "{error:?}");
    owner.batch_execute("ROLLBACK").await.unwrap();
    let head = store.read_run(&Scope::System, &run_id("inv_1"), 0, 10).await.unwrap().head_seq;
    assert_eq!(head, 1, "nothing was kept");
    for inserted in [true, false] {
        let outcome = store.append(work.clone()).await.unwrap().streams[0].events[0].clone();
        assert_eq!((outcome.run_seq, outcome.inserted), (2, inserted));
    }
}

const LOADING: &str = "LOCK TABLE servo.runs IN ACCESS EXCLUSIVE MODE";
const WRITING: &str = "LOCK TABLE servo.events IN SHARE MODE";

#[test]
fn a_session_that_ends_while_loading_wrote_nothing() {
    run(ended_while(LOADING, Expected::Any));
}

/// The commit was sent along, but the server never came to it.
#[test]
fn a_session_that_ends_while_writing_wrote_nothing() {
    run(ended_while(WRITING, Expected::Any));
}

#[test]
fn a_session_that_ends_while_checking_wrote_nothing() {
    run(ended_while(LOADING, Expected::Seq(1)));
}

#[test]
fn a_session_that_ends_while_writing_as_expected_wrote_nothing() {
    run(ended_while(WRITING, Expected::Seq(1)));
}

#[test]
fn a_lock_that_is_not_to_be_had_is_worth_another_try() {
    run(async {
        let (_, owner, url) = prepared().await;
        let mut config = config(&url);
        config.statement_timeout = Duration::from_millis(300);
        let store = Arc::new(PostgresStore::connect(config).await.unwrap());
        owner.batch_execute("BEGIN; LOCK TABLE servo.events IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let error = store.append(one_more(1)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { maybe_written: false, .. }), "{error:?}");
        assert_eq!(error.retry(), servo_store::error::Retry::Later);
        owner.batch_execute("ROLLBACK").await.unwrap();
        store.append(one_more(1)).await.unwrap();
    });
}

/// One by one they would wait for the lock sixty-four times.
#[test]
fn a_batch_does_not_wait_for_each_of_its_appends() {
    run(async {
        let (_, owner, url) = prepared().await;
        let mut config = config(&url);
        // A third of it is spent on a lock.
        config.statement_timeout = Duration::from_secs(3);
        let store = Arc::new(PostgresStore::connect(config).await.unwrap());
        owner.batch_execute("BEGIN; LOCK TABLE servo.events IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let began = Instant::now();
        let appends: Vec<_> = (0..64).map(|_| begin(&store, &one_more(1))).collect();
        for append in appends {
            let error = append.await.unwrap().unwrap_err();
            assert!(matches!(error, Error::Unavailable { maybe_written: false, .. }), "{error:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    });
}

#[test]
fn no_free_connection_is_unavailable() {
    run(async {
        let (_, owner, url) = prepared().await;
        let mut config = config(&url);
        (config.tenant_connections, config.acquire_timeout) = (1, Duration::from_secs(2));
        let store = Arc::new(PostgresStore::connect(config).await.unwrap());
        let scope = Scope::Tenant(tenant("acme"));
        assert!(store.get_run(&scope, &run_id("inv_1")).await.unwrap().is_some());
        owner.batch_execute("BEGIN; LOCK TABLE servo.runs IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let waiting = {
            let (store, scope) = (Arc::clone(&store), scope.clone());
            spawn(async move { store.get_run(&scope, &run_id("inv_1")).await })
        };
        let waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while owner.query(waits, &[]).await.unwrap().is_empty() {}
        let error = store.get_run(&scope, &run_id("inv_1")).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { maybe_written: false, .. }), "{error:?}");
        owner.batch_execute("ROLLBACK").await.unwrap();
        assert!(waiting.await.unwrap().unwrap().is_some());
    });
}

/// Makes inserts into the log fail with an SQLSTATE, for the first so many times.
async fn failing_inserts(owner: &Client, state: &str, times: u32) {
    let sql = format!(
        "CREATE SEQUENCE servo.failures;
         GRANT USAGE ON SEQUENCE servo.failures TO servo_app;
         CREATE FUNCTION servo.fail() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('servo.failures') <= {times} THEN
                 RAISE EXCEPTION 'secret detail' USING ERRCODE = '{state}';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER fail BEFORE INSERT ON servo.events FOR EACH STATEMENT EXECUTE FUNCTION servo.fail()"
    );
    owner.batch_execute(&sql).await.unwrap();
}

#[test]
fn a_full_disk_is_said_so_and_keeps_nothing() {
    run(async {
        let (store, owner, _) = prepared().await;
        failing_inserts(&owner, "53100", 1).await;
        let error = store.append(one_more(1)).await.unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error:?}");
        assert!(!format!("{error:?}").contains("secret"), "the server's words stay where they are");
        assert_eq!(store.append(one_more(1)).await.unwrap().streams[0].events[0].run_seq, 2);
    });
}

#[test]
fn contention_is_tried_again_here() {
    run(async {
        for state in ["40001", "40P01"] {
            let (store, owner, _) = prepared().await;
            failing_inserts(&owner, state, 3).await;
            assert_eq!(store.append(one_more(1)).await.unwrap().streams[0].events[0].run_seq, 2, "{state}");
        }
    });
}

/// The words of a database that is away, restarts, recovers, was replaced by a standby or has too many callers.
const AWAY: [&str; 15] = [
    "08006", "08003", "08P01", "25006", "25P04", "40000", "40003", "53000", "53200", "53300", "57014", "57P01",
    "57P02", "57P03", "58030",
];

#[test]
fn a_database_that_is_away_is_unavailable_in_all_its_words() {
    run(async {
        for state in AWAY {
            let (store, owner, _) = prepared().await;
            failing_inserts(&owner, state, 1_000).await;
            let error = store.append(one_more(1)).await.expect_err(state);
            assert!(matches!(error, Error::Unavailable { .. }), "{state}: {error:?}");
            assert!(!format!("{error:?}").contains("secret"), "{state}");
        }
    });
}

/// What is left of a cluster after a failover may be a standby: it takes no writes, and is no damaged store.
#[test]
fn a_database_that_only_reads_is_unavailable() {
    run(async {
        let (store, owner, url) = prepared().await;
        let database = url.rsplit_once('/').unwrap().1;
        let sql = format!("ALTER DATABASE {database} SET default_transaction_read_only = on");
        owner.batch_execute(&sql).await.unwrap();
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        owner.batch_execute(others).await.unwrap();
        for _ in 0..4 {
            let error = store.append(one_more(1)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        }
    });
}

#[test]
fn endless_contention_is_unavailable() {
    run(async {
        let (store, owner, _) = prepared().await;
        failing_inserts(&owner, "40001", 1_000).await;
        let error = store.append(one_more(1)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { maybe_written: false, .. }), "{error:?}");
    });
}

#[test]
fn a_server_that_is_gone_is_unavailable() {
    run(async {
        let (store, owner, url) = prepared().await;
        let (database, admin) =
            (url.rsplit_once('/').unwrap().1, crate::support::owner(&crate::support::base_url()).await);
        drop(owner);
        admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.unwrap();
        for _ in 0..3 {
            let error = store.append(one_more(1)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
            let error = store.get_run(&Scope::System, &run_id("inv_1")).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { maybe_written: false, .. }), "{error:?}");
        }
    });
}
