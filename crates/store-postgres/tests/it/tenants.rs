//! Row security at work: nothing without a tenant, nothing of another one, whatever happened on the connection before.
//! S4.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use servo_store::runs::RunQuery;
use servo_store::testkit::fixtures::{add, fresh_event, run_id, start_append, tenant};
use servo_store::testkit::rng::Rng;
use servo_store::{Append, Error, Expected, LogStore, RunStore, Scope, StreamAppend};
use servo_store_postgres::PostgresStore;
use tokio_postgres::error::SqlState;

use crate::support::{config, connect, database, owner, run, spawn};

const TENANTS: [&str; 2] = ["acme", "globex"];
const TABLES: [&str; 17] = [
    "runs",
    "events",
    "blobs",
    "snapshots",
    "timers",
    "queue",
    "dispatches",
    "outbox",
    "dead_letters",
    "alerts",
    "functions",
    "function_versions",
    "function_aliases",
    "lines",
    "line_heads",
    "entrypoints",
    "invocation_counts",
];

async fn two_tenants(store: &PostgresStore) {
    for name in TENANTS {
        for number in 0..3 {
            let run = run_id(&format!("inv_{name}_{number}"));
            store.append(start_append(&run, &tenant(name))).await.unwrap();
        }
    }
}

#[test]
fn without_a_tenant_there_are_no_rows_and_no_inserts() {
    run(async {
        let url = database().await;
        two_tenants(&*connect(&url).await).await;
        let client = owner(&url).await;
        let runs = "SELECT count(*) FROM servo.runs";
        assert_eq!(client.query_one(runs, &[]).await.unwrap().get::<_, i64>(0), 7, "six and the system stream");
        client.batch_execute("SET ROLE servo_app").await.unwrap();
        for unset in ["RESET app.tenants", "SET app.tenants = ''"] {
            client.batch_execute(unset).await.unwrap();
            for table in TABLES {
                let count = format!("SELECT count(*) FROM servo.{table}");
                assert_eq!(client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0), 0, "{table} after {unset}");
            }
            let insert = "INSERT INTO servo.timers (run_id, tenant_id, due_at) VALUES ('inv_acme_0', 'acme', 1)";
            let error = client.batch_execute(insert).await.unwrap_err();
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "after {unset}");
        }
        client.batch_execute("SET app.tenants = 'globex'").await.unwrap();
        assert_eq!(client.query_one(runs, &[]).await.unwrap().get::<_, i64>(0), 3, "its own");
        let insert = "INSERT INTO servo.timers (run_id, tenant_id, due_at) VALUES ('inv_acme_0', 'acme', 1)";
        let error = client.batch_execute(insert).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "another's");
        // Even with its own name on it, a row cannot refer to another tenant's run.
        let insert = "INSERT INTO servo.timers (run_id, tenant_id, due_at) VALUES ('inv_acme_0', 'globex', 1)";
        let error = client.batch_execute(insert).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::FOREIGN_KEY_VIOLATION));
    });
}

#[test]
fn an_id_of_another_tenant_is_taken() {
    run(async {
        let store = connect(&database().await).await;
        two_tenants(&store).await;
        let theirs = run_id("inv_acme_0");
        let error = store.append(start_append(&theirs, &tenant("globex"))).await.unwrap_err();
        assert!(matches!(&error, Error::RunExists { run_id } if *run_id == theirs), "{error:?}");
        let foreign = add(&theirs, &tenant("globex"), Expected::Any, vec![fresh_event(&theirs)]);
        assert!(matches!(store.append(Append::one(foreign)).await, Err(Error::NotFound)));
        // Beside a stream of its owner's in one append, where row security would let it pass.
        let own = StreamAppend::new(run_id("inv_acme_1"), tenant("acme"), Expected::Any);
        let foreign = add(&theirs, &tenant("globex"), Expected::Any, vec![fresh_event(&theirs)]);
        let both = Append { streams: vec![own, foreign], ..Append::default() };
        assert!(matches!(store.append(both).await, Err(Error::NotFound)));
    });
}

/// Polls a call a few times and drops it: the caller has gone away, wherever it was.
async fn abandon<T>(polls: u64, call: impl Future<Output = T>) {
    let mut call = pin!(call);
    for _ in 0..polls {
        let is_over = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
        if is_over {
            return;
        }
        tokio::task::yield_now().await;
    }
    // A last look without anybody to wake.
    let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// Borrows connections for one tenant and the other, with errors and callers that go away in between. Counts what was
/// seen of the wrong one.
async fn crossings(store: Arc<PostgresStore>, seed: u64, borrows: usize) -> usize {
    let mut rng = Rng::new(seed);
    let mut crossed = 0;
    for turn in 0..borrows {
        let own = tenant(TENANTS[turn % 2]);
        let scope = Scope::Tenant(own.clone());
        let theirs = run_id(&format!("inv_{}_0", TENANTS[(turn + 1) % 2]));
        let all = RunQuery { limit: 100, ..RunQuery::default() };
        match rng.below(6) {
            0 => abandon(rng.below(12), store.list_runs(&scope, &all)).await,
            1 => abandon(rng.below(12), store.read_run(&scope, &theirs, 0, 10)).await,
            2 => crossed += usize::from(store.read_run(&scope, &theirs, 0, 10).await.is_ok()),
            3 => crossed += usize::from(store.get_run(&scope, &theirs).await.unwrap().is_some()),
            _ => {
                let runs = store.list_runs(&scope, &all).await.unwrap();
                crossed += runs.iter().filter(|row| row.tenant != own).count();
                assert!(runs.len() >= 3, "its own are always there");
            }
        }
    }
    crossed
}

async fn crossings_with(sabotage: Option<&str>, borrows: usize) -> usize {
    let mut config = config(&database().await);
    config.tenant_connections = 2;
    config.sabotage = sabotage.map(str::to_owned);
    let store = Arc::new(PostgresStore::connect(config).await.unwrap());
    two_tenants(&store).await;
    let tasks: Vec<_> = (0..4).map(|seed| spawn(crossings(Arc::clone(&store), seed, borrows / 4))).collect();
    let mut crossed = 0;
    for task in tasks {
        crossed += task.await.unwrap();
    }
    crossed
}

/// Here the queries do not name the tenant, so that row security alone has to hold.
#[test]
fn two_thousand_borrows_never_cross_tenants() {
    run(async {
        assert_eq!(crossings_with(Some("unnamed-tenant"), 2_000).await, 0);
    });
}

/// The control: with neither guard the same test sees the other tenant.
#[test]
fn without_any_guard_tenants_cross() {
    run(async {
        assert!(crossings_with(Some("no-tenancy"), 40).await > 0);
    });
}
