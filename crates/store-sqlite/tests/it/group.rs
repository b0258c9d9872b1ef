//! Group commit: who waits together is committed together, and each answer is that of its own transaction.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use servo_model::{RunId, TenantId};
use servo_store::log::QueueChange;
use servo_store::testkit::clock::ManualClock;
use servo_store::testkit::fixtures;
use servo_store::{Append, Error, Expected, LogStore, RunStore, Scope};
use servo_store_sqlite::{Config, SqliteStore};

use crate::support::{events, folder, many, one_more, open, spawn, wait};

/// Holds the writer inside the next transaction: it asks for the time there.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Stage>, Condvar)>);

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    Shut,
    Held,
}

impl Gate {
    fn config(&self, dir: &std::path::Path) -> Config {
        let (gate, clock) = (self.clone(), ManualClock::new());
        Config::new(
            dir,
            Arc::new(move || {
                gate.pass();
                clock.now()
            }),
        )
    }

    fn pass(&self) {
        let (stage, changed) = &*self.0;
        let mut stage = stage.lock().unwrap();
        if *stage == Stage::Shut {
            *stage = Stage::Held;
            changed.notify_all();
            while *stage == Stage::Held {
                stage = changed.wait(stage).unwrap();
            }
        }
    }

    fn set(&self, to: Stage) {
        *self.0.0.lock().unwrap() = to;
        self.0.1.notify_all();
    }

    /// Waits until the writer is held.
    fn holds(&self) {
        let (stage, changed) = &*self.0;
        let mut stage = stage.lock().unwrap();
        while *stage != Stage::Held {
            stage = changed.wait(stage).unwrap();
        }
    }
}

