//! Importing a run: it comes back as it was, gaps included, and goes on from there.

use servo_canon::Digest;
use servo_model::Timestamp;
use servo_model::event::FORMAT;

use super::Context;
use crate::error::Error;
use crate::log::{Expected, StoredEvent};
use crate::position::Position;
use crate::resync::load_state;
use crate::runs::{RunRow, Scope};
use crate::testkit::fixtures::{add, fresh_event, run_id, run_queued, run_row, start_stream, tenant, typed_event};

/// A run as another store would export it, with these sequences.
pub(super) fn imported(ctx: &Context, run: &str, sequences: &[u64]) -> (RunRow, Vec<StoredEvent>) {
    let (run, acme) = (run_id(run), tenant("acme"));
    let mut row = run_row(&run, &acme, Timestamp::from_millis(1_600_000_000_000));
    row.changed_seq = *sequences.last().unwrap_or(&0);
    let events = sequences.iter().enumerate().map(|(index, seq)| {
        let event = if index == 0 { typed_event(&run, &run_queued(&acme)) } else { fresh_event(&run) };
        StoredEvent {
            // Positions of the other store mean nothing here.
            position: Position::of_id(1_000_000 + seq),
            format: FORMAT,
            run_id: run.clone(),
            tenant: acme.clone(),
            run_seq: *seq,
            event_id: event.event_id,
            event_type: event.event_type,
            idempotency_key: event.idempotency_key,
            emitted_at: Timestamp::from_millis(1_600_000_000_000 + index as i64),
            emitted_by: "elsewhere".into(),
            occurred_at: (index % 2 == 1).then(|| Timestamp::from_millis(1_500_000_000_000)),
            payload: event.payload,
        }
    });
    let events = events.collect();
    assert!(ctx.clock.now() > Timestamp::from_millis(1_600_000_000_000));
    (row, events)
}

/// Everything but the position.
fn without_position(events: &[StoredEvent]) -> Vec<StoredEvent> {
    events.iter().map(|event| StoredEvent { position: Position::START, ..event.clone() }).collect()
}

/// ES-003: gaps are kept, read over, and no reason to renumber.
pub(super) async fn gaps_stay_and_the_run_goes_on(ctx: &Context) {
    let (row, events) = imported(ctx, "inv_1", &[2, 3, 7, 12]);
    ctx.store.import_run(row.clone(), events.clone()).await.unwrap();
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), Some(row));
    let stored = ctx.events(&run).await;
    assert_eq!(without_position(&stored), without_position(&events), "sequences, times and ids are the ones they had");
    for (after, expected) in [(0, &[2, 3, 7, 12][..]), (3, &[7, 12]), (4, &[7, 12]), (7, &[12]), (12, &[])] {
        let page = ctx.store.read_run(&Scope::System, &run, after, 10).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.run_seq).collect::<Vec<_>>(), expected);
        assert_eq!(page.head_seq, 12);
    }
    assert_eq!(ctx.store.read_run(&Scope::System, &run, 3, 1).await.unwrap().events[0].run_seq, 7);
    let state = load_state(&*ctx.store, &Scope::System, &run).await.unwrap();
    assert_eq!(state.last_event_seq, 12);

    refused!(
        ctx.put(add(&run, &acme, Expected::Seq(4), vec![fresh_event(&run)])).await,
        Error::Conflict { actual: 12, .. }
    );
    let outcome = ctx.put(add(&run, &acme, Expected::Seq(12), vec![fresh_event(&run)])).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].emitted_at), (13, ctx.clock.now()));
    // Keys of imported events are known.
    let mut repeated = fresh_event(&run);
    repeated.idempotency_key = events[2].idempotency_key;
    let outcome = ctx.put(add(&run, &acme, Expected::Any, vec![repeated])).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].event_id), (7, events[2].event_id));
}

