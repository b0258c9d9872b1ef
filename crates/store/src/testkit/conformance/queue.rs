//! Queued runs and their leases: each is started once, whoever looks.

use servo_model::Timestamp;

use super::Context;
use crate::dispatch::QueueClaim;
use crate::error::Error;
use crate::log::{Append, Expected, QueueChange, StreamAppend};
use crate::testkit::fixtures::{add, fresh_event, run_id, start_stream, tenant};

/// Starts a run that waits in the queue.
async fn enqueue(ctx: &Context, run: &str, not_before: Timestamp) {
    let mut stream = start_stream(&run_id(run), &tenant("acme"));
    stream.queue = QueueChange::Put { not_before };
    ctx.put(stream).await.unwrap();
}

async fn claim(ctx: &Context, owner: &str, lease_ms: u64, limit: u32) -> Vec<String> {
    claim_after(ctx, &QueueClaim::new(owner, lease_ms, limit)).await
}

async fn claim_after(ctx: &Context, claim: &QueueClaim) -> Vec<String> {
    let claimed = ctx.store.claim_queue(claim).await.unwrap();
    claimed.into_iter().map(|queued| queued.run_id.as_str().to_owned()).collect()
}

/// The append that starts a queued run: only the lease's holder may make it.
fn start_claimed(run: &str, owner: Option<&str>) -> StreamAppend {
    let run = run_id(run);
    let mut stream = add(&run, &tenant("acme"), Expected::Seq(1), vec![fresh_event(&run)]);
    stream.queue = QueueChange::Remove { leased_by: owner.map(str::to_owned) };
    stream
}

pub(super) async fn claims_take_the_oldest_due(ctx: &Context) {
    assert_eq!(claim(ctx, "a", 1_000, 10).await, [""; 0]);
    let later = ctx.clock.after(500);
    enqueue(ctx, "inv_3", ctx.clock.now()).await;
    ctx.clock.advance(1);
    enqueue(ctx, "inv_2", ctx.clock.now()).await;
    enqueue(ctx, "inv_1", later).await;
    ctx.clock.advance(1);
    enqueue(ctx, "inv_4", ctx.clock.now()).await;

    let first = ctx.store.claim_queue(&QueueClaim::new("a", 60_000, 1)).await.unwrap();
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].run_id.as_str(), first[0].tenant.as_str()), ("inv_3", "acme"));
    assert_eq!(first[0].queued_at, first[0].not_before);
    assert_eq!(claim(ctx, "a", 60_000, 10).await, ["inv_2", "inv_4"], "leased rows are passed over");
    ctx.clock.advance(497);
    assert_eq!(claim(ctx, "a", 60_000, 10).await, [""; 0], "one millisecond too early");
    ctx.clock.advance(1);
    assert_eq!(claim(ctx, "a", 60_000, 10).await, ["inv_1"], "at its time");
}

/// However many of one tenant wait, and since when: each gets the same share, and its turns.
pub(super) async fn tenants_take_turns_in_the_queue(ctx: &Context) {
    let enqueue = async |runs: &[String], owner: &str| {
        let queued = |run: &String| {
            let mut stream = start_stream(&run_id(run), &tenant(owner));
            stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
            stream
        };
        for runs in runs.chunks(50) {
            let streams = runs.iter().map(queued).collect();
            ctx.store.append(Append { streams, ..Append::default() }).await.unwrap();
        }
        ctx.clock.advance(1);
    };
    // More than are ever sorted at once, and then so few that they are.
    for (round, flood) in [("a", 600), ("b", 20)] {
        let noisy: Vec<_> = (0..flood).map(|n| format!("inv_{round}_noisy_{n:03}")).collect();
        enqueue(&noisy, "noisy").await;
        let quiet: Vec<_> = (0..3).map(|n| format!("inv_{round}_quiet_{n}")).collect();
        enqueue(&quiet, "Quiet").await;
        let last = vec![format!("inv_{round}_last")];
        enqueue(&last, "last").await;
        let first = claim(ctx, "a", 60_000_000, 7).await;
        assert_eq!(first, [&noisy[0], &quiet[0], &last[0], &noisy[1], &quiet[1]].map(Clone::clone), "two of each");
        let second = claim(ctx, "a", 60_000_000, 5).await;
        assert_eq!(second, [&noisy[2], &quiet[2], &noisy[3]].map(Clone::clone), "two of each of two tenants");
        let mut left = flood - 4;
        while left > 0 {
            left -= claim(ctx, "a", 60_000_000, 200).await.len();
        }
        assert_eq!(claim(ctx, "a", 1, 1).await, [""; 0]);
    }
}

