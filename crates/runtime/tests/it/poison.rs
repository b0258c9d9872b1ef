//! Events that nobody should have written. Each spoils at most its own run, and that run can still be ended and removed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use servo_model::alert::AlertCode;
use servo_model::{RunId, RunStatus};
use servo_runtime::Error;
use servo_sim::faults::{Call, FaultPlan};
use servo_sim::{Node, Sabotage};
use servo_store::relay::CursorRow;
use servo_store::{Position, RelayStore, RunStore, Scope};

use crate::projector::smuggle;
use crate::world::World;

/// What a poisoned run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Set aside: its log cannot be read.
    Aside,
    /// Its own business: the event is read, and says nothing that can be acted upon.
    Harmless,
}

fn deep(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

/// Event type, body, and what becomes of the run.
fn poisons() -> Vec<(&'static str, String, Fate)> {
    use Fate::{Aside, Harmless};
    let object = |value: Value| value.to_string();
    let step = |with: Value| {
        let mut body =
            json!({"stepId": "a", "status": "SUCCESS", "logicalAttemptId": 1, "engineAttemptId": 1, "artifacts": []});
        for (key, value) in with.as_object().unwrap() {
            body[key] = value.clone();
        }
        body.to_string()
    };
    let text = |body: &str| body.to_owned();
    vec![
        // Not JSON, or not an object.
        ("StepCompleted", text(""), Aside),
        ("StepCompleted", text("{"), Aside),
        ("StepCompleted", text("{}}"), Aside),
        ("StepCompleted", text("null"), Aside),
        ("StepCompleted", text("[]"), Aside),
        ("StepCompleted", text("\"SUCCESS\""), Aside),
        ("StepCompleted", text("{\"stepId\": NaN}"), Aside),
        ("StepCompleted", text("{'stepId': 'a'}"), Aside),
        ("StepCompleted", text("\u{0}"), Aside),
        ("StepCompleted", text("{\"stepId\":\"a\u{0}\"}"), Aside),
        ("RunCompleted", text("{\"status\":\"COMPLETED\",}"), Aside),
        // Fields that are missing, of the wrong type, or out of range.
        ("StepCompleted", text("{}"), Aside),
        ("StepCompleted", step(json!({"stepId": 7})), Aside),
        ("StepCompleted", step(json!({"stepId": null})), Aside),
        ("StepCompleted", step(json!({"stepId": ""})), Aside),
        ("StepCompleted", step(json!({"stepId": "RUN"})), Aside),
        ("StepCompleted", step(json!({"stepId": "a|b"})), Aside),
        ("StepCompleted", step(json!({"stepId": "a\u{0}"})), Aside),
        ("StepCompleted", step(json!({"stepId": "x".repeat(5_000)})), Aside),
        ("StepCompleted", step(json!({"logicalAttemptId": "1"})), Aside),
        ("StepCompleted", step(json!({"logicalAttemptId": -1})), Aside),
        ("StepCompleted", step(json!({"logicalAttemptId": 1.5})), Aside),
        ("StepCompleted", step(json!({"logicalAttemptId": 4_294_967_296_u64})), Aside),
        ("StepCompleted", step(json!({"artifacts": "none"})), Aside),
        ("StepCompleted", step(json!({"artifacts": [{"uri": 1}]})), Aside),
        ("StepFailed", step(json!({"status": "FAILED"})), Aside),
        ("StepFailed", step(json!({"status": "FAILED", "error": {"code": 1}})), Aside),
        ("RunPaused", object(json!({"status": "PAUSED", "logicalAttemptId": 1, "drainUntil": "tomorrow"})), Aside),
        ("RunQueued", object(json!({"status": "PENDING", "logicalAttemptId": 2})), Aside),
        ("RunStarted", object(json!({"status": "RUNNING", "planRef": []})), Aside),
        ("SignalAccepted", object(json!({"signalId": "", "signalType": "PAUSE"})), Aside),
        ("AuthorityAcquired", object(json!({"event": "AuthorityAcquired", "owner": 1})), Aside),
        ("StepCompleted", deep(10_000), Aside),
        // Of a newer version, or about something that is not there: kept, and without effect on what is.
        ("StepTeleported", object(json!({"stepId": "a", "where": "moon"})), Harmless),
        ("step.completed", text("{}"), Harmless),
        ("StepTeleported", format!("{{\"blob\":\"{}\"}}", "x".repeat(1_000_000)), Harmless),
        (
            "StepSkipped",
            object(json!({"stepId": "nobody", "status": "SKIPPED", "logicalAttemptId": 1, "cause": "MOON",
                                      "reason": "r"})),
            Harmless,
        ),
        ("StepTakenOver", object(json!({"stepId": "a", "logicalAttemptId": 9, "engineAttemptId": 9})), Harmless),
        ("RunResumed", object(json!({"status": "RUNNING", "logicalAttemptId": 77})), Harmless),
        ("DrainTimedOut", object(json!({"logicalAttemptId": 4_000_000_000_u32, "inFlight": 0})), Harmless),
        (
            "SignalRejected",
            object(json!({"signalId": "s", "signalType": "DANCE", "logicalAttemptId": 1, "decidedBy": "x",
                                         "code": "C", "reason": "r"})),
            Harmless,
        ),
        ("RunApproved", object(json!({"status": "DENIED", "logicalAttemptId": 0})), Harmless),
    ]
}

fn quarantined(world: &World, run_id: &RunId) -> Option<String> {
    let (memory, run_id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move { memory.get_run(&Scope::System, &run_id).await }).unwrap().unwrap().quarantined
}

/// Runs that have nothing to do with it, and how long they take.
fn bystanders(world: &World, node: &Node) -> Duration {
    let asked = world.now();
    let runs: Vec<_> =
        (0..3).map(|_| world.run(node, json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]))).collect();
    for run_id in &runs {
        world.wait_status(node, run_id, RunStatus::Completed);
    }
    world.now().since(asked)
}

