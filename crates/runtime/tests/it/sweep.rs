//! Every store call of a story fails once, in every way it can: nothing is stuck, nothing is recorded twice.
//!
//! The n-th call fails, for n = 1, 2, 3 … until a story is over before the fault could happen.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_machine::{Refusal, SignalKind};
use servo_model::{RunId, RunStatus};
use servo_runtime::Error;
use servo_sim::faults::{Fault, NthFails};
use servo_sim::{Node, Sabotage};
use servo_store::error::Retry;

use crate::world::{World, plan};

/// What a story came to: fine, or what is wrong.
type Verdict = Result<(), String>;

/// How long the store may take to fail, and how long a run may take to end after that.
const LIMIT: Duration = Duration::from_secs(60);

/// Does something as a client would: again, while the store does not answer.
fn insist<T>(world: &World, mut act: impl FnMut() -> Result<T, Error>) -> Result<T, String> {
    for _ in 0..50 {
        match act() {
            Ok(value) => return Ok(value),
            Err(Error::Store(error)) if error.retry() != Retry::No => world.pass_ms(200),
            Err(error) => return Err(format!("refused: {error}")),
        }
    }
    Err("the store never answered".to_owned())
}

fn signal(world: &World, node: &Node, run_id: &RunId, id: &str, kind: &SignalKind) -> Verdict {
    insist(world, || match world.signal(node, run_id, id, kind.clone()) {
        // The store was silent for so long that the run has ended meanwhile.
        Err(Error::Refused(Refusal::Closed(_))) => Ok(()),
        answer => answer.map(|_| ()),
    })
}

/// A story with one fault in it. Says also whether the fault happened.
fn story(fault: Fault, nth: u64, length: u64, sabotage: Sabotage) -> (Verdict, bool) {
    let faults = Arc::new(NthFails::new(fault, nth, length));
    let world = World::with(nth ^ 0x5eeb, |cluster| {
        cluster.faults = faults.clone();
        cluster.sabotage = sabotage;
    });
    let verdict = live(&world, &faults);
    (verdict, faults.has_fired())
}

/// A diamond of four steps, one of which fails at first, paused and resumed on the way; and a run that waits for an
/// approval and then in the queue.
fn live(world: &World, faults: &NthFails) -> Verdict {
    let node = world.node();
    // A silence longer than the write latency budget fails a step, so every step may be tried again.
    let retry = json!({"maxAttempts": 5, "delayMs": 700});
    let mut request = plan(json!([
        {"stepId": "a", "with": {"sleepMs": 200}, "retry": retry},
        {"stepId": "b", "dependsOn": ["a"], "with": {"failAttempts": 1}, "retry": retry},
        {"stepId": "c", "dependsOn": ["a"], "with": {"sleepMs": 400}, "retry": retry},
        {"stepId": "d", "dependsOn": ["b", "c"], "retry": retry},
    ]));
    request.run_request_id = Some("the-request".to_owned());
    let run_id = insist(world, || world.start(&node, request.clone()))?.run_id;
    let mut gated = plan(json!([{"stepId": "e", "retry": retry}]));
    gated.run_request_id = Some("another".to_owned());
    gated.approval_required = true;
    let gated_id = insist(world, || world.start(&node, gated.clone()))?.run_id;
    world.pass_ms(300);
    signal(world, &node, &run_id, "pause", &SignalKind::Pause)?;
    signal(world, &node, &gated_id, "approve", &SignalKind::Approve)?;
    world.pass_ms(800);
    signal(world, &node, &run_id, "resume", &SignalKind::Resume)?;
    let mut left = LIMIT;
    while !left.is_zero() && [&run_id, &gated_id].iter().any(|run_id| !ended(world, &node, run_id)) {
        world.pass_ms(500);
        left = left.saturating_sub(Duration::from_millis(500));
    }
    faults.heal();
    world.pass_ms(1_500);
    check(world, &node, &run_id, &["a", "b", "c", "d"])?;
    check(world, &node, &gated_id, &["e"])
}