/// Lets a call put its job into the queue, and not wait for it.
fn begin<F: Future>(call: Pin<&mut F>) {
    assert!(matches!(call.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

fn tenant() -> TenantId {
    fixtures::tenant("acme")
}

fn start(store: &SqliteStore, name: &str) -> RunId {
    let run = fixtures::run_id(name);
    wait(store.append(fixtures::start_append(&run, &tenant()))).unwrap();
    run
}

fn at(run: &RunId, seq: u64) -> Append {
    Append::one(fixtures::add(run, &tenant(), Expected::Seq(seq), vec![fixtures::fresh_event(run)]))
}

#[test]
fn many_appenders_share_commits_and_one_does_not_wait() {
    let dir = folder();
    let store = open(dir.path());
    let runs: Vec<_> = (0..64).map(|number| start(&store, &format!("run-{number}"))).collect();
    let before = store.stats();
    assert_eq!(before.jobs, before.commits, "one caller at a time is one commit at a time");
    let appenders: Vec<_> = runs
        .iter()
        .cloned()
        .map(|run| {
            let store = store.clone();
            spawn(async move {
                for seq in 1..=40 {
                    store.append(at(&run, seq)).await.unwrap();
                }
            })
        })
        .collect();
    for appender in appenders {
        wait(appender).unwrap();
    }
    let after = store.stats();
    let (jobs, commits) = (after.jobs - before.jobs, after.commits - before.commits);
    assert_eq!(jobs, 64 * 40);
    assert!(commits * 4 <= jobs, "{commits} commits for {jobs} jobs");
    for run in &runs {
        let sequences: Vec<_> = events(&store, run).iter().map(|event| event.run_seq).collect();
        assert_eq!(sequences, (1..=41).collect::<Vec<_>>());
    }
}

#[test]
fn without_group_commit_each_job_is_a_commit() {
    let dir = folder();
    let gate = Gate::default();
    let mut config = gate.config(dir.path());
    config.group_commit = false;
    let store = SqliteStore::open(config).unwrap();
    let (a, b, c) = (start(&store, "a"), start(&store, "b"), start(&store, "c"));
    gate.set(Stage::Shut);
    let (mut one, mut two, mut three) =
        (pin!(store.append(at(&a, 1))), pin!(store.append(at(&b, 1))), pin!(store.append(at(&c, 1))));
    begin(one.as_mut());
    gate.holds();
    begin(two.as_mut());
    begin(three.as_mut());
    gate.set(Stage::Open);
    wait(async { (one.await.unwrap(), two.await.unwrap(), three.await.unwrap()) });
    assert_eq!(store.stats().commits, store.stats().jobs);
    assert_eq!(store.stats().batch_max, 1);
}

#[test]
fn a_conflict_in_a_group_spoils_only_its_own() {
    let dir = folder();
    let gate = Gate::default();
    let store = SqliteStore::open(gate.config(dir.path())).unwrap();
    let runs = ["held", "good", "stale", "late", "last"].map(|name| start(&store, name));
    let [held, good, stale, late, last] = &runs;
    let before = store.stats();
    gate.set(Stage::Shut);
    let mut first = pin!(store.append(at(held, 1)));
    begin(first.as_mut());
    gate.holds();
    // Refused after it has written: two events, and then a lease that nobody holds.
    let mut events_then_lease = fixtures::add(late, &tenant(), Expected::Seq(1), vec![]);
    events_then_lease.events = vec![fixtures::fresh_event(late), fixtures::fresh_event(late)];
    events_then_lease.queue = QueueChange::Remove { leased_by: Some("nobody".to_owned()) };
    let mut calls = [
        Box::pin(store.append(at(good, 1))),
        Box::pin(store.append(at(stale, 7))),
        Box::pin(store.append(Append::one(events_then_lease))),
        // The head that the refused one reached must not be remembered.
        Box::pin(store.append(at(late, 1))),
        Box::pin(store.append(many(last, &tenant(), 3))),
    ];
    for call in &mut calls {
        begin(call.as_mut());
    }
    gate.set(Stage::Open);
    wait(first).unwrap();
    let [good_answer, stale_answer, lease_answer, late_answer, last_answer] = calls.map(wait);
    assert_eq!(good_answer.unwrap().streams[0].events[0].run_seq, 2);
    assert!(matches!(stale_answer, Err(Error::Conflict { expected: 7, actual: 1, .. })));
    assert!(matches!(lease_answer, Err(Error::LeaseLost { .. })));
    assert_eq!(late_answer.unwrap().streams[0].events[0].run_seq, 2);
    assert_eq!(last_answer.unwrap().streams[0].events[2].run_seq, 4);
    assert_eq!(store.stats().commits - before.commits, 2, "the held one, and the group");
    assert_eq!(runs.map(|run| events(&store, &run).len()), [2, 2, 1, 2, 4]);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let dir = folder();
    let gate = Gate::default();
    let mut config = gate.config(dir.path());
    config.queue_jobs_max = 1;
    let store = SqliteStore::open(config).unwrap();
    let run = start(&store, "run");
    gate.set(Stage::Shut);
    let (mut running, mut waiting) = (pin!(store.append(at(&run, 1))), pin!(store.append(at(&run, 2))));
    begin(running.as_mut());
    gate.holds();
    begin(waiting.as_mut());
    let refused = wait(store.append(at(&run, 3)));
    assert!(
        matches!(&refused, Err(Error::Unavailable { detail, maybe_written: false }) if detail == "write queue is full"),
        "{refused:?}"
    );
    gate.set(Stage::Open);
    wait(running).unwrap();
    wait(waiting).unwrap();
    assert_eq!(events(&store, &run).len(), 3);
}

#[test]
fn readers_do_not_wait_for_the_writer() {
    let dir = folder();
    let gate = Gate::default();
    let store = SqliteStore::open(gate.config(dir.path())).unwrap();
    let run = start(&store, "run");
    assert_eq!(events(&store, &run).len(), 1, "from here on the database has it");
    gate.set(Stage::Shut);
    let mut running = pin!(store.append(at(&run, 1)));
    begin(running.as_mut());
    gate.holds();
    assert_eq!(events(&store, &run).len(), 1, "what is answered, and not what is under way");
    gate.set(Stage::Open);
    wait(running).unwrap();
    assert_eq!(events(&store, &run).len(), 2);
}

#[test]
fn the_log_file_is_copied_and_used_again() {
    let dir = folder();
    let store = open(dir.path());
    let run = start(&store, "run");
    for _ in 0..300 {
        wait(store.append(one_more(&run, &tenant(), 60_000))).unwrap();
        // Whoever reads has the database catch up.
        wait(store.get_run(&Scope::System, &run)).unwrap();
    }
    let written = 300 * 60_000;
    let log = std::fs::metadata(dir.path().join("servo.db-wal")).unwrap().len();
    assert!(store.stats().checkpoints >= 3, "{:?}", store.stats());
    assert!(log < written / 2, "the log has {log} of {written} bytes");
}

#[test]
fn closing_finishes_what_was_begun() {
    let dir = folder();
    let gate = Gate::default();
    let store = SqliteStore::open(gate.config(dir.path())).unwrap();
    let run = start(&store, "run");
    gate.set(Stage::Shut);
    let (mut running, mut waiting) = (pin!(store.append(at(&run, 1))), pin!(store.append(at(&run, 2))));
    begin(running.as_mut());
    gate.holds();
    begin(waiting.as_mut());
    let mut closing = pin!(servo_store::AdminStore::close(&store));
    begin(closing.as_mut());
    assert!(matches!(wait(store.append(at(&run, 3))), Err(Error::Closed)));
    gate.set(Stage::Open);
    wait(async { (running.await.unwrap(), waiting.await.unwrap(), closing.await.unwrap()) });
    assert_eq!(events(&open(dir.path()), &run).len(), 3);
}

#[test]
fn work_whose_caller_has_gone_is_still_done() {
    let dir = folder();
    let gate = Gate::default();
    let store = SqliteStore::open(gate.config(dir.path())).unwrap();
    let run = start(&store, "run");
    gate.set(Stage::Shut);
    let mut forgotten = Box::pin(store.append(at(&run, 1)));
    begin(forgotten.as_mut());
    gate.holds();
    drop(forgotten);
    gate.set(Stage::Open);
    wait(store.append(at(&run, 2))).unwrap();
}

/// A run gets its number with its first event, and none with one that is refused: another run may have that number then.
#[test]
fn a_refused_first_event_numbers_nothing() {
    let dir = folder();
    let gate = Gate::default();
    let store = SqliteStore::open(gate.config(dir.path())).unwrap();
    let (held, empty, other) = (start(&store, "held"), fixtures::run_id("empty"), fixtures::run_id("other"));
    let mut nothing = fixtures::start_stream(&empty, &tenant());
    nothing.events.clear();
    wait(store.append(Append::one(nothing))).unwrap();
    gate.set(Stage::Shut);
    let mut first = pin!(store.append(at(&held, 1)));
    begin(first.as_mut());
    gate.holds();
    let (mut stale, mut new) =
        (pin!(store.append(at(&empty, 7))), pin!(store.append(fixtures::start_append(&other, &tenant()))));
    begin(stale.as_mut());
    begin(new.as_mut());
    gate.set(Stage::Open);
    let (first, stale, new) = wait(async { (first.await, stale.await, new.await) });
    assert!(first.is_ok() && matches!(stale, Err(Error::Conflict { .. })) && new.is_ok(), "{stale:?}");
    wait(store.append(at(&empty, 0))).unwrap();
    for run in [&empty, &other] {
        assert_eq!(events(&store, run).iter().map(|event| &event.run_id).collect::<Vec<_>>(), [run]);
    }
    assert_eq!(wait(servo_store::AdminStore::integrity(&store)).unwrap().problems, Vec::<String>::new());
}
