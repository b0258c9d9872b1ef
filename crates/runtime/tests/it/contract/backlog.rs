//! Dispatches: pending, notified, delivered or failed, and no other way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use servo_model::contract::{Backlog, DispatchState, RuntimeCommand, RuntimeEvent};
use servo_model::{RunId, RunStatus};
use servo_runtime::{Contract, Error, Ids};
use servo_sim::NodeId;
use servo_sim::dice::Dice;
use servo_sim::faults::{Fault, NthFails};
use servo_store::WorkStore;

use crate::world::World;

fn queue(id: &str) -> String {
    json!({"command": "QueueDispatch", "request_id": id, "target": "worker-2"}).to_string()
}

fn notified(id: &str) -> String {
    json!({"command": "MarkNotified", "request_id": id, "channel": "tmux"}).to_string()
}

fn delivered(id: &str) -> String {
    json!({"command": "MarkDelivered", "request_id": id}).to_string()
}

fn failed(id: &str) -> String {
    json!({"command": "MarkFailed", "request_id": id, "reason": "timeout"}).to_string()
}

/// RT-005
#[test]
fn the_same_request_is_queued_once() {
    let world = World::new(1);
    for _ in 0..3 {
        let executed = world.command(&queue("r1"), None).unwrap();
        assert!(
            matches!(&executed.events[..], [RuntimeEvent::DispatchQueued { request_id, .. }] if request_id == "r1")
        );
    }
    world.command(&notified("r1"), None).unwrap();
    world.command(&queue("r1"), None).unwrap();
    assert_eq!(world.runtime_snapshot().backlog, Backlog { notified: 1, ..Backlog::default() });
    assert_eq!(world.count(&RunId::system(), "DispatchQueued"), 1);
}

/// RT-005: also when they come at once.
#[test]
fn requests_at_once_are_queued_once() {
    let world = World::new(2);
    let tasks = world.cluster.sim.tasks(NodeId(9));
    for number in 0..16 {
        let contract = Contract::new(world.store(), Arc::new(Ids::seeded(number)));
        tasks.spawn("client", async move {
            contract.execute(RuntimeCommand::parse(&queue("r1")).unwrap(), None).await.unwrap();
        });
    }
    world.pass_ms(100);
    assert_eq!(world.runtime_snapshot().backlog.pending, 1);
    assert_eq!(world.count(&RunId::system(), "DispatchQueued"), 1);
}

/// RT-006
#[test]
fn only_the_allowed_moves_are_made_and_the_state_is_named() {
    type Move = fn(&str) -> String;
    let moves: [(Move, DispatchState); 3] =
        [(notified, DispatchState::Notified), (delivered, DispatchState::Delivered), (failed, DispatchState::Failed)];
    let ways: [(&str, &[Move]); 4] = [
        ("pending", &[]),
        ("notified", &[notified]),
        ("delivered", &[notified, delivered]),
        ("failed", &[notified, failed]),
    ];
    let world = World::new(3);
    let mut allowed = Vec::new();
    for (from, way) in ways {
        for (make, to) in moves {
            let id = format!("{from}-{}", to.as_str());
            world.command(&queue(&id), None).unwrap();
            for step in way {
                world.command(&step(&id), None).unwrap();
            }
            let before = world.stored(&RunId::system()).len();
            match world.command(&make(&id), None) {
                Ok(executed) => {
                    assert_eq!(executed.events.len(), 1);
                    allowed.push(id);
                }
                Err(error) => {
                    assert_eq!(error.code().code, "DISPATCH_ILLEGAL_MOVE");
                    let words = format!("dispatch {id} is {from} and cannot become {}", to.as_str());
                    assert_eq!(error.to_string(), words);
                    assert_eq!(world.stored(&RunId::system()).len(), before, "{id} left an event");
                }
            }
        }
    }
    assert_eq!(allowed, ["pending-notified", "notified-delivered", "notified-failed"]);
    assert_eq!(world.command(&notified("nobody"), None).unwrap_err().code().code, "DISPATCH_NOT_FOUND");
}

/// RT-013
#[test]
fn counts_are_those_of_a_naive_model_after_any_commands() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let world = World::new(seed);
        let mut model: BTreeMap<String, DispatchState> = BTreeMap::new();
        let mut events = 0;
        for _ in 0..dice.between(1, 60) {
            let id = format!("r{}", dice.below(8));
            let state = model.get(&id).copied();
            use DispatchState as D;
            let (command, expected) = match dice.below(4) {
                0 => (queue(&id), Some(state.unwrap_or(D::Pending))),
                1 => (notified(&id), (state == Some(D::Pending)).then_some(D::Notified)),
                2 => (delivered(&id), (state == Some(D::Notified)).then_some(D::Delivered)),
                _ => (failed(&id), (state == Some(D::Notified)).then_some(D::Failed)),
            };
            let answer = world.command(&command, None);
            assert_eq!(answer.is_ok(), expected.is_some(), "seed {seed}: {command}");
            if let Some(next) = expected {
                events += usize::from(state != Some(next));
                model.insert(id, next);
            }
        }
        let count = |wanted| model.values().filter(|state| **state == wanted).count() as u64;
        let backlog = Backlog {
            pending: count(DispatchState::Pending),
            notified: count(DispatchState::Notified),
            delivered: count(DispatchState::Delivered),
            failed: count(DispatchState::Failed),
        };
        assert_eq!(world.runtime_snapshot().backlog, backlog, "seed {seed}");
        assert_eq!(world.stored(&RunId::system()).len(), events, "seed {seed}");
    }
}

