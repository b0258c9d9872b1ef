//! Cursors, notes of failed publications and dead letters.

use servo_model::EventId;

use super::Context;
use crate::error::Error;
use crate::log::{Append, Expected, StoredEvent};
use crate::position::Position;
use crate::relay::{CursorRow, OutboxRow};
use crate::testkit::fixtures::{add, fresh_event};

/// Real events to be noted: positions of other kinds would not be found again.
async fn events(ctx: &Context, count: usize) -> Vec<StoredEvent> {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let more = (1..count).map(|_| fresh_event(&run)).collect();
    ctx.put(add(&run, &acme, Expected::Seq(1), more)).await.unwrap();
    ctx.log(Position::START, 100, count).await
}

fn note(ctx: &Context, event: &StoredEvent, attempts: u32, after_ms: u64) -> OutboxRow {
    OutboxRow {
        position: event.position,
        run_id: event.run_id.clone(),
        run_seq: event.run_seq,
        tenant: event.tenant.clone(),
        attempts,
        next_at: ctx.clock.after(after_ms),
        last_error: format!("attempt {attempts}: no answer"),
    }
}

/// RT-007: where a replay stands is durable and told in full.
pub(super) async fn a_cursor_keeps_its_place(ctx: &Context) {
    assert_eq!(ctx.store.cursor("replay").await.unwrap(), None);
    let row = CursorRow {
        name: "replay".to_owned(),
        position: Position { store_epoch: 3, transaction: u64::from(u32::MAX) + 7, id: 12 },
        last_event_id: Some(EventId::from_u128(77)),
        target: Some(Position { store_epoch: 3, transaction: u64::from(u32::MAX) + 9, id: 40 }),
        deferred: true,
    };
    ctx.store.move_cursor(None, row.clone(), None).await.unwrap();
    assert_eq!(ctx.store.cursor("replay").await.unwrap(), Some(row.clone()));
    let plain = CursorRow::at("replay", Position::of_id(13));
    ctx.store.move_cursor(Some(row.position), plain.clone(), None).await.unwrap();
    assert_eq!(ctx.store.cursor("replay").await.unwrap(), Some(plain.clone()), "nothing of the old row stays");
    assert_eq!(ctx.store.cursor("other").await.unwrap(), None);
    if let Some(again) = ctx.reopen().await {
        assert_eq!(again.store.cursor("replay").await.unwrap(), Some(plain));
        again.store.close().await.unwrap();
    }
}

pub(super) async fn a_cursor_moves_only_from_where_it_is(ctx: &Context) {
    let row = |id| CursorRow::at("relay", Position::of_id(id));
    let at = |id| Some(Position::of_id(id));
    refused!(ctx.store.move_cursor(at(1), row(2), None).await, Error::CursorMoved { name } if name == "relay");
    ctx.store.move_cursor(None, row(5), None).await.unwrap();
    refused!(ctx.store.move_cursor(None, row(6), None).await, Error::CursorMoved { .. });
    refused!(ctx.store.move_cursor(at(4), row(6), None).await, Error::CursorMoved { .. });
    assert_eq!(ctx.store.cursor("relay").await.unwrap(), Some(row(5)));
    ctx.store.move_cursor(at(5), row(9), None).await.unwrap();
    ctx.store.move_cursor(at(9), row(2), None).await.unwrap();
    assert_eq!(ctx.store.cursor("relay").await.unwrap(), Some(row(2)), "a replay goes back");
}

pub(super) async fn one_of_many_moves_the_cursor(ctx: &Context) {
    let results = ctx
        .threads(6, |ctx, index| {
            Box::pin(async move {
                let row = CursorRow::at("relay", Position::of_id(index as u64 + 1));
                ctx.store.move_cursor(None, row, None).await
            })
        })
        .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for result in results.into_iter().filter(Result::is_err) {
        refused!(result, Error::CursorMoved { .. });
    }
}

pub(super) async fn cursors_move_with_an_append(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let row = |name: &str, id| CursorRow::at(name, Position::of_id(id));
    let mut append = Append::one(add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]));
    append.cursors = vec![row("a", 1), row("b", 2), row("a", 3)];
    ctx.store.append(append).await.unwrap();
    assert_eq!(ctx.store.cursor("a").await.unwrap(), Some(row("a", 3)), "the last write wins");
    assert_eq!(ctx.store.cursor("b").await.unwrap(), Some(row("b", 2)));
    // Alone, and against whatever stands there.
    let alone = Append { cursors: vec![row("a", 1)], ..Append::default() };
    ctx.store.append(alone).await.unwrap();
    assert_eq!(ctx.store.cursor("a").await.unwrap(), Some(row("a", 1)));
}