/// One poisoned pair of runs among others. Gives what is wrong in the end.
fn story(number: usize, event_type: &str, payload: &str, fate: Fate, sabotage: Sabotage) -> Vec<String> {
    let world = World::with(number as u64, |cluster| cluster.sabotage = sabotage);
    let node = world.leader();
    let shown: String = payload.chars().take(80).collect();
    let mut findings = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            findings.push(format!("{number}: {event_type} {shown}: {what}"));
        }
    };
    let steps = json!([{"stepId": "a", "with": {"sleepMs": 2_000}}, {"stepId": "b", "dependsOn": ["a"]}]);
    let (ended, deleted) = (world.run(&node, steps.clone()), world.run(&node, steps));
    world.wait_in_flight(&node, &ended);
    world.wait_in_flight(&node, &deleted);
    smuggle(&world, &ended, event_type, payload.to_owned());
    smuggle(&world, &deleted, event_type, payload.to_owned());
    check(bystanders(&world, &node) < Duration::from_secs(1), "others wait");
    world.wait_until("the log was read on", || world.has_followed("projector") && world.has_followed("relay"));
    world.pass(Duration::from_secs(4));
    check(quarantined(&world, &ended).is_some() == (fate == Fate::Aside), "set aside, or not");
    match fate {
        Fate::Aside => {
            check(matches!(world.try_snapshot(&node, &ended), Err(Error::Quarantined(_))), "its state is shown");
            let alert = world.alert(AlertCode::RunQuarantined);
            check(alert.is_some_and(|alert| alert.run_id.is_some()), "nobody is told");
        }
        Fate::Harmless => check(world.snapshot(&node, &ended).status == RunStatus::Completed, "it does not go on"),
    }
    let engine = node.runtime.engine().clone();
    let (terminate, delete) = (ended.clone(), deleted.clone());
    let (end, removal) = world.block_on(async move {
        let end = engine.terminate(&Scope::System, &terminate, "operator", "poison").await;
        (end, engine.delete(&Scope::System, &delete, "operator").await)
    });
    check(fate == Fate::Harmless || end.is_ok(), "it cannot be ended");
    check(removal.is_ok(), "it cannot be removed");
    let rows = world.rows();
    let status = |run_id: &RunId| rows.iter().find(|row| row.run_id == *run_id).map(|row| row.status);
    check(status(&ended).is_some_and(RunStatus::is_terminal), "it has not ended");
    check(status(&deleted).is_none(), "it was not removed");
    let backlog = world.runtime_snapshot().backlog;
    check((backlog.pending, backlog.notified) == (0, 0), "its dispatches stay");
    check(bystanders(&world, &node) < Duration::from_secs(1), "others wait afterwards");
    findings
}