/// RT-015: the backlog is what the scheduler works on.
#[test]
fn steps_of_runs_go_through_the_backlog() {
    let world = World::new(4);
    let node = world.leader();
    let run_id = world
        .run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "with": {"outcome": "fail"}}]));
    world.wait_in_flight(&node, &run_id);
    world.pass_ms(1_000);
    assert_eq!(world.runtime_snapshot().backlog, Backlog { notified: 1, failed: 1, ..Backlog::default() });
    world.wait_status(&node, &run_id, RunStatus::Failed);
    assert_eq!(world.runtime_snapshot().backlog, Backlog { delivered: 1, failed: 1, ..Backlog::default() });
}

/// A dispatch of a run moves with the run's events only: moved by hand, its step would wait for ever.
#[test]
fn a_runs_dispatch_is_not_moved_by_hand() {
    let world = World::new(5);
    let node = world.leader();
    let steps = json!([{"stepId": "a", "with": {"sleepMs": 3_000, "failAttempts": 1}, "retry": {"maxAttempts": 2}}]);
    let run_id = world.run(&node, steps);
    world.wait_in_flight(&node, &run_id);
    let first = format!("{run_id}/a/1");
    for command in [delivered(&first), failed(&first), notified(&first), queue(&format!("{run_id}/a/2"))] {
        let error = world.command(&command, None).unwrap_err();
        assert!(matches!(&error, Error::Invalid(invalid) if invalid.field == "request_id"), "{command}: {error}");
    }
    world.wait_status(&node, &run_id, RunStatus::Completed);
}

/// RT-017: the answer may be lost, the command is not, and it is not carried out twice.
#[test]
fn a_lost_answer_neither_loses_nor_repeats_a_command() {
    for fault in [Fault::ExecuteThenUnavailable, Fault::UnavailableThenExecute] {
        for (make, state) in [(notified as fn(&str) -> String, "notified"), (queue as fn(&str) -> String, "pending")] {
            let faults = Arc::new(NthFails::new(fault, 1, 1));
            let world = World::with(6, |cluster| cluster.faults = faults.clone());
            if state == "notified" {
                world.command(&queue("r1"), None).unwrap();
            }
            let before = world.stored(&RunId::system()).len();
            let contract = Contract::new(Arc::new(world.cluster.connect(NodeId(1))), Arc::new(Ids::seeded(1)));
            let command = RuntimeCommand::parse(&make("r1")).unwrap();
            world.block_on(async move { contract.execute(command, None).await }).unwrap();
            world.pass_ms(2_000);
            assert!(faults.has_fired());
            assert_eq!(world.stored(&RunId::system()).len(), before + 1, "{fault:?} {state}");
            let memory = world.cluster.memory.clone();
            let row = world.block_on(async move { memory.get_dispatch("r1").await }).unwrap().unwrap();
            assert_eq!(row.state.as_str(), state);
        }
    }
}

/// RT-017: every command is in the log when it is answered, so that a process killed after any of them has lost none.
#[test]
fn what_was_answered_is_in_the_log() {
    let world = World::new(7);
    let until = world.now().plus(std::time::Duration::from_secs(60)).to_string();
    let commands = [
        json!({"command": "AcquireAuthority", "owner": "w1", "lease_id": "l1", "leased_until": until}).to_string(),
        json!({"command": "RenewAuthority", "owner": "w1", "lease_id": "l2", "leased_until": until}).to_string(),
        queue("r1"),
        notified("r1"),
        delivered("r1"),
        queue("r2"),
        notified("r2"),
        failed("r2"),
        r#"{"command":"RequestReplay","cursor":"cursor-0"}"#.to_owned(),
        r#"{"command":"CaptureSnapshot"}"#.to_owned(),
    ];
    for (number, command) in (1..).zip(&commands) {
        // Each by another process: nothing is kept between them but the store.
        let contract = Contract::new(world.store(), Arc::new(Ids::seeded(number)));
        let parsed = RuntimeCommand::parse(command).unwrap();
        let executed = world.block_on(async move { contract.execute(parsed, None).await }).unwrap();
        let events = world.contract_events();
        assert_eq!(events.len() as u64, number, "{command}");
        assert_eq!(events.last(), executed.events.last());
    }
}