/// Whoever asks on behind the last tenant sees everybody's oldest, however many tenants there are.
pub(super) async fn claims_go_on_behind_a_tenant(ctx: &Context) {
    let tenants = ["A", "b", "c", "d", "e"];
    // More than are ever sorted at once, and then so few that they are.
    for (round, each) in [("x", 120), ("y", 2)] {
        for owner in tenants {
            let queued = |n: usize| {
                let mut stream = start_stream(&run_id(&format!("inv_{round}_{owner}_{n:03}")), &tenant(owner));
                stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
                stream
            };
            for first in (0..each).step_by(40) {
                let streams = (first..each.min(first + 40)).map(queued).collect();
                ctx.store.append(Append { streams, ..Append::default() }).await.unwrap();
            }
        }
        let mut ask = QueueClaim::new("a", 60_000_000, 2);
        let mut seen = Vec::new();
        for after in [None, Some("b"), Some("d"), Some("e")] {
            ask.after = after.map(tenant);
            seen.push(claim_after(ctx, &ask).await);
        }
        let oldest = |owner: &str, n: usize| format!("inv_{round}_{owner}_{n:03}");
        let pair = |a: &str, b: &str| vec![oldest(a, 0), oldest(b, 0)];
        assert_eq!(seen, [pair("A", "b"), pair("c", "d"), vec![oldest("e", 0), oldest("e", 1)], vec![]]);
        ask = QueueClaim::new("a", 60_000_000, 1_000);
        while !claim_after(ctx, &ask).await.is_empty() {}
    }
}

/// ES-073
pub(super) async fn a_lease_lasts_and_then_ends(ctx: &Context) {
    enqueue(ctx, "inv_1", ctx.clock.now()).await;
    assert_eq!(claim(ctx, "a", 100, 10).await, ["inv_1"]);
    for owner in ["a", "b"] {
        assert_eq!(claim(ctx, owner, 100, 10).await, [""; 0]);
    }
    ctx.clock.advance(99);
    assert_eq!(claim(ctx, "b", 100, 10).await, [""; 0]);
    ctx.clock.advance(1);
    assert_eq!(claim(ctx, "b", 100, 10).await, ["inv_1"], "the holder is presumed dead");
    // The first holder wakes up and finds that the run is no longer its own.
    let late = ctx.put(start_claimed("inv_1", Some("a"))).await;
    refused!(late, Error::LeaseLost { run_id } if run_id.as_str() == "inv_1");
    refused!(ctx.store.release_queue(&run_id("inv_1"), "a", ctx.clock.now()).await, Error::LeaseLost { .. });
    assert_eq!(ctx.sequences(&run_id("inv_1")).await, [1], "no event of the refused start");
    ctx.put(start_claimed("inv_1", Some("b"))).await.unwrap();
    ctx.clock.advance(1_000);
    assert_eq!(claim(ctx, "c", 100, 10).await, [""; 0], "started runs are not queued");
    refused!(ctx.put(start_claimed("inv_1", Some("b"))).await, Error::Conflict { .. });
}

/// ES-073: with the row gone, a second start is refused whatever sequence it believes.
pub(super) async fn a_run_is_started_by_the_holder_only(ctx: &Context) {
    enqueue(ctx, "inv_1", ctx.clock.now()).await;
    refused!(ctx.put(start_claimed("inv_1", Some("a"))).await, Error::LeaseLost { .. });
    claim(ctx, "a", 100, 10).await;
    refused!(ctx.put(start_claimed("inv_1", Some("b"))).await, Error::LeaseLost { .. });
    ctx.put(start_claimed("inv_1", Some("a"))).await.unwrap();
    let again = StreamAppend { expected: Expected::Any, ..start_claimed("inv_1", Some("a")) };
    refused!(ctx.put(again).await, Error::LeaseLost { .. });
    assert_eq!(ctx.sequences(&run_id("inv_1")).await, [1, 2]);

    // Without an owner (a cancelled run) the row goes, leased or not, there or not.
    enqueue(ctx, "inv_2", ctx.clock.now()).await;
    claim(ctx, "a", 100, 10).await;
    ctx.put(start_claimed("inv_2", None)).await.unwrap();
    ctx.put(StreamAppend { expected: Expected::Any, ..start_claimed("inv_2", None) }).await.unwrap();
    ctx.clock.advance(1_000);
    assert_eq!(claim(ctx, "b", 100, 10).await, [""; 0]);
}