pub(super) async fn notes_come_due_oldest_first(ctx: &Context) {
    let events = events(ctx, 4).await;
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 0);
    for (event, after) in [(&events[2], 0), (&events[0], 100), (&events[1], 0), (&events[3], 200)] {
        ctx.store.outbox_put(note(ctx, event, 1, after)).await.unwrap();
    }
    let start = ctx.clock.now();
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 4);
    let due = ctx.store.outbox_due(10).await.unwrap();
    assert_eq!(due, [note(ctx, &events[1], 1, 0), note(ctx, &events[2], 1, 0)]);
    ctx.clock.advance(99);
    assert_eq!(ctx.store.outbox_due(10).await.unwrap().len(), 2);
    ctx.clock.advance(1);
    let due: Vec<_> = ctx.store.outbox_due(2).await.unwrap().into_iter().map(|row| row.run_seq).collect();
    assert_eq!(due, [1, 2]);

    // The note is updated, not added.
    let updated = OutboxRow { next_at: ctx.clock.after(500), ..note(ctx, &events[0], 2, 0) };
    ctx.store.outbox_put(updated.clone()).await.unwrap();
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 4);
    ctx.clock.advance(500);
    assert_eq!(ctx.store.outbox_due(1).await.unwrap(), [updated]);
    assert!(ctx.clock.now() > start);

    for event in &events {
        ctx.store.outbox_done(event.position).await.unwrap();
        ctx.store.outbox_done(event.position).await.unwrap();
    }
    assert_eq!(ctx.store.outbox_due(10).await.unwrap(), []);
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 0);
}

pub(super) async fn a_note_given_up_is_a_dead_letter(ctx: &Context) {
    let events = events(ctx, 4).await;
    for event in &events[..3] {
        ctx.store.outbox_put(note(ctx, event, 1, 0)).await.unwrap();
    }
    ctx.clock.advance(5);
    for event in [&events[2], &events[0], &events[3]] {
        // Also one that never had a note.
        ctx.store.outbox_bury(note(ctx, event, 12, 0)).await.unwrap();
    }
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 1);
    let letters = ctx.store.dead_letters(Position::START, 10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| letter.run_seq).collect::<Vec<_>>(), [1, 3, 4], "oldest first");
    let letter = &letters[1];
    assert_eq!((letter.position, &letter.run_id), (events[2].position, &events[2].run_id));
    assert_eq!((&letter.tenant, letter.attempts), (&events[2].tenant, 12));
    assert_eq!((letter.last_error.as_str(), letter.buried_at), ("attempt 12: no answer", ctx.clock.now()));
    let after_first = ctx.store.dead_letters(letters[0].position, 1).await.unwrap();
    assert_eq!(after_first, letters[1..2]);
    assert_eq!(ctx.store.dead_letters(letters[2].position, 10).await.unwrap(), []);
}

pub(super) async fn dead_letters_are_redriven(ctx: &Context) {
    let events = events(ctx, 4).await;
    assert_eq!(ctx.store.redrive(None).await.unwrap(), 0);
    for event in &events[..3] {
        ctx.store.outbox_bury(note(ctx, event, 12, 0)).await.unwrap();
    }
    ctx.clock.advance(1_000);
    assert_eq!(ctx.store.redrive(Some(events[3].position)).await.unwrap(), 0, "that is no dead letter");
    assert_eq!(ctx.store.redrive(Some(events[1].position)).await.unwrap(), 1);
    let due = ctx.store.outbox_due(10).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].position, due[0].attempts, due[0].next_at), (events[1].position, 0, ctx.clock.now()));
    assert_eq!((&due[0].run_id, due[0].run_seq, &due[0].tenant), (&events[1].run_id, 2, &events[1].tenant));
    assert_eq!(due[0].last_error, "attempt 12: no answer");
    assert_eq!(ctx.store.dead_letters(Position::START, 10).await.unwrap().len(), 2);
    assert_eq!(ctx.store.redrive(None).await.unwrap(), 2);
    assert_eq!(ctx.store.dead_letters(Position::START, 10).await.unwrap(), []);
    assert_eq!(ctx.store.outbox_due(10).await.unwrap().len(), 3);
}
