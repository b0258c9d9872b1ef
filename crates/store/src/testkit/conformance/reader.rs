//! The global log: what a reader that follows it sees, also while others write.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::RunId;

use super::Context;
use crate::log::{Append, Expected, StoredEvent};
use crate::position::Position;
use crate::testkit::fixtures::{add, fresh_event, run_id, start_stream, tenant};

/// Each event once, and each run's in order.
fn assert_whole(events: &[StoredEvent], runs: usize, per_run: usize) {
    let ids: BTreeSet<_> = events.iter().map(|event| event.event_id).collect();
    assert_eq!(ids.len(), events.len(), "an event was seen twice");
    assert!(events.windows(2).all(|pair| pair[0].position < pair[1].position), "positions grow");
    let mut sequences: BTreeMap<&RunId, Vec<u64>> = BTreeMap::new();
    for event in events {
        sequences.entry(&event.run_id).or_default().push(event.run_seq);
    }
    assert_eq!(sequences.len(), runs);
    for (run, sequences) in sequences {
        assert_eq!(sequences, (1..=per_run as u64).collect::<Vec<_>>(), "run {run}");
    }
}

async fn three_runs_of_four(ctx: &Context) {
    let acme = tenant("acme");
    let runs = ["inv_1", "inv_2", "inv_3"].map(run_id);
    let append = Append { streams: runs.iter().map(|run| start_stream(run, &acme)).collect(), ..Append::default() };
    ctx.store.append(append).await.unwrap();
    for round in 1..=3 {
        for run in &runs {
            ctx.put(add(run, &acme, Expected::Seq(round), vec![fresh_event(run)])).await.unwrap();
        }
    }
}

pub(super) async fn every_event_is_seen_once_in_order(ctx: &Context) {
    assert_eq!(ctx.store.read_log(Position::START, 10).await.unwrap().events, []);
    three_runs_of_four(ctx).await;
    let all = ctx.log(Position::START, 100, 12).await;
    assert_whole(&all, 3, 4);
    for page in [1, 2, 5, 12] {
        assert_eq!(ctx.log(Position::START, page, 12).await, all, "in pages of {page}");
    }
    for run in ["inv_1", "inv_2", "inv_3"] {
        let of_run: Vec<_> = all.iter().filter(|event| event.run_id.as_str() == run).cloned().collect();
        assert_eq!(of_run, ctx.events(&run_id(run)).await, "the same events as by run");
    }
    // From the middle, as after a restart.
    assert_eq!(ctx.log(all[6].position, 2, 5).await, all[7..]);
}

pub(super) async fn the_head_and_the_counts_match(ctx: &Context) {
    assert_eq!(ctx.store.count_log(Position::START, Position::of_id(9), 100).await.unwrap(), 0);
    three_runs_of_four(ctx).await;
    let all = ctx.log(Position::START, 100, 12).await;
    let (first, last) = (all[0].position, all[11].position);
    assert_eq!(ctx.store.log_head().await.unwrap(), last);
    for (after, until, most, count) in [
        (Position::START, last, 100, 12),
        (Position::START, last, 12, 12),
        (Position::START, last, 5, 5),
        (first, last, 100, 11),
        (first, all[1].position, 100, 1),
        (all[3].position, all[8].position, 100, 5),
        (last, last, 100, 0),
        (last, first, 100, 0),
        (Position::START, Position::START, 100, 0),
    ] {
        assert_eq!(ctx.store.count_log(after, until, most).await.unwrap(), count, "{after} to {until}, at most {most}");
    }
}

const WRITERS: usize = 8;
const APPENDS: u64 = 25;

/// ES-002: whoever comes second gets the next sequence.
pub(super) async fn racing_writers_share_no_sequence(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    let given = ctx
        .threads(WRITERS, |ctx, _| {
            Box::pin(async move {
                let (run, acme) = (run_id("inv_1"), tenant("acme"));
                let mut given = Vec::new();
                for _ in 0..APPENDS {
                    let outcome = ctx.put(add(&run, &acme, Expected::Any, vec![fresh_event(&run)])).await.unwrap();
                    given.push(outcome.events[0].run_seq);
                }
                given
            })
        })
        .await;
    for one in &given {
        assert!(one.windows(2).all(|pair| pair[0] < pair[1]), "one writer's events keep their order");
    }
    let mut all: Vec<u64> = given.into_iter().flatten().collect();
    all.sort_unstable();
    let count = WRITERS as u64 * APPENDS;
    assert_eq!(all, (2..=count + 1).collect::<Vec<_>>());
    assert_eq!(ctx.sequences(&run).await, (1..=count + 1).collect::<Vec<_>>());
}

