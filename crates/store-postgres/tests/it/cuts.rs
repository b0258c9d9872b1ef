//! The connection is cut at many places of an append, among them between the commit and its answer. R8.

use servo_model::RunId;
use servo_store::testkit::fixtures::{add, dispatch_step, fresh_event, run_id, start_append, tenant};
use servo_store::{Append, DispatchChange, Error, Expected, LogStore, Scope, WorkStore};
use servo_store_postgres::PostgresStore;

use crate::proxy::{Direction, Proxy};
use crate::support::{config, connect, database, run};

/// Cuts per direction.
const CUTS: i64 = 30;

/// Two runs change together, with a dispatch.
fn append(runs: &[RunId; 2], expected: Expected) -> Append {
    let acme = tenant("acme");
    let events = |run: &RunId| vec![fresh_event(run), fresh_event(run)];
    let mut streams: Vec<_> = runs.iter().map(|run| add(run, &acme, expected, events(run))).collect();
    let step = dispatch_step("a", 1);
    let request_id = step.request_id(&runs[0]);
    streams[0].dispatches.push(DispatchChange::Queue { request_id, target: "t".to_owned(), step: Some(step) });
    Append { streams, ..Append::default() }
}

/// What one cut led to.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    unknown_and_written: usize,
    unknown_and_not: usize,
    passed: usize,
}

/// Cuts at one place after another. `again` makes the append that is sent after an error from the one before.
async fn sweep(expected: Expected, directions: &[Direction], again: fn(&Append) -> Append, check: fn(usize)) -> Tally {
    let url = database().await;
    let direct = connect(&url).await;
    let proxy = Proxy::start().await;
    let mut config = config(&proxy.url(&url));
    config.append_connections = 1;
    let store = PostgresStore::connect(config).await.unwrap();
    let mut tally = Tally::default();
    for &direction in directions {
        let mut span = 0;
        for cut in 0..=CUTS {
            let pair = |name: &str| ["a", "b"].map(|half| run_id(&format!("inv_{direction:?}_{cut}_{name}_{half}")));
            let (runs, others) = (pair("cut"), pair("before"));
            for run in runs.iter().chain(&others) {
                direct.append(start_append(run, &tenant("acme"))).await.unwrap();
            }
            // Makes a new connection with all statements prepared, so that the cut falls into the append alone and all
            // appends send the same.
            proxy.cut_now();
            let before = append(&others, expected);
            while store.append(before.clone()).await.is_err() {}
            let mut work = append(&runs, expected);
            proxy.heal();
            if cut > 0 {
                proxy.cut_after(direction, span * cut / (CUTS + 1));
            }
            let mut answer = store.append(work.clone()).await;
            if cut == 0 {
                // The first goes through and tells how much there is to cut.
                span = proxy.passed(direction);
            }
            let written = direct.read_run(&Scope::System, &runs[0], 0, 10).await.unwrap().head_seq == 3;
            match &answer {
                Ok(_) => tally.passed += 1,
                Err(Error::Unavailable { maybe_written: true, .. }) if written => tally.unknown_and_written += 1,
                Err(Error::Unavailable { maybe_written: true, .. }) => tally.unknown_and_not += 1,
                Err(Error::Unavailable { maybe_written: false, .. }) => {
                    assert!(!written, "{direction:?} cut {cut}: written, although the store denied it");
                    tally.refused += 1;
                }
                Err(error) => panic!("{direction:?} cut {cut}: {error:?}"),
            }
            proxy.heal();
            while answer.is_err() {
                work = again(&work);
                answer = store.append(work.clone()).await;
            }
            for run in &runs {
                let page = direct.read_run(&Scope::System, run, 0, 10).await.unwrap();
                check(page.events.len());
            }
        }
    }
    let appends = u64::try_from(2 * (CUTS + 1)).unwrap() * directions.len() as u64;
    assert_eq!(direct.backlog().await.unwrap().pending, appends, "one dispatch per append");
    tally
}

const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

/// Judged in the middle of its transaction: what is cut before the second half is sent was not written, and is said not to be.
#[test]
fn a_repeated_append_leaves_one_copy_wherever_it_was_cut() {
    run(async {
        let tally = sweep(Expected::Any, &BOTH, Append::clone, |events| assert_eq!(events, 3)).await;
        assert!(tally.refused > 5 && tally.unknown_and_written > 1, "the cuts are where they should be: {tally:?}");
    });
}

/// Sent as one: after that nobody knows.
#[test]
fn so_does_one_that_the_database_checks() {
    run(async {
        let tally = sweep(Expected::Seq(1), &BOTH, Append::clone, |events| assert_eq!(events, 3)).await;
        let are_unknown = tally.unknown_and_not > 5 && tally.unknown_and_written > 1;
        assert!(are_unknown, "the cuts are where they should be: {tally:?}");
    });
}

/// The control: whoever takes an unknown outcome for a failure and writes again under new keys, writes twice.
#[test]
fn an_append_repeated_under_new_keys_is_there_twice() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static TWICE: AtomicUsize = AtomicUsize::new(0);
    fn anew(append: &Append) -> Append {
        let mut append = append.clone();
        for stream in &mut append.streams {
            stream.expected = Expected::Any;
            stream.events = stream.events.iter().map(|_| fresh_event(&stream.run_id)).collect();
        }
        append
    }
    run(async {
        let count = |events: usize| {
            TWICE.fetch_add(usize::from(events > 3), Ordering::Relaxed);
        };
        sweep(Expected::Seq(1), &[Direction::Down], anew, count).await;
        assert!(TWICE.load(Ordering::Relaxed) > 0);
    });
}
