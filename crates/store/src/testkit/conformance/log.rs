//! Appending and reading the events of one run.

use servo_model::Timestamp;

use super::Context;
use crate::error::Error;
use crate::log::{Expected, KeyMode};
use crate::runs::Scope;
use crate::testkit::fixtures::{add, fresh_event, new_event, run_id, start_append, start_stream, tenant};

pub(super) async fn a_new_run_starts_at_sequence_one(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let appended = ctx.store.append(start_append(&run, &acme)).await.unwrap();
    assert_eq!(appended.epoch, None);
    let outcome = &appended.streams[0].events[0];
    assert_eq!((outcome.run_seq, outcome.inserted), (1, true));
    assert_eq!(outcome.emitted_at, ctx.clock.now());
    assert_eq!(ctx.sequences(&run).await, [1]);
}

pub(super) async fn sequences_follow_the_head(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let mut expected = 1;
    for count in [1, 3, 2] {
        ctx.clock.advance(5);
        let events = (0..count).map(|_| fresh_event(&run)).collect();
        let outcome = ctx.put(add(&run, &acme, Expected::Seq(expected), events)).await.unwrap();
        let given: Vec<_> = outcome.events.iter().map(|event| event.run_seq).collect();
        assert_eq!(given, (expected + 1..=expected + count).collect::<Vec<_>>());
        assert!(outcome.events.iter().all(|event| event.inserted && event.emitted_at == ctx.clock.now()));
        expected += count;
    }
    let outcome = ctx.put(add(&run, &acme, Expected::Any, vec![fresh_event(&run)])).await.unwrap();
    assert_eq!(outcome.events[0].run_seq, expected + 1);
    assert_eq!(ctx.sequences(&run).await, (1..=expected + 1).collect::<Vec<_>>());
}

pub(super) async fn events_come_back_as_they_went_in(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let bodies = [
        "{}",
        "{\"b\": 1.0,\n  \"a\": [1e2, -0, 12345678901234567890]}",
        "{\"text\":\"gr\u{fc}\u{df}e \u{1f980} \\u0000 \\ud83d\\ude00 '; -- $1 ?\"}",
        "{\"a\":1,\"a\":2}",
    ];
    let mut sent = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let mut event = fresh_event(&run);
        event.payload = (*body).to_owned();
        event.event_type = format!("worker.assigned/{index}").into();
        event.emitted_by = "w\u{f6}rker:1 'x'".into();
        event.occurred_at = (index % 2 == 1).then(|| Timestamp::from_millis(index as i64));
        sent.push(event);
    }
    ctx.clock.advance(1_234);
    ctx.put(add(&run, &acme, Expected::Seq(1), sent.clone())).await.unwrap();
    let stored = ctx.events(&run).await;
    assert_eq!(stored.len(), 1 + sent.len());
    for (stored, sent) in stored[1..].iter().zip(&sent) {
        assert_eq!((&stored.run_id, &stored.tenant), (&run, &acme));
        assert_eq!((stored.event_id, stored.idempotency_key), (sent.event_id, sent.idempotency_key));
        assert_eq!((&stored.event_type, &stored.emitted_by), (&sent.event_type, &sent.emitted_by));
        assert_eq!((stored.occurred_at, stored.emitted_at), (sent.occurred_at, ctx.clock.now()));
        assert_eq!(stored.payload, sent.payload, "to the letter, not parsed and printed again");
    }
}

pub(super) async fn an_unknown_run_is_not_found(ctx: &Context) {
    let (run, acme) = (run_id("inv_none"), tenant("acme"));
    for expected in [Expected::Any, Expected::Seq(0), Expected::Seq(3)] {
        refused!(ctx.put(add(&run, &acme, expected, vec![fresh_event(&run)])).await, Error::NotFound);
        refused!(ctx.put(add(&run, &acme, expected, Vec::new())).await, Error::NotFound);
    }
    refused!(ctx.store.read_run(&Scope::System, &run, 0, 10).await, Error::NotFound);
    refused!(ctx.store.snapshot_at(&Scope::System, &run, 10).await, Error::NotFound);
    assert_eq!(ctx.settled_log(crate::Position::START).await, []);
}