/// ES-002: of writers that believe the same, one wins.
pub(super) async fn one_of_many_wins_a_sequence(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    for round in 1..=5 {
        let wins = ctx
            .threads(WRITERS, |ctx, _| {
                Box::pin(async move {
                    let (run, acme) = (run_id("inv_1"), tenant("acme"));
                    let head = ctx.store.read_run(&crate::Scope::System, &run, 0, 1).await.unwrap().head_seq;
                    // Everybody has read the head of this round before anybody writes in most runs; where not, the
                    // late reader races for the next sequence and is counted there.
                    (head, ctx.put(add(&run, &acme, Expected::Seq(head), vec![fresh_event(&run)])).await)
                })
            })
            .await;
        let mut won = BTreeSet::new();
        for (head, result) in wins {
            match result {
                Ok(outcome) => {
                    assert_eq!(outcome.events[0].run_seq, head + 1);
                    assert!(won.insert(head), "two writers won sequence {}", head + 1);
                }
                Err(crate::Error::Conflict { expected, actual, .. }) => assert!(expected == head && actual > head),
                Err(other) => panic!("{other}"),
            }
        }
        assert!(!won.is_empty(), "round {round}: nobody won");
    }
    let sequences = ctx.sequences(&run).await;
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
}

/// ES-002: a fixed sequence, so that exactly one of the writers can win.
pub(super) async fn exactly_one_wins_the_second_event(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    let results = ctx
        .threads(WRITERS, |ctx, _| {
            Box::pin(async move {
                let (run, acme) = (run_id("inv_1"), tenant("acme"));
                ctx.put(add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)])).await
            })
        })
        .await;
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, WRITERS - 1));
    for result in lost {
        refused!(result, crate::Error::Conflict { expected: 1, actual: 2, .. });
    }
    assert_eq!(ctx.sequences(&run).await, [1, 2]);
}

pub(super) async fn one_of_many_creates_the_run(ctx: &Context) {
    let results = ctx
        .threads(WRITERS, |ctx, _| {
            Box::pin(async move {
                let (run, acme) = (run_id("inv_1"), tenant("acme"));
                let mut stream = start_stream(&run, &acme);
                stream.events = vec![fresh_event(&run)];
                ctx.put(stream).await
            })
        })
        .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for result in results.into_iter().filter(Result::is_err) {
        refused!(result, crate::Error::RunExists { .. });
    }
    assert_eq!(ctx.sequences(&run_id("inv_1")).await, [1]);
}

/// ES-081: whatever order the commits come in, a reader that never goes back misses none of them.
pub(super) async fn a_reader_among_writers_misses_nothing(ctx: &Context) {
    const RUNS: [&str; 4] = ["inv_1", "inv_2", "inv_3", "inv_4"];
    for run in RUNS {
        ctx.start(run, "acme").await;
    }
    let total = RUNS.len() * (1 + APPENDS as usize);
    let mut seen = ctx
        .threads(RUNS.len() + 1, |ctx, index| {
            Box::pin(async move {
                let Some(run) = RUNS.get(index) else {
                    return ctx.log(Position::START, 3, RUNS.len() * (1 + APPENDS as usize)).await;
                };
                let (run, acme) = (run_id(run), tenant("acme"));
                for _ in 0..APPENDS {
                    ctx.put(add(&run, &acme, Expected::Any, vec![fresh_event(&run)])).await.unwrap();
                }
                Vec::new()
            })
        })
        .await;
    let seen = seen.pop().unwrap();
    assert_eq!(seen.len(), total);
    assert_whole(&seen, RUNS.len(), 1 + APPENDS as usize);
    assert_eq!(ctx.log(Position::START, 1_000, total).await, seen, "and the order stands");
}
