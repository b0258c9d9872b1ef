//! Steps and contexts: one fact where one call says both, retries, and what is due.

use std::time::Duration;

use servo_machine::Answer;
use servo_model::event::EventBody;
use servo_model::operation::{OperationAction as A, OperationStatus as S, StepOptions};

use super::world::{World, context, inside, step, wait};

#[test]
fn a_step_whose_start_and_end_come_together_is_one_fact() {
    let mut world = World::running();
    let facts = world.checkpoint(vec![step("s", A::Start), step("s", A::Succeed)]).unwrap();
    assert_eq!(facts.len(), 1);
    let operation = world.operation("s");
    assert_eq!((operation.status, operation.attempt, operation.occurrence), (S::Succeeded, 1, 1));
}

#[test]
fn what_stands_between_start_and_end_keeps_its_place() {
    let mut world = World::running();
    let updates = vec![
        context("c", A::Start),
        inside(step("s", A::Start), "c"),
        inside(step("s", A::Succeed), "c"),
        context("c", A::Succeed),
    ];
    let facts = world.checkpoint(updates).unwrap();
    let told: Vec<_> = facts
        .iter()
        .map(|fact| match fact {
            EventBody::OperationUpdated(body) => (body.operation_id.as_str(), body.action, body.begins),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [("c", A::Start, false), ("s", A::Succeed, true), ("c", A::Succeed, false)]);
}

#[test]
fn a_context_with_nothing_inside_is_one_fact() {
    let mut world = World::running();
    assert_eq!(world.checkpoint(vec![context("c", A::Start), context("c", A::Fail)]).unwrap().len(), 1);
    assert_eq!(world.operation("c").status, S::Failed);
}

/// SR-047: whoever says milliseconds is waited for by milliseconds, and an event says so only where seconds do not.
#[test]
fn a_delay_is_exact_to_the_millisecond() {
    for (millis, seconds, told) in [(0, 1, Some(0)), (200, 1, Some(200)), (1_000, 1, None), (30_500, 31, Some(30_500))]
    {
        let mut world = World::running();
        let mut retry = step("s", A::Retry);
        retry.step_options = Some(StepOptions::after_millis(millis));
        for together in [true, false] {
            let facts = if together {
                world.checkpoint(vec![step("s", A::Start), retry.clone()]).unwrap()
            } else {
                world.invoke();
                world.checkpoint(vec![step("s", A::Start)]).unwrap();
                world.checkpoint(vec![retry.clone()]).unwrap()
            };
            let EventBody::OperationUpdated(body) = &facts[0] else { panic!("{facts:?}") };
            assert_eq!((body.seconds, body.millis), (Some(seconds), told), "{millis}");
            let due = world.now.plus(Duration::from_millis(millis));
            assert_eq!(world.operation("s").due_at, Some(due), "{millis}");
            world.now = due;
            world.answer(Answer::Pending).unwrap();
            world.tick();
            assert_eq!(world.operation("s").status, S::Ready, "{millis}");
        }
    }
}

/// DX-023: a retry is a checkpoint with a delay; the attempt counts, and its time makes the step ready.
#[test]
fn a_retry_waits_and_becomes_ready() {
    let mut world = World::running();
    world.checkpoint(vec![step("s", A::Start), step("s", A::Retry)]).unwrap();
    assert_eq!((world.operation("s").status, world.operation("s").attempt), (S::Pending, 1));
    world.answer(Answer::Pending).unwrap();
    world.advance(5);
    world.tick();
    assert_eq!(world.operation("s").status, S::Ready);
    assert!(world.operation("s").error.is_some(), "why the last attempt failed stays readable");
    world.invoke();
    world.checkpoint(vec![step("s", A::Start), step("s", A::Succeed)]).unwrap();
    assert_eq!((world.operation("s").status, world.operation("s").attempt), (S::Succeeded, 2));
}

/// Decision 23: branches that wait go on inside the running invocation.
#[test]
fn what_is_due_is_resolved_in_the_answer_to_a_checkpoint() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 2), step("s", A::Start)]).unwrap();
    world.advance(2);
    let number = world.execution().head.checkpoint.number;
    let facts = world.checkpoint(vec![]).unwrap();
    assert_eq!(facts.len(), 1);
    assert_eq!(world.operation("w").status, S::Succeeded);
    assert_eq!(world.execution().head.checkpoint.number, number + 1, "a poll that records uses its token up");
    assert!(!world.execution().has_unseen(), "the handler has seen it");
}

#[test]
fn an_empty_poll_records_nothing() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 2)]).unwrap();
    let before = world.execution().head.checkpoint.number;
    assert_eq!(world.checkpoint(vec![]).unwrap(), []);
    assert_eq!(world.execution().head.checkpoint.number, before);
}

#[test]
fn children_of_a_finished_context_are_hidden_unless_it_replays_them() {
    for replays in [false, true] {
        let mut world = World::running();
        let mut end = context("c", A::Succeed);
        end.context_options = Some(servo_model::operation::ContextOptions { replay_children: Some(replays) });
        world
            .checkpoint(vec![
                context("c", A::Start),
                inside(step("s", A::Start), "c"),
                inside(step("s", A::Succeed), "c"),
                end,
            ])
            .unwrap();
        let execution = world.execution();
        assert_eq!(execution.is_hidden(world.operation("s")), !replays);
        assert!(!execution.is_hidden(world.operation("c")));
    }
}

/// The cost of a command does not grow with what the run has done: what changed is found without looking at the rest.
#[test]
fn what_changed_since_a_sequence_is_all_that_is_told() {
    let mut world = World::running();
    for number in 0..50 {
        let id = format!("s{number}");
        world.checkpoint(vec![step(&id, A::Start), step(&id, A::Succeed)]).unwrap();
    }
    let seen = world.state.last_event_seq;
    world.checkpoint(vec![step("last", A::Start)]).unwrap();
    let changed: Vec<_> = world.execution().changed_after(seen).iter().map(|op| op.id.to_string()).collect();
    assert_eq!(changed, ["last"]);
}
