//! What a call reads does not grow with what the store holds: rows that the server touched are counted, not time.

use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, Timestamp};
use servo_store::dispatch::{DispatchHeads, QueueClaim};
use servo_store::runs::{RunOrder, RunQuery};
use servo_store::testkit::fixtures::{add, fresh_event, run_id, tenant};
use servo_store::{AdminStore, Append, Expected, LogStore, Position, RunStore, Scope, WorkStore};
use servo_store_postgres::PostgresStore;
use tokio_postgres::Client;

use crate::support::{connect, database, owner, run};

/// One long run, many runs of one tenant, few of another, and many newer ones of its plans that are no invocations.
const FILL: &str = "
    INSERT INTO servo.runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, request_key,
            created_at, finished_at, changed_seq, name,
            invocation, mode, correlation_id)
        SELECT 'inv_' || lpad(n::text, 6, '0'), CASE WHEN n % 1000 = 0 THEN 'small' ELSE 'big' END, '', '', 'plan', '1',
            CASE WHEN n % 2 = 0 THEN 'RUNNING' ELSE 'COMPLETED' END, CASE WHEN n % 2 = 0 THEN 'running' ELSE 'succeeded' END,
            sha256(n::text::bytea), 0, CASE WHEN n % 2 = 0 THEN NULL ELSE n + 1000000 END, 1, 'odd',
            true, 'async', 'trace'
        FROM generate_series(1, 4000) n;
    INSERT INTO servo.runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, created_at,
            finished_at, changed_seq)
        SELECT 'plan_' || n, 'small', '', '', 'other', '1', 'COMPLETED', 'running', 1, 2000000, 1
        FROM generate_series(1, 3000) n;
    INSERT INTO servo.events (run_seq, emitted_at, event_id, store_epoch, run_id, tenant_id, event_type, idempotency_key,
            emitted_by, payload)
        SELECT n, 0, gen_random_uuid(), (SELECT store_epoch FROM servo.meta), 'inv_001000', 'small', 'test.noted',
            sha256(n::text::bytea), 'test', '{}'
        FROM generate_series(1, 5000) n;
    INSERT INTO servo.timers SELECT run_id, tenant_id, 4102444800000 FROM servo.runs WHERE run_id <> '_system';
    INSERT INTO servo.queue SELECT run_id, tenant_id, 0, 0 FROM servo.runs WHERE run_id <> '_system';
    INSERT INTO servo.dispatches SELECT run_id || '/a/1', run_id, tenant_id, 't', 'a', 1, 'pending', NULL, NULL, 0, 0, 0
        FROM servo.runs WHERE run_id <> '_system'";

/// Rows that were read from tables and indexes since the database was made. A session's counts come when it ends.
async fn rows_read(observer: &Client) -> i64 {
    let others = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'servo'";
    while !observer.query(others, &[]).await.unwrap().is_empty() {}
    let sql = "SELECT pg_stat_clear_snapshot()::text,
            (SELECT sum(seq_tup_read)::bigint FROM pg_stat_user_tables) + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes)";
    observer.query_one(sql, &[]).await.unwrap().get(1)
}

/// Some of everything that happens often.
async fn use_store(store: &PostgresStore, turn: u64) {
    let (long, small) = (run_id("inv_001000"), tenant("small"));
    let scope = Scope::Tenant(small.clone());
    let append = add(&long, &small, Expected::Seq(5_000 + turn), vec![fresh_event(&long)]);
    store.append(Append::one(append)).await.unwrap();
    store.get_run(&scope, &long).await.unwrap().unwrap();
    assert_eq!(store.read_run(&scope, &long, 4_000, 5).await.unwrap().events.len(), 5);
    store.snapshot_at(&scope, &long, u64::MAX).await.unwrap();
    let unfinished = vec![InvocationStatus::Queued, InvocationStatus::Running, InvocationStatus::Suspended];
    for oldest_first in [false, true] {
        let after = Some(RunId::parse(if oldest_first { "inv_001500" } else { "inv_003500" }).unwrap());
        let page = RunQuery { oldest_first, after, limit: 2, ..RunQuery::default() };
        for query in [
            page.clone(),
            RunQuery { visible: vec![InvocationStatus::Running], ..page.clone() },
            RunQuery { visible: unfinished.clone(), ..page.clone() },
            RunQuery { plan_id: Some("plan".to_owned()), ..page.clone() },
            RunQuery { plan_id: Some("plan".to_owned()), visible: unfinished.clone(), ..page.clone() },
            RunQuery { name: Some("odd".to_owned()), ..page.clone() },
            RunQuery { invocations: Some(true), ..page.clone() },
            RunQuery { invocations: Some(true), visible: unfinished.clone(), after: None, ..page.clone() },
            RunQuery { invocations: Some(true), correlation_id: Some("trace".to_owned()), ..page.clone() },
            RunQuery { invocations: Some(true), order: RunOrder::Created { after: None }, ..page.clone() },
            RunQuery { invocations: Some(true), order: RunOrder::Visible { after: None }, ..page.clone() },
            RunQuery { plan_ids: vec!["plan".to_owned(), "none".to_owned()], after: None, ..page.clone() },
        ] {
            assert_eq!(store.list_runs(&scope, &query).await.unwrap().len(), 2, "{query:?}");
        }
    }
    assert_eq!(store.count_open(&small, "plan").await.unwrap(), [("1".to_owned(), 4)]);
    assert_eq!(store.count_by_visible(&small, None).await.unwrap(), [], "rows of SQL are not counted");
    assert_eq!(store.count_active(&small, 100).await.unwrap(), 4);
    store.find_request(&small, servo_canon::Digest::of(b"3000")).await.unwrap().unwrap();
    store.read_log(Position::START, 5).await.unwrap();
    store.log_head().await.unwrap();
    assert!(store.due_timers(5).await.unwrap().due.is_empty());
    assert_eq!(store.claim_queue(&QueueClaim::new("me", 1_000_000, 2)).await.unwrap().len(), 2);
    assert_eq!(store.open_dispatches(1, &tenant("big"), None, 5).await.unwrap().len(), 5);
    let heads = DispatchHeads { epoch: 1, after: None, tenants: 9, each: 5 };
    assert_eq!(store.dispatch_heads(&heads).await.unwrap().len(), 10);
    assert_eq!(store.retire(Timestamp::EPOCH, 10).await.unwrap(), 0);
}

#[test]
fn a_call_reads_the_same_however_much_there_is() {
    const TURNS: u64 = 10;
    run(async {
        let url = database().await;
        let observer = owner(&url).await;
        // Plans are made while the tables are empty and nothing is known of them, and again when all is known.
        for (known, first) in [(false, 0), (true, TURNS)] {
            let store = connect(&url).await;
            store.list_runs(&Scope::System, &RunQuery { limit: 1, ..RunQuery::default() }).await.unwrap();
            let sql = if known { "ANALYZE servo.runs, servo.events, servo.queue" } else { FILL };
            observer.batch_execute(&format!("{sql}; SELECT pg_stat_force_next_flush()")).await.unwrap();
            store.close().await.unwrap();
            let before = rows_read(&observer).await;
            let store = connect(&url).await;
            for turn in first..first + TURNS {
                use_store(&store, turn).await;
            }
            store.close().await.unwrap();
            let read = rows_read(&observer).await - before;
            let per_turn = read / i64::try_from(TURNS).unwrap();
            assert!(per_turn < 300, "{per_turn} rows read in each turn of 39 calls; known: {known}");
        }
    });
}