/// R22
#[test]
fn a_poisoned_run_disturbs_no_other_and_can_be_ended_and_removed() {
    let poisons = poisons();
    assert!(poisons.len() >= 40);
    for (number, (event_type, payload, fate)) in poisons.into_iter().enumerate() {
        let findings = story(number, event_type, &payload, fate, Sabotage::None);
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// R22's control: a store that forgets which runs were set aside is noticed by every input that needs it, also by what
/// is left behind. The harmless inputs go the same way without it.
#[test]
fn control_a_forgotten_quarantine_is_found() {
    for (number, (event_type, payload, fate)) in poisons().into_iter().enumerate() {
        let findings = story(number, event_type, &payload, fate, Sabotage::ForgetQuarantine);
        let found = |what: &str| findings.iter().any(|finding| finding.ends_with(what));
        let wanted = fate == Fate::Aside;
        assert_eq!((found("set aside, or not"), found("its dispatches stay")), (wanted, wanted), "{findings:#?}");
    }
}

/// R22: poison that a node meets when it starts, behind events that it must read again.
#[test]
fn poison_ahead_does_not_stop_the_projector() {
    let world = World::new(99);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.wait_until("the log was read", || world.has_followed("projector"));
    world.cluster.kill(&node);
    // A readable event first, so that the projector, which knows nothing of the run, reads the rest of it as well.
    smuggle(&world, &run_id, "StepTeleported", "{}".to_owned());
    smuggle(&world, &run_id, "StepCompleted", "{".to_owned());
    let next = world.leader();
    bystanders(&world, &next);
    world.wait_until("the log was read on", || world.has_followed("projector"));
    assert!(quarantined(&world, &run_id).is_some());
    assert!(world.alert(AlertCode::RunQuarantined).is_some());
}

/// A node that has the run in its cache meets the poison when it catches up.
#[test]
fn poison_behind_a_cached_state_sets_the_run_aside_at_once() {
    let world = World::new(98);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.cluster.kill(&node);
    smuggle(&world, &run_id, "StepCompleted", "{".to_owned());
    assert!(matches!(world.try_snapshot(&node, &run_id), Err(Error::Quarantined(_))));
    assert!(quarantined(&world, &run_id).is_some());
}

/// A store that finds the events of one run damaged, once somebody has said which.
#[derive(Default)]
struct Damage(OnceLock<RunId>);

impl FaultPlan for Damage {
    fn fate(&self, _: Call) -> servo_sim::faults::Fate {
        servo_sim::faults::Fate::default()
    }

    fn is_damaged(&self, run_id: &RunId) -> bool {
        self.0.get() == Some(run_id)
    }
}

/// What the store itself cannot read of a run sets it aside as well, and it can be ended.
#[test]
fn a_run_whose_events_are_damaged_is_set_aside() {
    let damage = Arc::new(Damage::default());
    let world = World::with(99, |cluster| cluster.faults = damage.clone());
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.cluster.kill(&node);
    damage.0.set(run_id.clone()).unwrap();
    let node = world.leader();
    for _ in 0..2 {
        assert!(matches!(world.try_snapshot(&node, &run_id), Err(Error::Quarantined(_))));
    }
    assert!(quarantined(&world, &run_id).is_some());
    let (engine, ended) = (node.runtime.engine().clone(), run_id.clone());
    world.block_on(async move { engine.terminate(&Scope::System, &ended, "operator", "damage").await }).unwrap();
    assert!(world.rows().iter().any(|row| row.run_id == run_id && row.status.is_terminal()));
}

/// Changes the last event of a run where it is stored: a running node meets it when it reads, a node that starts in the log.
fn garble(world: &World, run_id: &RunId) -> u64 {
    let last = world.stored(run_id).last().unwrap().run_seq;
    world.cluster.memory.damage(run_id, last, |event| event.payload = event.payload.replace("moon", "mood")).unwrap();
    last
}

/// A node starts with a log in which one byte of one event has changed.
fn garbled(seed: u64) -> (World, Node, RunId, u64) {
    let world = World::new(seed);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.wait_until("the log was read", || world.has_followed("projector") && world.has_followed("relay"));
    world.cluster.kill(&node);
    smuggle(&world, &run_id, "StepTeleported", json!({"stepId": "a", "where": "moon"}).to_string());
    let seq = garble(&world, &run_id);
    let node = world.leader();
    (world, node, run_id, seq)
}

#[test]
fn a_changed_byte_sets_its_run_aside_and_holds_nobody_back() {
    let (world, node, run_id, seq) = garbled(97);
    bystanders(&world, &node);
    world.wait_until("the log was read on", || world.has_followed("projector") && world.has_followed("relay"));
    let reason = quarantined(&world, &run_id).unwrap();
    assert!(reason.contains(&format!("event {seq} of run {run_id}")), "{reason}");
    let alert = world.alert(AlertCode::RunQuarantined).unwrap();
    assert_eq!((alert.run_id, alert.message, alert.count), (Some(run_id.clone()), reason.clone(), 1));
    assert!(world.alert(AlertCode::LogDamaged).is_none());
    // What is stored of it is given by none of the ways to it, and each says why.
    let (engine, asked) = (node.runtime.engine().clone(), run_id.clone());
    let (exported, read) = world.block_on(async move {
        let exported = engine.export(&Scope::System, &asked).await.map(drop);
        (exported, engine.read_events(&Scope::System, &asked, 0, 100).await.map(drop))
    });
    for answer in [exported, read] {
        assert!(matches!(&answer, Err(Error::Quarantined(told)) if *told == reason), "{answer:?}");
    }
    let (engine, deleted) = (node.runtime.engine().clone(), run_id.clone());
    world.block_on(async move { engine.delete(&Scope::System, &deleted, "operator").await }).unwrap();
    assert!(world.rows().iter().all(|row| row.run_id != run_id));
}

#[test]
fn whoever_reads_a_changed_event_first_sets_its_run_aside() {
    let (world, node, run_id, _) = garbled(96);
    let (engine, asked) = (node.runtime.engine().clone(), run_id.clone());
    let read = world.block_on(async move { engine.read_events(&Scope::System, &asked, 0, 100).await.map(drop) });
    assert!(matches!(&read, Err(Error::Quarantined(_))), "{read:?}");
    assert!(quarantined(&world, &run_id).is_some());
    assert!(world.alert(AlertCode::RunQuarantined).is_some());
}

/// The system stream belongs to no run that could be set aside.
#[test]
fn a_changed_event_of_the_system_is_passed_by_with_an_alert() {
    let world = World::new(95);
    let node = world.leader();
    world.wait_until("the log was read", || world.has_followed("projector") && world.has_followed("relay"));
    world.cluster.kill(&node);
    let system = RunId::system();
    let last = world.stored(&system).last().unwrap().run_seq;
    world.cluster.memory.damage(&system, last, |event| event.emitted_by = "nobody".into()).unwrap();
    let memory = world.cluster.memory.clone();
    let replay = CursorRow { target: Some(Position::of_id(u64::MAX >> 1)), ..CursorRow::at("replay", Position::START) };
    world.block_on(async move { memory.move_cursor(None, replay, None).await }).unwrap();
    let node = world.leader();
    bystanders(&world, &node);
    world.wait_until("the replay has passed it", || world.alert(AlertCode::LogDamaged).is_some());
    assert_eq!(quarantined(&world, &system), None);
}