pub(super) async fn a_lease_can_be_given_back(ctx: &Context) {
    enqueue(ctx, "inv_1", ctx.clock.now()).await;
    enqueue(ctx, "inv_2", ctx.clock.now()).await;
    let one = run_id("inv_1");
    refused!(ctx.store.release_queue(&one, "a", ctx.clock.now()).await, Error::LeaseLost { .. });
    assert_eq!(claim(ctx, "a", 60_000, 10).await, ["inv_1", "inv_2"]);
    refused!(ctx.store.release_queue(&one, "b", ctx.clock.now()).await, Error::LeaseLost { run_id } if run_id == one);
    ctx.store.release_queue(&one, "a", ctx.clock.after(200)).await.unwrap();
    assert_eq!(claim(ctx, "b", 60_000, 10).await, [""; 0], "not before the time given");
    ctx.clock.advance(200);
    assert_eq!(claim(ctx, "b", 60_000, 10).await, ["inv_1"]);
    refused!(ctx.store.release_queue(&run_id("inv_none"), "a", ctx.clock.now()).await, Error::LeaseLost { .. });
}

pub(super) async fn queueing_again_replaces_the_row(ctx: &Context) {
    enqueue(ctx, "inv_1", ctx.clock.now()).await;
    assert_eq!(claim(ctx, "a", 60_000, 10).await, ["inv_1"]);
    ctx.clock.advance(10);
    let run = run_id("inv_1");
    let mut again = add(&run, &tenant("acme"), Expected::Any, vec![fresh_event(&run)]);
    again.queue = QueueChange::Put { not_before: ctx.clock.after(5) };
    ctx.put(again).await.unwrap();
    assert_eq!(claim(ctx, "b", 60_000, 10).await, [""; 0]);
    let queued_at = ctx.clock.now();
    ctx.clock.advance(5);
    let claimed = ctx.store.claim_queue(&QueueClaim::new("b", 60_000, 10)).await.unwrap();
    assert_eq!(claimed.len(), 1, "the old lease went with the old row");
    assert_eq!((claimed[0].queued_at, claimed[0].not_before), (queued_at, ctx.clock.now()));
}

pub(super) async fn all_leases_can_be_broken(ctx: &Context) {
    for run in ["inv_1", "inv_2", "inv_3"] {
        enqueue(ctx, run, ctx.clock.now()).await;
    }
    assert_eq!(claim(ctx, "a", 60_000, 2).await.len(), 2);
    ctx.store.break_leases().await.unwrap();
    assert_eq!(claim(ctx, "b", 60_000, 10).await, ["inv_1", "inv_2", "inv_3"]);
    refused!(ctx.put(start_claimed("inv_1", Some("a"))).await, Error::LeaseLost { .. });
}

const RUNS: usize = 40;

/// ES-071, ES-073: reconcilers that run at once start each run once.
pub(super) async fn racing_owners_claim_each_run_once(ctx: &Context) {
    for number in 0..RUNS {
        enqueue(ctx, &format!("inv_{number:02}"), ctx.clock.now()).await;
    }
    let claimed = ctx
        .threads(4, |ctx, index| {
            Box::pin(async move {
                let owner = format!("node-{index}");
                let mut mine = Vec::new();
                loop {
                    let batch = claim(&ctx, &owner, 60_000, 3).await;
                    if batch.is_empty() {
                        return mine;
                    }
                    for run in batch {
                        ctx.put(start_claimed(&run, Some(&owner))).await.unwrap();
                        mine.push(run);
                    }
                }
            })
        })
        .await;
    let mut all: Vec<_> = claimed.into_iter().flatten().collect();
    all.sort();
    assert_eq!(all, (0..RUNS).map(|number| format!("inv_{number:02}")).collect::<Vec<_>>());
    for number in 0..RUNS {
        assert_eq!(ctx.sequences(&run_id(&format!("inv_{number:02}"))).await, [1, 2], "one start each");
    }
}
