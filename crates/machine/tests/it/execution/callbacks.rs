//! Callbacks: answered once, in time.

use servo_machine::{Answer, CallbackAnswer, Refusal};
use servo_model::operation::{ErrorObject, OperationStatus as S};

use super::world::{World, callback};

fn waiting(timeout: Option<u64>, heartbeat: Option<u64>) -> World {
    let mut world = World::running();
    world.checkpoint(vec![callback("c", timeout, heartbeat)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    world
}

fn succeed() -> CallbackAnswer {
    CallbackAnswer::Succeed(Some("\"yes\"".to_owned()))
}

/// DX-006
#[test]
fn an_answer_resolves_it_and_invokes_the_handler() {
    for (answer, status) in [(succeed(), S::Succeeded), (CallbackAnswer::Fail(ErrorObject::new("No", "no")), S::Failed)]
    {
        let mut world = waiting(None, None);
        world.callback("c", answer.clone()).unwrap();
        assert_eq!(world.operation("c").status, status);
        assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
        assert_eq!(world.callback("c", answer), Err(Refusal::CallbackClosed), "only once");
    }
}

/// DX-006: without an answer in time it has timed out, and an answer after that is too late.
#[test]
fn without_an_answer_it_times_out() {
    let mut world = waiting(Some(30), None);
    world.advance(30);
    assert_eq!(world.callback("c", succeed()), Err(Refusal::CallbackClosed), "nobody has looked at the clock yet");
    world.tick();
    let operation = world.operation("c");
    assert_eq!(operation.status, S::TimedOut);
    assert_eq!(operation.error.as_ref().unwrap().error_type.as_deref(), Some("Callback.Timeout"));
    assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
}

/// DX-006: a heartbeat keeps it alive and invokes nobody.
#[test]
fn a_heartbeat_moves_only_the_silence() {
    let mut world = waiting(Some(100), Some(10));
    for _ in 0..9 {
        world.advance(9);
        world.callback("c", CallbackAnswer::Heartbeat).unwrap();
        assert!(world.dispatched.is_empty());
    }
    world.advance(10);
    world.tick();
    let operation = world.operation("c");
    assert_eq!(operation.error.as_ref().unwrap().error_type.as_deref(), Some("Callback.Heartbeat"));
}

#[test]
fn the_timeout_counts_in_spite_of_heartbeats() {
    let mut world = waiting(Some(15), Some(10));
    world.advance(9);
    world.callback("c", CallbackAnswer::Heartbeat).unwrap();
    world.advance(6);
    world.tick();
    assert_eq!(world.operation("c").error.as_ref().unwrap().error_type.as_deref(), Some("Callback.Timeout"));
}

#[test]
fn zero_seconds_mean_no_timeout() {
    let world = waiting(Some(0), Some(0));
    assert_eq!(world.operation("c").due(), None);
}

#[test]
fn an_unknown_callback_is_not_found() {
    let mut world = waiting(None, None);
    assert_eq!(world.callback("x", succeed()), Err(Refusal::NoOperation("x".to_owned())));
}