pub(super) async fn a_reader_sees_it_come_in(ctx: &Context) {
    ctx.start("inv_0", "acme").await;
    let before = ctx.log(Position::START, 10, 1).await[0].position;
    let (row, events) = imported(ctx, "inv_1", &[1, 2, 5]);
    ctx.store.import_run(row, events.clone()).await.unwrap();
    let seen = ctx.log(before, 1, 3).await;
    assert_eq!(without_position(&seen), without_position(&events));
    assert!(seen.iter().all(|event| event.position > before), "new positions, after all that was there");
    assert_eq!(seen, ctx.events(&run_id("inv_1")).await);
}

pub(super) async fn an_export_comes_back_after_deletion(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let key = Digest::of(b"request");
    let mut stream = start_stream(&run, &acme);
    stream.row = Some(RunRow { request_key: Some(key), ..run_row(&run, &acme, ctx.clock.now()) });
    stream.events.extend([fresh_event(&run), fresh_event(&run)]);
    stream.events[1].payload = crate::testkit::fixtures::payload(100_000);
    ctx.put(stream).await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    let events = ctx.events(&run).await;
    refused!(ctx.store.import_run(row.clone(), events.clone()).await, Error::RunExists { run_id } if run_id == run);
    ctx.store.delete_run(&Scope::System, &run).await.unwrap();
    ctx.clock.advance(1_000);
    ctx.store.import_run(row.clone(), events.clone()).await.unwrap();
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), Some(row));
    assert!(without_position(&ctx.events(&run).await) == without_position(&events));
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), Some(run));
}

pub(super) async fn a_taken_request_is_refused(ctx: &Context) {
    let key = Some(Digest::of(b"request"));
    let (row, events) = imported(ctx, "inv_1", &[1]);
    ctx.store.import_run(RunRow { request_key: key, ..row }, events).await.unwrap();
    let (row, events) = imported(ctx, "inv_2", &[1]);
    let result = ctx.store.import_run(RunRow { request_key: key, ..row.clone() }, events.clone()).await;
    refused!(result, Error::RequestExists { run_id } if run_id.as_str() == "inv_1");
    assert_eq!(ctx.store.get_run(&Scope::System, &run_id("inv_2")).await.unwrap(), None);
    ctx.store.import_run(row, events).await.unwrap();
}

type Breaker = fn(&mut Vec<StoredEvent>);

/// ES-004: sequences from outside are taken only where they can be a run's.
pub(super) async fn a_broken_export_is_refused(ctx: &Context) {
    let whole = || imported(ctx, "inv_1", &[1, 2, 3]);
    let (row, none) = imported(ctx, "inv_1", &[]);
    refused!(ctx.store.import_run(row, none).await, Error::Invalid { field, .. } if field == "events");
    let breakers: [(&str, Breaker); 5] = [
        ("events/2/runSeq", |events| events[2].run_seq = 2),
        ("events/1/runSeq", |events| events.swap(0, 1)),
        ("events/0/runSeq", |events| events[0].run_seq = 0),
        ("events/1/runId", |events| events[1].run_id = run_id("inv_2")),
        ("events/2/idempotencyKey", |events| events[2].idempotency_key = events[1].idempotency_key),
    ];
    for (wrong, break_it) in breakers {
        let (row, mut events) = whole();
        break_it(&mut events);
        refused!(ctx.store.import_run(row, events).await, Error::Invalid { field, .. } if field == wrong);
        assert_eq!(ctx.store.get_run(&Scope::System, &run_id("inv_1")).await.unwrap(), None, "{wrong}");
    }
    assert_eq!(ctx.settled_log(Position::START).await, []);
    let (row, events) = whole();
    ctx.store.import_run(row, events).await.unwrap();
}

pub(super) async fn events_belong_to_the_tenant_of_the_row(ctx: &Context) {
    let (mut row, events) = imported(ctx, "inv_1", &[1, 2]);
    row.tenant = tenant("globex");
    ctx.store.import_run(row, events).await.unwrap();
    let run = run_id("inv_1");
    refused!(ctx.store.read_run(&Scope::Tenant(tenant("acme")), &run, 0, 10).await, Error::NotFound);
    let page = ctx.store.read_run(&Scope::Tenant(tenant("globex")), &run, 0, 10).await.unwrap();
    assert!(page.events.len() == 2 && page.events.iter().all(|event| event.tenant.as_str() == "globex"));
}