pub(super) async fn another_sequence_is_a_conflict(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    ctx.put(add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)])).await.unwrap();
    for wrong in [0, 1, 3, 1_000] {
        let result = ctx.put(add(&run, &acme, Expected::Seq(wrong), vec![fresh_event(&run)])).await;
        refused!(result, Error::Conflict { run_id, expected, actual: 2 } if run_id == run && expected == wrong);
        refused!(ctx.put(add(&run, &acme, Expected::Seq(wrong), Vec::new())).await, Error::Conflict { .. });
    }
    assert_eq!(ctx.sequences(&run).await, [1, 2]);
}

pub(super) async fn a_new_run_needs_its_row(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let mut stream = start_stream(&run, &acme);
    stream.row = None;
    refused!(ctx.put(stream).await, Error::Invalid { .. });
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), None);
}

pub(super) async fn a_run_is_created_once(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let first = ctx.events(&run).await;

    // The same start again: its keys are in the log, so it is the start that happened.
    let outcome = ctx.put(start_stream(&run, &acme)).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].inserted), (1, false));
    assert_eq!(outcome.events[0].event_id, first[0].event_id);
    let mut strict = start_stream(&run, &acme);
    strict.key_mode = KeyMode::Strict;
    refused!(ctx.put(strict).await, Error::KeyExists { run_seq: 1, .. });

    // Another start of the same run, in whole or in part.
    let mut other = start_stream(&run, &acme);
    other.events = vec![fresh_event(&run)];
    refused!(ctx.put(other).await, Error::RunExists { run_id } if run_id == run);
    let mut mixed = start_stream(&run, &acme);
    mixed.events.push(fresh_event(&run));
    refused!(ctx.put(mixed).await, Error::RunExists { run_id } if run_id == run);
    let mut bare = start_stream(&run, &acme);
    bare.events.clear();
    refused!(ctx.put(bare).await, Error::RunExists { run_id } if run_id == run);
    assert_eq!(ctx.events(&run).await, first);
}

pub(super) async fn a_page_ends_where_it_is_told(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let events = (0..6).map(|_| fresh_event(&run)).collect();
    ctx.put(add(&run, &acme, Expected::Seq(1), events)).await.unwrap();
    let all = ctx.events(&run).await;
    for limit in [1, 2, 3, 7, 100] {
        let (mut read, mut after) = (Vec::new(), 0);
        loop {
            let page = ctx.store.read_run(&Scope::System, &run, after, limit).await.unwrap();
            assert_eq!(page.head_seq, 7);
            assert!(page.events.len() <= limit as usize);
            let Some(last) = page.events.last() else { break };
            after = last.run_seq;
            read.extend(page.events);
        }
        assert_eq!(read, all, "in pages of {limit}");
    }
    for beyond in [7, 8, u64::from(u32::MAX), u64::MAX] {
        let page = ctx.store.read_run(&Scope::System, &run, beyond, 10).await.unwrap();
        assert_eq!((page.events.len(), page.head_seq), (0, 7), "after {beyond}");
    }
}

pub(super) async fn the_system_stream_is_there_from_the_start(ctx: &Context) {
    let system = servo_model::RunId::system();
    let page = ctx.store.read_run(&Scope::System, &system, 0, 10).await.unwrap();
    assert_eq!((page.events.len(), page.head_seq), (0, 0));
    for expected in 1..=3 {
        let event = new_event(&system, "RUN", expected, "run.heartbeat");
        let outcome = ctx.put(crate::testkit::fixtures::system_stream(vec![event])).await.unwrap();
        assert_eq!(outcome.events[0].run_seq, u64::from(expected));
    }
    assert_eq!(ctx.sequences(&system).await, [1, 2, 3]);
}

pub(super) async fn an_append_without_events_changes_rows(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let mut stream = add(&run, &acme, Expected::Seq(1), Vec::new());
    stream.timer = crate::log::TimerChange::Set(ctx.clock.after(50));
    let outcome = ctx.put(stream).await.unwrap();
    assert_eq!(outcome.events, []);
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), Some(ctx.clock.after(50)));
    assert_eq!(ctx.sequences(&run).await, [1]);
}

pub(super) async fn the_clock_is_the_one_given(ctx: &Context) {
    assert_eq!(ctx.store.now().await.unwrap(), ctx.clock.now());
    ctx.clock.advance(12_345);
    assert_eq!(ctx.store.now().await.unwrap(), ctx.clock.now());
}