fn ended(world: &World, node: &Node, run_id: &RunId) -> bool {
    world.try_snapshot(node, run_id).is_ok_and(|snapshot| snapshot.status.is_terminal())
}

fn check(world: &World, node: &Node, run_id: &RunId, steps: &[&str]) -> Verdict {
    let snapshot = world.try_snapshot(node, run_id).map_err(|error| error.to_string())?;
    if snapshot.status != RunStatus::Completed {
        return Err(format!("stuck: {} {:?}", snapshot.status.as_str(), world.types(run_id)));
    }
    let events = world.events(run_id);
    for step in steps {
        let of_step = events.iter().filter(|event| event.body.key_parts().0 == *step);
        let completed = of_step.filter(|event| event.body.event_type() == "StepCompleted").count();
        if completed != 1 {
            return Err(format!("step {step} completed {completed} times"));
        }
    }
    let backlog = world.runtime_snapshot().backlog;
    if backlog.pending + backlog.notified != 0 {
        return Err(format!("dispatches are left: {backlog:?}"));
    }
    let store = world.store();
    let report = world
        .block_on(async move { servo_runtime::verify::verify(store.as_ref(), |_| {}).await })
        .map_err(|error| error.to_string())?;
    report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}

/// Goes through every n. Enough calls must have failed for this to mean something.
fn sweep(fault: Fault, length: u64, calls_min: u64) {
    for nth in 1.. {
        let (verdict, fired) = story(fault, nth, length, Sabotage::None);
        assert_eq!(verdict, Ok(()), "{fault:?} at call {nth}, {length} calls long");
        if !fired {
            assert!(nth > calls_min, "only {nth} calls could fail");
            return;
        }
    }
}

#[test]
fn the_store_does_not_answer() {
    sweep(Fault::Unavailable, 1, 80);
}

#[test]
fn the_store_does_not_answer_for_a_while() {
    sweep(Fault::Unavailable, 25, 80);
}

#[test]
fn the_answer_is_lost() {
    sweep(Fault::ExecuteThenUnavailable, 1, 20);
}

#[test]
fn answers_are_lost_for_a_while() {
    sweep(Fault::ExecuteThenUnavailable, 12, 20);
}

#[test]
fn the_answer_is_lost_and_the_write_comes_late() {
    sweep(Fault::UnavailableThenExecute, 1, 20);
}

#[test]
fn late_writes_for_a_while() {
    sweep(Fault::UnavailableThenExecute, 12, 20);
}

#[test]
fn somebody_else_was_first() {
    sweep(Fault::Conflict, 1, 15);
}

#[test]
fn the_store_is_full() {
    sweep(Fault::Full, 1, 20);
}

#[test]
fn the_store_is_full_for_a_while() {
    sweep(Fault::Full, 12, 20);
}

/// Control: a dispatch that is not in the append's transaction and gets lost.
#[test]
fn a_lost_dispatch_is_noticed() {
    let (verdict, _) = story(Fault::Unavailable, u64::MAX, 1, Sabotage::LoseDispatch("/d/1"));
    assert!(verdict.unwrap_err().starts_with("stuck"));
}

/// Control of R13: a timer row that gets lost leaves the run waiting, and the audit finds it.
#[test]
fn a_lost_timer_is_noticed() {
    for (sabotage, status) in [(Sabotage::None, RunStatus::Completed), (Sabotage::LoseTimers, RunStatus::Running)] {
        let world = World::with(5, |cluster| cluster.sabotage = sabotage);
        let node = world.leader();
        let step = json!({"stepId": "a", "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 90_000}});
        let run_id = world.run(&node, json!([step]));
        world.pass(Duration::from_secs(30));
        let store = world.store();
        let report =
            world.block_on(async move { servo_runtime::verify::verify(store.as_ref(), |_| {}).await }).unwrap();
        assert_eq!(report.findings.is_empty(), sabotage == Sabotage::None, "{:?}", report.findings);
        world.pass(Duration::from_secs(120));
        assert_eq!(world.snapshot(&node, &run_id).status, status);
    }
}
