//! What a refused job leaves, and what is known after everything was forgotten.

use rusqlite::Connection;
use servo_model::contract::DispatchState;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::testkit::fixtures;
use servo_store::{Append, DispatchChange, Error, Expected, StreamAppend};

use super::*;
use crate::writer::append::append;

struct Bench {
    conn: Connection,
    limits: Limits,
    memory: Memory,
    newer: Ahead,
    changes: Vec<Change>,
}

impl Bench {
    fn new() -> Self {
        let conn = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&conn, Timestamp::EPOCH).unwrap();
        crate::schema::seed(&conn, Timestamp::EPOCH).unwrap();
        let (limits, memory) = (Limits::default(), Memory::default());
        Self { conn, limits, memory, newer: Ahead::default(), changes: Vec::new() }
    }

    /// One job of the group.
    fn job<T>(&mut self, work: impl FnOnce(&mut View<'_>) -> Result<T, Fault>) -> Result<T, Error> {
        let Self { conn, limits, memory, newer, changes } = self;
        let place = Place { conn, newer, older: None, limits, sabotage: Sabotage::default() };
        let mut view = View::new(&place, memory, changes, Timestamp::EPOCH);
        work(&mut view).map_err(|fault| {
            view.take_back();
            fault.into_error(conn)
        })
    }

    /// The group is durable.
    fn keep(&mut self) {
        self.changes.drain(..).for_each(|change| self.newer.absorb(change));
    }

    /// The database has caught up.
    fn apply(&mut self) {
        let ahead = std::mem::take(&mut self.newer);
        crate::apply::apply(&self.conn, &ahead, &self.limits, Sabotage::default()).unwrap();
    }
}

fn names() -> (RunId, TenantId) {
    (fixtures::run_id("run"), fixtures::tenant("acme"))
}

fn moved(run: &RunId, tenant: &TenantId, change: DispatchChange) -> StreamAppend {
    let mut stream = StreamAppend::new(run.clone(), tenant.clone(), Expected::Any);
    stream.dispatches = vec![change];
    stream
}

#[test]
fn a_refused_job_takes_back_what_it_did_to_a_dispatch_of_its_group() {
    let mut bench = Bench::new();
    let (run, tenant) = names();
    let queue = DispatchChange::Queue { request_id: "d".to_owned(), target: "t".to_owned(), step: None };
    let notify = DispatchChange::Notify { request_id: "d".to_owned(), channel: "c".to_owned(), epoch: 1 };
    let unknown = DispatchChange::Deliver { request_id: "none".to_owned() };
    bench.job(|view| append(view, fixtures::start_append(&run, &tenant))).unwrap();
    bench.job(|view| append(view, Append::one(moved(&run, &tenant, queue)))).unwrap();
    let both = vec![moved(&run, &tenant, notify), moved(&run, &tenant, unknown)];
    let refused = bench.job(|view| append(view, Append { streams: both, ..Append::default() }));
    assert!(matches!(refused, Err(Error::DispatchNotFound { .. })), "{refused:?}");
    let state = |bench: &mut Bench| bench.job(|view| Ok(view.dispatch("d")?.unwrap().state)).unwrap();
    assert_eq!(state(&mut bench), DispatchState::Pending);
    bench.keep();
    bench.apply();
    bench.memory.clear();
    assert_eq!(state(&mut bench), DispatchState::Pending);
}

#[test]
fn a_run_is_there_wherever_it_is_and_whatever_was_forgotten() {
    let mut bench = Bench::new();
    let (run, tenant) = names();
    let exists = |bench: &mut Bench| bench.job(|view| view.exists(&run)).unwrap();
    assert!(!exists(&mut bench));
    bench.job(|view| append(view, fixtures::start_append(&run, &tenant))).unwrap();
    assert!(exists(&mut bench), "in the group");
    bench.keep();
    // A group that came to nothing has everything forgotten while runs are ahead of the database.
    bench.memory.clear();
    assert!(exists(&mut bench), "ahead of the database");
    assert!(!bench.job(|view| view.exists(&fixtures::run_id("other"))).unwrap());
    bench.apply();
    assert!(exists(&mut bench), "in the database");
    let again = bench.job(|view| append(view, fixtures::start_append(&run, &tenant)));
    assert!(again.is_ok_and(|again| !again.streams[0].events[0].inserted), "the same events again");
}

#[test]
fn a_refused_job_leaves_no_trace_in_memory() {
    let mut bench = Bench::new();
    let (run, tenant) = names();
    bench.job(|view| append(view, fixtures::start_append(&run, &tenant))).unwrap();
    let changes = bench.changes.clone();
    let event = |bench: &mut Bench, expected| {
        let stream = fixtures::add(&run, &tenant, expected, vec![fixtures::fresh_event(&run)]);
        let other = fixtures::add(&fixtures::run_id("none"), &tenant, Expected::Any, Vec::new());
        bench.job(|view| append(view, Append { streams: vec![stream, other], ..Append::default() }))
    };
    assert!(matches!(event(&mut bench, Expected::Seq(1)), Err(Error::NotFound)));
    assert_eq!(bench.changes, changes);
    let stream = fixtures::add(&run, &tenant, Expected::Seq(1), vec![fixtures::fresh_event(&run)]);
    let appended = bench.job(|view| append(view, Append::one(stream))).unwrap();
    assert_eq!(appended.streams[0].events[0].run_seq, 2);
    let positions = bench.changes.iter().filter_map(|change| match change {
        Change::Event { event, .. } => Some(event.position.id),
        _ => None,
    });
    assert_eq!(positions.collect::<Vec<_>>(), [1, 2], "no position is left out");
}

/// The database is not asked about dispatches of a run that it cannot have yet, so everything else has to be.
#[test]
fn a_dispatch_of_a_run_that_is_ahead_is_known_from_the_group_as_well() {
    let mut bench = Bench::new();
    let (run, acme) = names();
    bench.job(|view| append(view, Append::one(fixtures::start_stream(&run, &acme)))).unwrap();
    bench.keep();
    let step = fixtures::dispatch_step("a", 1);
    let (request_id, target) = (step.request_id(&run), "t".to_owned());
    let queue = DispatchChange::Queue { request_id: request_id.clone(), target, step: Some(step) };
    bench.job(|view| append(view, Append::one(moved(&run, &acme, queue)))).unwrap();
    // It is forgotten with the job that is refused, and stays in the group.
    let notify = |epoch| DispatchChange::Notify { request_id: request_id.clone(), channel: "n".to_owned(), epoch };
    let mut refused = moved(&run, &acme, notify(1));
    refused.dispatches.push(DispatchChange::Deliver { request_id: "none".to_owned() });
    bench.job(|view| append(view, Append::one(refused))).unwrap_err();
    bench.job(|view| append(view, Append::one(moved(&run, &acme, notify(2))))).unwrap();
    bench.keep();
    let unknown = DispatchChange::Withdraw { request_id: fixtures::dispatch_step("a", 2).request_id(&run) };
    bench.job(|view| append(view, Append::one(moved(&run, &acme, unknown)))).unwrap();
    bench.keep();
    bench.apply();
    let row = dispatch::get(&bench.conn, &request_id).unwrap().unwrap();
    assert_eq!((row.state, row.epoch), (DispatchState::Notified, 2));
}
