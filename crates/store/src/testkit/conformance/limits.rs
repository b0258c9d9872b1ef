//! Sizes: what fits comes back whole, and one more is refused before anything is written.

use servo_model::limits::{INLINE_PAYLOAD_BYTES_MAX, Limits};

use super::Context;
use super::import::imported;
use crate::error::Error;
use crate::log::{Append, Expected, NewEvent};
use crate::position::Position;
use crate::runs::Scope;
use crate::testkit::fixtures::{add, fresh_event, payload, run_id, tenant};

fn sized(run: &str, bytes: usize) -> NewEvent {
    NewEvent { payload: payload(bytes), ..fresh_event(&run_id(run)) }
}

pub(super) async fn payloads_of_every_size_come_back(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let sizes = [
        8,
        INLINE_PAYLOAD_BYTES_MAX - 1,
        INLINE_PAYLOAD_BYTES_MAX,
        INLINE_PAYLOAD_BYTES_MAX + 1,
        1_000_000,
        Limits::default().event_bytes_max(),
    ];
    let sent: Vec<_> = sizes.iter().map(|bytes| sized("inv_1", *bytes)).collect();
    // Inline and large ones in the same append.
    ctx.put(add(&run, &acme, Expected::Seq(1), sent.clone())).await.unwrap();
    let stored = ctx.events(&run).await;
    for (stored, sent) in stored[1..].iter().zip(&sent) {
        assert_eq!(stored.payload.len(), sent.payload.len());
        assert!(stored.payload == sent.payload, "a payload of {} bytes changed", sent.payload.len());
    }
    let log = ctx.log(Position::START, 2, stored.len()).await;
    assert!(log == stored, "the reader of the log gets whole payloads too");
}

/// No reader can be made to hold a thousand of the largest payloads at once.
pub(super) async fn a_page_has_a_size(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let (large, max) = (Limits::default().payload_bytes_max, Limits::default().page_bytes_max);
    let first = ctx.events(&run).await[0].payload.len();
    // With the first event: exactly a page, then one byte more than a page, then inline ones among large ones.
    let sizes = [large, large, max - 2 * large - first, large, large, max - 2 * large + 1, 8, large, 8, 8];
    for chunk in sizes.chunks(2) {
        let events = chunk.iter().map(|bytes| sized("inv_1", *bytes)).collect();
        ctx.put(add(&run, &acme, Expected::Any, events)).await.unwrap();
    }
    let pages = [vec![1, 2, 3, 4], vec![5, 6], vec![7, 8, 9, 10, 11]];
    let (mut after, mut all) = (0, Vec::new());
    for expected in &pages {
        let page = ctx.store.read_run(&Scope::System, &run, after, 100).await.unwrap();
        let seqs: Vec<_> = page.events.iter().map(|event| event.run_seq).collect();
        assert_eq!((&seqs, page.head_seq), (expected, 11));
        after = *seqs.last().unwrap();
        all.extend(page.events);
    }
    assert_eq!(ctx.store.read_run(&Scope::System, &run, after, 100).await.unwrap().events, []);
    // Both limits at once, and a page of one is always had.
    let page = ctx.store.read_run(&Scope::System, &run, 0, 3).await.unwrap();
    assert_eq!(page.events.len(), 3);
    assert!(ctx.log(Position::START, 100, 11).await == all, "the reader of the log gets the same in its pages");
    let page = ctx.store.read_log(Position::START, 100).await.unwrap();
    assert_eq!((page.events.len(), page.next), (4, all[3].position));
}

pub(super) async fn one_byte_too_many_is_refused(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let max = Limits::default().event_bytes_max();
    let events = vec![fresh_event(&run), sized("inv_1", max + 1)];
    refused!(ctx.put(add(&run, &acme, Expected::Seq(1), events)).await, Error::Limit { limit, .. } if limit == max as u64);
    assert_eq!(ctx.sequences(&run).await, [1]);
}

pub(super) async fn a_transaction_has_a_size(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let (two, _) = ctx.start("inv_2", "acme").await;
    let limits = Limits::default();
    let max = limits.transaction_bytes_max;
    let large = limits.payload_bytes_max;
    let streams = |rest: usize| {
        vec![
            add(&one, &acme, Expected::Seq(1), vec![sized("inv_1", large), sized("inv_1", large)]),
            add(&two, &acme, Expected::Seq(1), vec![sized("inv_2", rest)]),
        ]
    };
    let rest = max - 2 * large;
    let refused = ctx.store.append(Append { streams: streams(rest + 1), ..Append::default() }).await;
    refused!(refused, Error::Limit { limit, .. } if limit == max as u64);
    assert_eq!((ctx.sequences(&one).await, ctx.sequences(&two).await), (vec![1], vec![1]));
    ctx.store.append(Append { streams: streams(rest), ..Append::default() }).await.unwrap();
    assert_eq!((ctx.sequences(&one).await, ctx.sequences(&two).await), (vec![1, 2, 3], vec![1, 2]));
}

pub(super) async fn a_run_has_a_last_event(ctx: &Context) {
    let max = Limits::default().events_per_run_max;
    let (row, events) = imported(ctx, "inv_1", &[1, max - 2]);
    ctx.store.import_run(row, events).await.unwrap();
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let put = async |count: usize| {
        let events = (0..count).map(|_| fresh_event(&run)).collect();
        ctx.put(add(&run, &acme, Expected::Any, events)).await
    };
    refused!(put(3).await, Error::Limit { limit, .. } if limit == max);
    assert_eq!(ctx.sequences(&run).await, [1, max - 2], "not even the two that would have fitted");
    put(2).await.unwrap();
    refused!(put(1).await, Error::Limit { .. });
    assert_eq!(ctx.sequences(&run).await, [1, max - 2, max - 1, max]);
    // What is there already needs no room.
    let last = ctx.events(&run).await.pop().unwrap();
    let mut repeated = fresh_event(&run);
    repeated.idempotency_key = last.idempotency_key;
    let outcome = ctx.put(add(&run, &acme, Expected::Any, vec![repeated])).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].inserted), (max, false));
}
