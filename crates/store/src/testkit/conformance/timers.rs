//! One timer per run, judged by the store's clock.

use super::Context;
use crate::log::{Expected, StreamAppend, TimerChange};
use crate::testkit::fixtures::{add, run_id, tenant};

fn change(run: &str, timer: TimerChange) -> StreamAppend {
    StreamAppend { timer, ..add(&run_id(run), &tenant("acme"), Expected::Any, Vec::new()) }
}

async fn due(ctx: &Context, limit: u32) -> Vec<String> {
    let timers = ctx.store.due_timers(limit).await.unwrap();
    timers.due.into_iter().map(|timer| timer.run_id.as_str().to_owned()).collect()
}

pub(super) async fn a_timer_is_set_moved_and_cleared(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), None);
    for after in [100, 50, 900] {
        ctx.put(change("inv_1", TimerChange::Set(ctx.clock.after(after)))).await.unwrap();
        assert_eq!(ctx.store.get_timer(&run).await.unwrap(), Some(ctx.clock.after(after)));
    }
    ctx.put(change("inv_1", TimerChange::Keep)).await.unwrap();
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), Some(ctx.clock.after(900)));
    ctx.put(change("inv_1", TimerChange::Clear)).await.unwrap();
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), None);
    ctx.put(change("inv_1", TimerChange::Clear)).await.unwrap();
    ctx.clock.advance(10_000);
    assert_eq!(ctx.store.due_timers(10).await.unwrap(), crate::dispatch::DueTimers::default());
    assert_eq!(ctx.store.get_timer(&run_id("inv_none")).await.unwrap(), None);
}

pub(super) async fn timers_are_due_at_their_time(ctx: &Context) {
    for (run, after) in [("inv_1", 300), ("inv_2", 100), ("inv_3", 200), ("inv_4", 200)] {
        ctx.start(run, "acme").await;
        ctx.put(change(run, TimerChange::Set(ctx.clock.after(after)))).await.unwrap();
    }
    let [at_100, at_200, at_300] = [100, 200, 300].map(|after| ctx.clock.after(after));
    let timers = ctx.store.due_timers(10).await.unwrap();
    assert_eq!((timers.due.len(), timers.next_at), (0, Some(at_100)));
    ctx.clock.advance(99);
    assert_eq!(due(ctx, 10).await, [""; 0], "never early");
    ctx.clock.advance(1);
    let timers = ctx.store.due_timers(10).await.unwrap();
    assert_eq!((timers.due.len(), timers.next_at), (1, Some(at_200)));
    assert_eq!((timers.due[0].tenant.as_str(), timers.due[0].due_at), ("acme", at_100));
    ctx.clock.advance(100);
    assert_eq!(due(ctx, 10).await, ["inv_2", "inv_3", "inv_4"], "earliest first");
    assert_eq!(due(ctx, 2).await, ["inv_2", "inv_3"]);
    assert_eq!(ctx.store.due_timers(1).await.unwrap().next_at, Some(at_300), "the next that is not due yet");
    ctx.clock.advance(1_000);
    assert_eq!(due(ctx, 10).await, ["inv_2", "inv_3", "inv_4", "inv_1"], "a due timer stays until it is changed");
    assert_eq!(ctx.store.due_timers(10).await.unwrap().next_at, None);
}
