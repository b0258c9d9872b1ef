//! Idempotency keys of the events that the types build.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use servo_model::event::idempotency_key;

use crate::arb::plausible_log;
use crate::samples::smallest;
use crate::support::{body, run_id, started};

/// ES-033: run events count as step `RUN`, attempt 1 where they have no number of their own.
#[test]
fn run_events_have_the_step_run() {
    for event in smallest() {
        let expected = if event.body.event_type().starts_with("Step") { "a" } else { "RUN" };
        assert_eq!(event.body.key_parts(), (expected, 1), "{}", event.body.event_type());
    }
    assert_eq!(body("RunResumed", json!({"status": "RUNNING"})).key_parts(), ("RUN", 1));
}

/// ES-034: another engine attempt is the same key, so a logical attempt has one result.
#[test]
fn engine_attempts_do_not_change_the_key() {
    for name in ["StepStarted", "StepCompleted", "StepFailed"] {
        let status = if name == "StepStarted" { "RUNNING" } else { "SUCCESS" };
        let with = |engine: u32| {
            body(
                name,
                json!({"stepId": "a", "status": status, "logicalAttemptId": 2, "engineAttemptId": engine,
                "error": {"code": "C", "message": "m"}}),
            )
        };
        assert_eq!(with(1).key_parts(), with(7).key_parts());
        assert_eq!(with(1).key_parts(), ("a", 2));
    }
}

/// A take-over is a fact of its own each time. Engine attempts begin again with each logical attempt, so the second
/// attempt's first take-over must not be taken for the first attempt's.
#[test]
fn take_overs_are_told_apart() {
    let key = |attempt: u32, engine: u32| {
        let body =
            body("StepTakenOver", json!({"stepId": "a", "logicalAttemptId": attempt, "engineAttemptId": engine}));
        let (step, number) = body.key_parts();
        idempotency_key(&run_id(), step, number, body.event_type(), "1")
    };
    let mut seen = BTreeMap::new();
    for attempt in 1..50 {
        for engine in 2..50 {
            assert_eq!(seen.insert(key(attempt, engine), (attempt, engine)), None);
        }
    }
    assert_eq!(key(3, 4), key(3, 4));
    assert_eq!(started("a", 1).event_type(), "StepStarted");
}

/// Each hand-over of an attempt can come back too late once, and each time is recorded; the same report twice is not.
#[test]
fn orphans_of_one_attempt_are_told_apart() {
    let key = |attempt: u32, engine: Option<u32>| {
        let body = body("TaskOrphaned", json!({"stepId": "a", "logicalAttemptId": attempt, "engineAttemptId": engine}));
        let (step, number) = body.key_parts();
        idempotency_key(&run_id(), step, number, body.event_type(), "1")
    };
    let mut seen = BTreeMap::new();
    for attempt in 1..50 {
        for engine in 1..50 {
            assert_eq!(seen.insert(key(attempt, Some(engine)), (attempt, engine)), None);
        }
    }
    assert_eq!(key(3, Some(4)), key(3, Some(4)));
    assert_eq!(key(3, None), key(3, Some(1)), "without a number it is the first");
}

proptest! {
    /// No two facts of a plausible history share a key: with the unique key of the store, none would be lost.
    #[test]
    fn plausible_facts_have_different_keys(events in plausible_log()) {
        let mut seen = BTreeMap::new();
        for event in &events {
            let earlier = seen.insert(event.idempotency_key, event.run_seq);
            prop_assert_eq!(earlier, None, "{:?}", event);
        }
    }
}
