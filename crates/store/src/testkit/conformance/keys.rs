//! Idempotency keys: what a repeated append is answered, in whole and in part.

use super::Context;
use crate::dispatch::{DispatchChange, QueueClaim};
use crate::error::Error;
use crate::log::{Expected, KeyMode, QueueChange, StoredSnapshot, StreamAppend, TimerChange};
use crate::runs::Scope;
use crate::testkit::fixtures::{add, dispatch_step, event_id, fresh_event, new_event, run_row};
use servo_model::invocation::InvocationStatus;

/// The same facts under new event ids, as a writer that does not know the outcome sends them again.
fn again(stream: &StreamAppend) -> StreamAppend {
    let mut again = stream.clone();
    for event in &mut again.events {
        event.event_id = event_id();
    }
    again
}

pub(super) async fn a_repeated_append_answers_with_what_exists(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let first = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run), fresh_event(&run)]);
    let outcome = ctx.put(first.clone()).await.unwrap();
    let stored = ctx.events(&run).await;
    ctx.clock.advance(1_000);
    // The sequence has moved on since: that is no conflict, because nothing is to be written.
    ctx.put(add(&run, &acme, Expected::Seq(3), vec![fresh_event(&run)])).await.unwrap();
    for expected in [Expected::Seq(1), Expected::Seq(4), Expected::Any] {
        let repeated = StreamAppend { expected, ..again(&first) };
        let answer = ctx.put(repeated).await.unwrap();
        for (answer, original) in answer.events.iter().zip(&outcome.events) {
            assert!(original.inserted && !answer.inserted);
            assert_eq!((answer.run_seq, answer.event_id), (original.run_seq, original.event_id));
            assert_eq!(answer.emitted_at, original.emitted_at);
        }
        assert_eq!(answer.events.len(), 2);
    }
    let now = ctx.events(&run).await;
    assert_eq!(now.len(), 4);
    assert_eq!(now[..3], stored[..], "the original events are untouched");
}

pub(super) async fn a_repeated_append_writes_no_rows(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let first = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]);
    ctx.put(first.clone()).await.unwrap();
    let before = ctx.store.get_run(&Scope::System, &run).await.unwrap();

    let mut repeated = again(&first);
    let mut row = run_row(&run, &acme, ctx.clock.now());
    row.visible = InvocationStatus::Suspended;
    row.changed_seq = 2;
    repeated.row = Some(row);
    repeated.timer = TimerChange::Set(ctx.clock.now());
    repeated.queue = QueueChange::Put { not_before: ctx.clock.now() };
    let (request_id, target) = ("inv_1/a/1".to_owned(), "mock".to_owned());
    repeated.dispatches.push(DispatchChange::Queue { request_id, target, step: Some(dispatch_step("a", 1)) });
    repeated.snapshot = Some(StoredSnapshot { run_seq: 2, state: "{}".to_owned() });
    ctx.put(repeated).await.unwrap();

    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), before);
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), None);
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1_000, 10)).await.unwrap(), []);
    assert_eq!(ctx.store.get_dispatch("inv_1/a/1").await.unwrap(), None);
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run, u64::MAX).await.unwrap(), None);
}

pub(super) async fn strict_mode_names_the_existing_event(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let first = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run), fresh_event(&run)]);
    ctx.put(first.clone()).await.unwrap();
    let original = &ctx.events(&run).await[1];
    for expected in [Expected::Seq(1), Expected::Seq(3), Expected::Any] {
        let strict = StreamAppend { expected, key_mode: KeyMode::Strict, ..again(&first) };
        match ctx.put(strict).await {
            Err(Error::KeyExists { run_id, key, run_seq, event_id }) => {
                assert_eq!((run_id, key), (run.clone(), original.idempotency_key));
                assert_eq!((run_seq, event_id), (2, original.event_id));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ctx.sequences(&run).await, [1, 2, 3]);
    // Keys that are new are appended as ever.
    let fresh =
        StreamAppend { key_mode: KeyMode::Strict, ..add(&run, &acme, Expected::Seq(3), vec![fresh_event(&run)]) };
    assert!(ctx.put(fresh).await.unwrap().events[0].inserted);
}

pub(super) async fn some_existing_keys_are_adopted_with_any(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let known = fresh_event(&run);
    ctx.put(add(&run, &acme, Expected::Seq(1), vec![known.clone()])).await.unwrap();
    let mixed = add(&run, &acme, Expected::Any, vec![fresh_event(&run), known.clone(), fresh_event(&run)]);
    let outcome = ctx.put(again(&mixed)).await.unwrap();
    let told: Vec<_> = outcome.events.iter().map(|event| (event.run_seq, event.inserted)).collect();
    assert_eq!(told, [(3, true), (2, false), (4, true)]);
    assert_eq!(outcome.events[1].event_id, known.event_id);
    assert_eq!(ctx.sequences(&run).await, [1, 2, 3, 4]);
}

pub(super) async fn some_existing_keys_conflict_with_a_sequence(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let known = fresh_event(&run);
    ctx.put(add(&run, &acme, Expected::Seq(1), vec![known.clone()])).await.unwrap();
    let mixed = add(&run, &acme, Expected::Seq(2), vec![fresh_event(&run), known.clone()]);
    refused!(ctx.put(again(&mixed)).await, Error::Conflict { expected: 2, actual: 2, .. });
    // A stale sequence is the first thing wrong with a mixed append, in both modes.
    let stale = StreamAppend { expected: Expected::Seq(1), ..again(&mixed) };
    refused!(ctx.put(again(&stale)).await, Error::Conflict { expected: 1, actual: 2, .. });
    let stale = StreamAppend { key_mode: KeyMode::Strict, ..again(&stale) };
    refused!(ctx.put(stale).await, Error::Conflict { expected: 1, actual: 2, .. });
    for expected in [Expected::Seq(2), Expected::Any] {
        let strict = StreamAppend { expected, key_mode: KeyMode::Strict, ..again(&mixed) };
        refused!(ctx.put(strict).await, Error::KeyExists { run_seq: 2, event_id, .. } if event_id == known.event_id);
    }
    assert_eq!(ctx.sequences(&run).await, [1, 2]);
}

pub(super) async fn a_key_belongs_to_one_run(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let (two, _) = ctx.start("inv_2", "acme").await;
    let event = fresh_event(&one);
    ctx.put(add(&one, &acme, Expected::Seq(1), vec![event.clone()])).await.unwrap();
    let outcome = ctx.put(again(&add(&two, &acme, Expected::Seq(1), vec![event]))).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].inserted), (2, true));
}

pub(super) async fn a_key_twice_in_one_append_makes_one_event(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let twice = || vec![new_event(&run, "a", 1, "test.noted"), new_event(&run, "a", 1, "test.noted")];
    for expected in [Expected::Any, Expected::Seq(1)] {
        // Whether the append is refused or the second adopts the first is the backend's choice.
        let _ = ctx.put(add(&run, &acme, expected, twice())).await;
        let key = twice()[0].idempotency_key;
        let stored = ctx.events(&run).await.iter().filter(|event| event.idempotency_key == key).count();
        assert!(stored <= 1, "{stored} events with one key");
    }
}
