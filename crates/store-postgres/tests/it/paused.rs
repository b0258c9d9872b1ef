//! A process is paused in the middle of a transaction. R14: it keeps nobody waiting for long, and what it wanted to write is
//! judged anew when it goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::Timestamp;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::fixtures::{add, fresh_event, run_id, start_append, tenant};
use servo_store::{Append, AuthorityChange, Error, Expected, Fence, LogStore, Scope};
use servo_store_postgres::PostgresStore;
use tokio_postgres::Client;

use crate::proxy::Proxy;
use crate::support::{config, connect_at, database, owner, run, spawn};

const LEASE_MS: i64 = 1_000;

/// What a take-over may take beyond the lease.
const GOAL: Duration = Duration::from_secs(2);

fn one_more(expected: Expected, fence: Option<Fence>) -> Append {
    let run = run_id("inv_1");
    let stream = add(&run, &tenant("acme"), expected, vec![fresh_event(&run)]);
    Append { fence, ..Append::one(stream) }
}

fn acquire(owner: &str, now: Timestamp) -> Append {
    let leased_until = Timestamp::from_millis(now.as_millis() + LEASE_MS).to_string();
    let change = AuthorityChange::Acquire { owner: owner.to_owned(), lease_id: "lease".to_owned(), leased_until };
    Append { authority: Some(change), ..Append::default() }
}

fn renew(owner: &str, epoch: u64, now: Timestamp) -> Append {
    let (owner, lease_id, leased_until) =
        (owner.to_owned(), "lease".to_owned(), Timestamp::from_millis(now.as_millis() + LEASE_MS).to_string());
    let change = AuthorityChange::Renew { owner, epoch: Some(epoch), lease_id, leased_until };
    Append { authority: Some(change), ..Append::default() }
}

/// A store behind a proxy, on the clock of the test. Its one connection for appends knows a statement once it has used it:
/// only then does a pause fall into the transaction.
async fn pausable(proxy: &Proxy, url: &str, clock: &ManualClock) -> Arc<PostgresStore> {
    let mut config = config(&proxy.url(url));
    config.time = Some(clock.time_source());
    config.append_connections = 1;
    Arc::new(PostgresStore::connect(config).await.unwrap())
}

/// Sessions of stores by what they do.
async fn sessions(observer: &Client, condition: &str) -> usize {
    let sql = format!(
        "SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'servo' AND {condition}"
    );
    observer.query(&sql, &[]).await.unwrap().len()
}

/// The paused holder, here two stores, has two transactions under way: one has the authority's lock, the other waits for it
/// and would get it next. The successor waits for neither to be ended at leisure, and the holder writes nothing any more.
#[test]
fn a_paused_holder_hands_the_authority_on_in_time() {
    run(async {
        let url = database().await;
        let (observer, clock, proxy) = (owner(&url).await, ManualClock::new(), Proxy::start().await);
        let (holder, successor) = (pausable(&proxy, &url, &clock).await, connect_at(&url, &clock).await);
        let writer = pausable(&proxy, &url, &clock).await;
        holder.append(start_append(&run_id("inv_1"), &tenant("acme"))).await.unwrap();
        let epoch = holder.append(acquire("holder", clock.now())).await.unwrap().epoch.unwrap();
        writer.append(one_more(Expected::Seq(1), Some(Fence { epoch }))).await.unwrap();
        proxy.hold();
        let begin = |store: &Arc<PostgresStore>, append: Append| {
            let store = Arc::clone(store);
            spawn(async move { store.append(append).await })
        };
        let renewal = begin(&holder, renew("holder", epoch, clock.now()));
        while sessions(&observer, "state = 'idle in transaction'").await == 0 {}
        let write = begin(&writer, one_more(Expected::Seq(2), Some(Fence { epoch })));
        while sessions(&observer, "wait_event_type = 'Lock'").await == 0 {}
        clock.advance(2 * LEASE_MS);
        let began = Instant::now();
        let taken = successor.append(acquire("successor", clock.now())).await.unwrap().epoch.unwrap();
        assert!(began.elapsed() < GOAL, "{:?}", began.elapsed());
        assert!(taken > epoch);
        proxy.heal();
        for late in [renewal, write] {
            let error = late.await.unwrap().unwrap_err();
            assert!(
                matches!(error, Error::Fenced { .. } | Error::AuthorityNotHeld { .. } | Error::Unavailable { .. }),
                "{error:?}"
            );
        }
        let page = successor.read_run(&Scope::System, &run_id("inv_1"), 0, 10).await.unwrap();
        assert_eq!(page.head_seq, 2, "a stale holder wrote");
    });
}

/// Nobody took its place while it was away: the append is written, once. One that does not say what it expects is judged in
/// the middle of its transaction.
#[test]
fn an_append_that_was_paused_is_written_once() {
    run(async {
        let url = database().await;
        let (observer, clock, proxy) = (owner(&url).await, ManualClock::new(), Proxy::start().await);
        let store = pausable(&proxy, &url, &clock).await;
        store.append(start_append(&run_id("inv_1"), &tenant("acme"))).await.unwrap();
        store.append(one_more(Expected::Any, None)).await.unwrap();
        proxy.hold();
        let work = one_more(Expected::Any, None);
        let append = {
            let (store, work) = (store.clone(), work.clone());
            spawn(async move { store.append(work).await })
        };
        while sessions(&observer, "state = 'idle in transaction'").await == 0 {}
        while sessions(&observer, "state = 'idle in transaction'").await > 0 {}
        proxy.heal();
        match append.await.unwrap() {
            Ok(appended) => assert_eq!(appended.streams[0].events[0].run_seq, 3),
            // The end of the connection came between the look at it and the sending: nobody can say, and it says so.
            Err(Error::Unavailable { maybe_written: true, .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        store.append(work).await.unwrap();
        let page = store.read_run(&Scope::System, &run_id("inv_1"), 0, 10).await.unwrap();
        assert_eq!(page.head_seq, 3);
    });
}
