//! Every store call of a story fails once, in every way it can: nothing is stuck, nothing is recorded twice.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_machine::SignalKind;
use servo_model::{RunId, RunStatus};
use servo_runtime::Error;
use servo_runtime::engine::Outcome;
use servo_sim::faults::{Fault, NthFails};
use servo_sim::{Node, Sabotage};

use crate::world::{World, plan};

/// What a story came to.
type Verdict = Result<(), String>;

/// Does something as a client would: again, while the store does not answer.
fn insist<T>(world: &World, mut act: impl FnMut() -> Result<T, Error>) -> Result<T, String> {
    for _ in 0..20 {
        match act() {
            Ok(value) => return Ok(value),
            Err(Error::Store(error)) if error.retry() != servo_store::error::Retry::No => world.pass_ms(200),
            Err(error) => return Err(format!("refused: {error}")),
        }
    }
    Err("the store never answered".to_owned())
}

fn signal(world: &World, node: &Node, run_id: &RunId, id: &str, kind: &SignalKind) -> Result<Outcome, String> {
    insist(world, || world.signal(node, run_id, id, kind.clone()))
}

/// A diamond of four steps, one of which fails at first; paused and resumed on the way.
fn story(fault: Fault, nth: u64, length: u64, sabotage: Sabotage) -> (Verdict, bool) {
    let faults = Arc::new(NthFails::new(fault, nth, length));
    let world = World::with(nth ^ 0x5eeb, |cluster| {
        cluster.faults = faults.clone();
        cluster.sabotage = sabotage;
    });
    let verdict = live(&world, &faults);
    (verdict, faults.has_fired())
}

fn live(world: &World, faults: &NthFails) -> Verdict {
    let node = world.node();
    let mut request = plan(json!([
        {"stepId": "a", "with": {"sleepMs": 200}},
        {"stepId": "b", "dependsOn": ["a"], "with": {"failAttempts": 1}, "retry": {"maxAttempts": 3, "delayMs": 700}},
        {"stepId": "c", "dependsOn": ["a"], "with": {"sleepMs": 400}},
        {"stepId": "d", "dependsOn": ["b", "c"]},
    ]));
    request.run_request_id = Some("the-request".to_owned());
    let run_id = insist(world, || world.start(&node, request.clone()))?.run_id;
    world.pass_ms(300);
    signal(world, &node, &run_id, "pause", &SignalKind::Pause)?;
    world.pass_ms(2_000);
    signal(world, &node, &run_id, "resume", &SignalKind::Resume)?;
    world.pass(Duration::from_secs(10));
    faults.heal();
    world.pass(Duration::from_secs(60));
    check(world, &node, &run_id)
}

fn check(world: &World, node: &Node, run_id: &RunId) -> Verdict {
    let snapshot = world.try_snapshot(node, run_id).map_err(|error| error.to_string())?;
    if snapshot.status != RunStatus::Completed {
        return Err(format!("stuck: {} {:?}", snapshot.status.as_str(), world.types(run_id)));
    }
    for step in ["a", "b", "c", "d"] {
        let completed = world.events(run_id).iter().filter(|event| {
            event.body.event_type() == "StepCompleted" && event.body.key_parts().0 == step
        }).count();
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
    match report.findings.first() {
        Some(finding) => Err(format!("{finding:?}")),
        None => Ok(()),
    }
}

/// Goes through all n and says how many stories had a fault in them.
fn sweep(fault: Fault, length: u64) -> u64 {
    for nth in 1.. {
        let (verdict, fired) = story(fault, nth, length, Sabotage::None);
        assert_eq!(verdict, Ok(()), "{fault:?} at call {nth}, {length} calls long");
        if !fired {
            return nth - 1;
        }
    }
    unreachable!("a story makes finitely many calls")
}

#[test]
fn a_lost_call_is_survived_wherever_it_happens() {
    let calls = sweep(Fault::Unavailable, 1);
    assert!(calls > 50, "only {calls} calls failed");
}
