//! Appends that are written together, and what one of them may do to the others: nothing.

use std::sync::Arc;

use servo_canon::Digest;
use servo_model::RunId;
use servo_store::testkit::fixtures::{add, fresh_event, run_id, run_row, start_append, start_stream, tenant};
use servo_store::{AdminStore, Append, Error, Expected, LogStore, Result, Scope};
use servo_store_postgres::PostgresStore;

use crate::support::{connect, database, owner, run, spawn};

const APPENDERS: usize = 64;

fn name(number: usize) -> RunId {
    run_id(&format!("inv_{number}"))
}

async fn started(store: &PostgresStore) {
    for number in 0..APPENDERS {
        store.append(start_append(&name(number), &tenant("acme"))).await.unwrap();
    }
}

/// All appends at once; the answers in order.
async fn at_once(store: &Arc<PostgresStore>, appends: Vec<Append>) -> Vec<Result<servo_store::Appended>> {
    let tasks: Vec<_> = appends
        .into_iter()
        .map(|append| {
            let store = Arc::clone(store);
            spawn(async move { store.append(append).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn one_more(number: usize, expected: u64) -> Append {
    let run = name(number);
    Append::one(add(&run, &tenant("acme"), Expected::Seq(expected), vec![fresh_event(&run)]))
}

#[test]
fn concurrent_appends_share_transactions() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        started(&store).await;
        for answer in at_once(&store, (0..APPENDERS).map(|number| one_more(number, 1)).collect()).await {
            assert_eq!(answer.unwrap().streams[0].events[0].run_seq, 2);
        }
        let sql = "SELECT count(DISTINCT xid), count(*) FROM servo.events WHERE run_seq = 2";
        let row = owner(&url).await.query_one(sql, &[]).await.unwrap();
        let (transactions, events): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(events, 64);
        assert!(transactions <= 32, "{transactions} transactions for 64 events");
    });
}

#[test]
fn a_refused_append_spoils_only_itself() {
    run(async {
        let store = connect(&database().await).await;
        started(&store).await;
        let (hidden, free) = (run_id("inv_hidden"), run_id("inv_free"));
        store.append(start_append(&hidden, &tenant("globex"))).await.unwrap();
        let mut appends: Vec<_> = (0..APPENDERS).map(|number| one_more(number, 1)).collect();
        appends[10] = one_more(10, 7);
        // Only the database knows that this id is taken.
        appends[20] = start_append(&hidden, &tenant("acme"));
        // Only the database knows that it cannot store this text.
        let mut stream = start_stream(&free, &tenant("acme"));
        stream.events[0].emitted_by = "a\0b".into();
        appends[30] = Append::one(stream);
        appends[40] = Append::one(add(&run_id("inv_none"), &tenant("acme"), Expected::Any, Vec::new()));
        for (number, answer) in at_once(&store, appends).await.into_iter().enumerate() {
            match number {
                10 => assert!(matches!(answer, Err(Error::Conflict { expected: 7, actual: 1, .. })), "{answer:?}"),
                20 => assert!(matches!(&answer, Err(Error::RunExists { run_id }) if *run_id == hidden), "{answer:?}"),
                30 => assert!(matches!(answer, Err(Error::Invalid { .. })), "{answer:?}"),
                40 => assert!(matches!(answer, Err(Error::NotFound)), "{answer:?}"),
                _ => assert_eq!(answer.unwrap().streams[0].events[0].run_seq, 2, "{number}"),
            }
        }
        assert!(matches!(store.read_run(&Scope::System, &free, 0, 1).await, Err(Error::NotFound)));
        assert_eq!(store.integrity().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn appends_to_one_run_follow_each_other() {
    run(async {
        let store = connect(&database().await).await;
        started(&store).await;
        let run = name(0);
        let appends = (0..APPENDERS).map(|_| add(&run, &tenant("acme"), Expected::Any, vec![fresh_event(&run)]));
        let answers = at_once(&store, appends.map(Append::one).collect()).await;
        let mut seqs: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().streams[0].events[0].run_seq).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (2..=65).collect::<Vec<_>>());
        // Of those that expect the same sequence, one wins.
        let answers = at_once(&store, (0..APPENDERS).map(|_| one_more(0, 65)).collect()).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let lost = answers.iter().filter(|answer| matches!(answer, Err(Error::Conflict { actual: 66, .. }))).count();
        assert_eq!(lost, APPENDERS - 1);
    });
}

#[test]
fn one_request_starts_one_run_in_a_batch() {
    run(async {
        let store = connect(&database().await).await;
        let appends = (0..APPENDERS).map(|number| {
            let mut stream = start_stream(&name(number), &tenant("acme"));
            let mut row = run_row(&name(number), &tenant("acme"), servo_model::Timestamp::EPOCH);
            row.request_key = Some(Digest::of(b"the same"));
            stream.row = Some(row);
            Append::one(stream)
        });
        let answers = at_once(&store, appends.collect()).await;
        let won: Vec<_> = (0..APPENDERS).filter(|number| answers[*number].is_ok()).collect();
        assert_eq!(won.len(), 1);
        for (number, answer) in answers.iter().enumerate().filter(|(number, _)| *number != won[0]) {
            assert!(matches!(answer, Err(Error::RequestExists { run_id }) if *run_id == name(won[0])), "{number}");
        }
    });
}

#[test]
fn a_caller_that_goes_away_disturbs_nobody() {
    run(async {
        let store = connect(&database().await).await;
        started(&store).await;
        let appends = (0..APPENDERS).map(|number| {
            let store = Arc::clone(&store);
            spawn(async move { store.append(one_more(number, 1)).await })
        });
        let tasks: Vec<_> = appends.collect();
        tokio::task::yield_now().await;
        for task in tasks.iter().step_by(2) {
            task.abort();
        }
        for (number, task) in tasks.into_iter().enumerate() {
            match task.await {
                Ok(answer) => assert_eq!(answer.unwrap().streams[0].events[0].run_seq, 2),
                Err(gone) => assert!(gone.is_cancelled() && number % 2 == 0),
            }
        }
        // Writers answer in order, so what was abandoned is written or not by the time this is.
        store.append(one_more(1, 2)).await.unwrap();
    });
}

#[test]
fn closing_writes_what_waits() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        started(&store).await;
        let tasks: Vec<_> = (0..APPENDERS)
            .map(|number| {
                let store = Arc::clone(&store);
                spawn(async move { (number, store.append(one_more(number, 1)).await) })
            })
            .collect();
        tokio::task::yield_now().await;
        store.close().await.unwrap();
        assert!(matches!(store.append(one_more(0, 1)).await, Err(Error::Closed)));
        assert!(matches!(store.close().await, Err(Error::Closed)));
        let after = connect(&url).await;
        for task in tasks {
            let (number, answer) = task.await.unwrap();
            let head = after.read_run(&Scope::System, &name(number), 0, 1).await.unwrap().head_seq;
            match answer {
                Ok(_) => assert_eq!(head, 2),
                Err(error) => assert!(matches!(error, Error::Closed) && head == 1, "{error:?}"),
            }
        }
    });
}
