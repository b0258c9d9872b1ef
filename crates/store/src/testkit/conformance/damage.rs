//! Bytes that changed after they were written: what was recorded is given as it was recorded, or not at all.

use servo_model::{RunId, TenantId};

use super::{Context, Damage};
use crate::error::Error;
use crate::log::{Expected, LogPage};
use crate::position::Position;
use crate::resync::load_state;
use crate::runs::Scope;
use crate::testkit::fixtures::{add, fresh_event, start_append};
use crate::{Append, NewEvent};

/// Two runs side by side. The third event of the first one says `"amount":1`.
async fn two_runs(ctx: &Context) -> (RunId, RunId, TenantId) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let (other, _) = ctx.start("inv_2", "acme").await;
    for seq in 1..6 {
        let payload = if seq == 2 { "{\"amount\":1}" } else { "{\"amount\":7}" };
        let event = |run: &RunId| NewEvent { payload: payload.to_owned(), ..fresh_event(run) };
        ctx.put(add(&run, &acme, Expected::Seq(seq), vec![event(&run)])).await.unwrap();
        ctx.put(add(&other, &acme, Expected::Seq(seq), vec![event(&other)])).await.unwrap();
    }
    (run, other, acme)
}

fn changed(run_id: &RunId) -> Damage {
    Damage { run_id: run_id.clone(), run_seq: 3, from: "\"amount\":1", to: "\"amount\":9" }
}

pub(super) async fn a_changed_event_is_refused_and_named(ctx: &Context) {
    let (run, other, _) = two_runs(ctx).await;
    let before = ctx.store.read_run(&Scope::System, &other, 0, 100).await.unwrap();
    assert_eq!(ctx.store.integrity().await.unwrap(), crate::Integrity::default());
    let ctx = ctx.damaged(&changed(&run)).await;
    let named = |error: &Error| matches!(error, Error::Corrupt { detail } if detail.contains("event") && detail.contains("run inv_1"));
    let read = ctx.store.read_run(&Scope::System, &run, 0, 100).await;
    assert!(read.as_ref().is_err_and(named), "{read:?}");
    let loaded = ctx.store.load_run(&Scope::System, &run, 100).await;
    assert!(loaded.as_ref().is_err_and(named), "{loaded:?}");
    let folded = load_state(ctx.store.as_ref(), &Scope::System, &run).await;
    assert!(folded.as_ref().is_err_and(named), "{folded:?}");
    let found = ctx.store.integrity().await.unwrap();
    assert!(matches!(&found.problems[..], [one] if one.contains("run inv_1")), "{found:?}");
    assert_eq!(found.without_checksum, 0);
    // The rest goes on.
    assert_eq!(ctx.store.read_run(&Scope::System, &other, 0, 100).await.unwrap(), before);
    ctx.put(add(&other, &crate::testkit::fixtures::tenant("acme"), Expected::Seq(6), vec![fresh_event(&other)]))
        .await
        .unwrap();
    ctx.start("inv_3", "acme").await;
}

pub(super) async fn readers_of_the_log_pass_a_changed_event_by(ctx: &Context) {
    let (run, other, acme) = two_runs(ctx).await;
    let whole = ctx.settled_log(Position::START).await;
    let last = whole.last().unwrap().position;
    let ctx = ctx.damaged(&changed(&run)).await;
    for limit in [1, 3, 100] {
        let (mut at, mut seen, mut passed) = (Position::START, Vec::new(), 0);
        while at < last {
            let LogPage { events, unreadable, next } = ctx.store.read_log(at, limit).await.unwrap();
            assert!(next > at, "a reader is never held");
            seen.extend(events);
            for gone in unreadable {
                assert_eq!(gone.run, Some((run.clone(), acme.clone())));
                passed += 1;
            }
            at = next;
        }
        assert!(passed > 0, "page of {limit}");
        let whole_of_other = whole.iter().filter(|event| event.run_id == other);
        let seen_of_other: Vec<_> =
            seen.iter().filter(|event| event.run_id == other).map(|event| (**event).clone()).collect();
        assert_eq!(seen_of_other, whole_of_other.cloned().collect::<Vec<_>>(), "page of {limit}");
        assert!(!seen.iter().any(|event| event.run_id == run && event.run_seq == 3), "page of {limit}");
    }
}

pub(super) async fn a_damaged_run_can_be_set_aside_and_removed(ctx: &Context) {
    let (run, _, acme) = two_runs(ctx).await;
    let ctx = ctx.damaged(&changed(&run)).await;
    ctx.store.quarantine(&run, "its events have changed").await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row.quarantined.as_deref(), Some("its events have changed"));
    // An end that needs no state.
    ctx.store.append(Append::one(add(&run, &acme, Expected::Any, vec![fresh_event(&run)]))).await.unwrap();
    ctx.store.delete_run(&Scope::System, &run).await.unwrap();
    assert_eq!(ctx.store.integrity().await.unwrap(), crate::Integrity::default());
    // The id is free again.
    ctx.store.append(start_append(&run, &acme)).await.unwrap();
}
