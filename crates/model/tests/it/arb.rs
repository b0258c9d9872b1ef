//! Strategies: arbitrary logs (whatever could ever be in a file) and plausible ones (what a correct writer makes).

use proptest::prelude::*;
use serde_json::{Value, json};
use servo_model::event::{EventBody, RootCause, RunFailed, SkipCause};
use servo_model::{Event, RunState, RunStatus, StepStatus};

use crate::support::{DIAMOND, at, beginning, body, context, event, plan_ref, queued, run_id, started};

/// Steps of the plan and some that it does not name.
fn step_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d", "x", "y"])
}

fn attempt() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 1_u32..4, 1 => Just(0), 1 => any::<u32>()]
}

fn maybe_time() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(0_i64..1_000)
}

/// Any body that a stored log can hold, with names and numbers from small sets, so that they meet.
pub(crate) fn any_body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        8 => run_body(),
        8 => step_body(),
        2 => signal_body(),
        1 => other_body(),
    ]
}

fn run_body() -> impl Strategy<Value = EventBody> {
    let plan = prop_oneof![3 => Just(Some(DIAMOND)), 1 => Just(None), 1 => Just(Some("{\"planId\":7}"))];
    let queue =
        (attempt(), plan, any::<bool>(), maybe_time()).prop_map(|(round, plan, approval_required, not_before)| {
            let mut body = queued(plan);
            body.logical_attempt_id = round;
            body.approval_required = approval_required;
            body.not_before = not_before.map(at);
            EventBody::RunQueued(Box::new(body))
        });
    let start = (attempt(), 0_i64..1_000).prop_map(|(round, seconds)| {
        body(
            "RunStarted",
            json!({"status": "RUNNING", "logicalAttemptId": round, "engineRunRef": "mock://1",
            "engineType": "mock", "planRef": plan_ref(), "context": context(), "startedAt": at(seconds)}),
        )
    });
    let pause = (attempt(), maybe_time()).prop_map(|(number, drain)| {
        let mut fields = json!({"status": "PAUSED", "logicalAttemptId": number, "reason": "pause"});
        if let Some(drain) = drain {
            fields["drainUntil"] = json!(at(drain));
        }
        body("RunPaused", fields)
    });
    let plain = (attempt(), 0_usize..5).prop_map(|(number, kind)| {
        let (name, status) = [
            ("RunApproved", "APPROVED"),
            ("RunResumed", "RUNNING"),
            ("RunCompleted", "COMPLETED"),
            ("RunCancelled", "CANCELLED"),
            ("RunFailed", "FAILED"),
        ][kind];
        let cause = json!({"code": "C", "message": format!("cause {number}")});
        body(name, json!({"status": status, "logicalAttemptId": number, "rootCause": cause, "reason": "why"}))
    });
    let drained = (attempt(), any::<u32>())
        .prop_map(|(number, n)| body("DrainTimedOut", json!({"logicalAttemptId": number, "inFlight": n})));
    prop_oneof![2 => queue, 2 => start, 2 => pause, 6 => plain, 1 => drained]
}

fn step_body() -> impl Strategy<Value = EventBody> {
    (step_id(), attempt(), prop::option::of(1_u32..4), 0_usize..7, maybe_time()).prop_map(
        |(step, attempt, engine, kind, time)| {
            let (name, status) = [
                ("StepStarted", "RUNNING"),
                ("StepCompleted", "SUCCESS"),
                ("StepFailed", "FAILED"),
                ("StepSkipped", "SKIPPED"),
                ("StepRetryScheduled", ""),
                ("StepTakenOver", ""),
                ("TaskOrphaned", ""),
            ][kind];
            let cause = ["UPSTREAM_FAILED", "OPERATOR", "CONDITION"][attempt as usize % 3];
            let mut fields = json!({"stepId": step, "logicalAttemptId": attempt, "status": status, "cause": cause,
                "reason": "why", "error": {"code": "C", "message": "m", "retryable": true},
                "artifacts": [{"uri": format!("s3:{step}/{attempt}"), "kind": "k"}],
                "engineAttemptId": engine.unwrap_or(1)});
            if engine.is_none() && name != "StepTakenOver" {
                fields.as_object_mut().unwrap().remove("engineAttemptId");
            }
            if let Some(time) = time {
                fields["notBefore"] = json!(at(time));
            }
            body(name, fields)
        },
    )
}

fn signal_body() -> impl Strategy<Value = EventBody> {
    (1_u32..5, attempt(), any::<bool>(), prop::option::of(step_id())).prop_map(|(id, number, accepted, step)| {
        let kind = ["PAUSE", "CANCEL", "RETRY_STEP", "RETRY_RUN"][id as usize % 4];
        body(if accepted { "SignalAccepted" } else { "SignalRejected" }, json!({"signalId": format!("s{id}"),
            "signalType": kind, "logicalAttemptId": number, "decidedBy": "me", "stepId": step, "code": "C", "reason": "r"}))
    })
}

/// Types that say nothing about a run's state.
pub(crate) fn other_body() -> impl Strategy<Value = EventBody> {
    prop::sample::select(vec![
        body("StepDelayed", json!({"stepId": "a", "status": "DELAYED"})),
        body("RunArchived", json!({"status": "ARCHIVED", "logicalAttemptId": 1})),
        body(
            "SignalAccepted",
            json!({"signalId": "s", "signalType": "FREEZE", "logicalAttemptId": 1, "decidedBy": "x"}),
        ),
        body("run.heartbeat", json!({"event": "run.heartbeat", "owner": "n1", "phase": "schedule"})),
        body("TaskOrphaned", json!({"stepId": "a", "logicalAttemptId": 1})),
    ])
}

/// Any log: sequences grow with gaps, stand still or fall back; times are in any order; events repeat.
pub(crate) fn any_log() -> impl Strategy<Value = Vec<Event>> {
    let record = (any_body(), prop_oneof![6 => Just(1_u64), 2 => 2_u64..5, 1 => Just(0)], maybe_time());
    (prop::collection::vec(record, 0..40), any::<bool>(), prop::collection::vec(any::<prop::sample::Index>(), 0..4))
        .prop_map(|(records, begins, repeats)| {
            let mut bodies: Vec<_> =
                if begins { beginning(1).into_iter().map(|body| (body, 1, None)).collect() } else { Vec::new() };
            bodies.extend(records);
            for repeat in repeats {
                if !bodies.is_empty() {
                    let again = repeat.get(&bodies).0.clone();
                    bodies.push((again, 1, None));
                }
            }
            let mut run_seq = 0;
            let next = |(body, gap, occurred): (EventBody, u64, Option<i64>)| {
                run_seq += gap;
                let mut event = event(run_seq.max(1), body);
                event.occurred_at = occurred.map(at);
                event
            };
            bodies.into_iter().map(next).collect()
        })
}

/// A history that a correct writer could have made, without gaps. Each choice picks one of the events that are possible
/// next, by rules that are written down here a second time and not taken from the fold.
pub(crate) fn plausible_log() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..60).prop_map(|choices| {
        let mut events = vec![event(1, beginning(1).remove(0))];
        let mut state = RunState::new(run_id()).apply(&events[0]).0;
        for choice in choices {
            let possible = possible_next(&state);
            if possible.is_empty() {
                break;
            }
            let next = event(state.last_event_seq + 1, choice.get(&possible).clone());
            state = state.apply(&next).0;
            events.push(next);
        }
        events
    })
}

fn possible_next(state: &RunState) -> Vec<EventBody> {
    let round = state.round;
    let plain =
        |name: &str, status: &str, number: u32| body(name, json!({"status": status, "logicalAttemptId": number}));
    let cancelled = plain("RunCancelled", "CANCELLED", round);
    let cause = RootCause { step_id: None, code: "C".to_owned(), message: "m".to_owned() };
    let failed =
        EventBody::RunFailed(RunFailed { status: RunStatus::Failed, logical_attempt_id: round, root_cause: cause });
    let signal = |name: &str, number: u32| {
        body(
            name,
            json!({"signalId": format!("{name}-{number}"), "signalType": "PAUSE", "logicalAttemptId": number,
            "decidedBy": "me", "code": "C", "reason": "r"}),
        )
    };
    let mut next = Vec::new();
    match state.status {
        // Ends are rare, so that histories become long.
        RunStatus::Pending => {
            next.extend(vec![plain("RunApproved", "APPROVED", round); 16]);
            next.extend([cancelled, failed]);
        }
        RunStatus::Approved => {
            next.extend(vec![beginning(round).remove(2); 16]);
            next.push(cancelled);
        }
        RunStatus::Running => {
            for _ in 0..8 {
                next.extend(steps_next(state, true));
            }
            next.push(body(
                "RunPaused",
                json!({"status": "PAUSED", "logicalAttemptId": state.pauses + 1, "drainUntil": at(9)}),
            ));
            next.push(cancelled);
            let open = state.steps.iter().any(|step| !step.attempt.status.is_terminal());
            if state.steps.iter().any(|step| step.attempt.status == StepStatus::Failed) {
                next.push(failed);
            } else if !open {
                next.push(plain("RunCompleted", "COMPLETED", round));
            }
        }
        RunStatus::Paused => {
            for _ in 0..4 {
                next.extend(steps_next(state, false));
                next.push(plain("RunResumed", "RUNNING", state.resumes + 1));
            }
            next.extend([cancelled, failed]);
            if state.drain_timed_out < state.pauses {
                next.push(body("DrainTimedOut", json!({"logicalAttemptId": state.pauses, "inFlight": 1})));
            }
        }
        RunStatus::Failed => next.push(beginning(round + 1).remove(0)),
        RunStatus::Completed | RunStatus::Cancelled => return next,
    }
    next.push(signal("SignalAccepted", state.signals_accepted + 1));
    next.push(signal("SignalRejected", state.signals_rejected + 1));
    next
}

fn steps_next(state: &RunState, may_start: bool) -> Vec<EventBody> {
    let needs = |step: &str| match step {
        "b" | "c" => vec!["a"],
        "d" => vec!["b", "c"],
        _ => Vec::new(),
    };
    let is_done = |step: &&str| {
        let found = state.steps.iter().find(|state| state.step_id.as_str() == *step).unwrap();
        matches!(found.attempt.status, StepStatus::Success) || found.attempt.skip == Some(SkipCause::Operator)
    };
    let mut next = Vec::new();
    for step in &state.steps {
        let (id, attempt) = (step.step_id.as_str(), step.attempt.logical_attempt_id);
        let with = |name: &str, mut fields: Value| {
            fields["stepId"] = json!(id);
            body(name, fields)
        };
        match step.attempt.status {
            StepStatus::Pending => {
                if may_start && needs(id).iter().all(is_done) {
                    next.push(started(id, attempt));
                }
                next.push(with(
                    "StepSkipped",
                    json!({"status": "SKIPPED", "logicalAttemptId": attempt, "cause": "OPERATOR", "reason": ""}),
                ));
            }
            StepStatus::Running => {
                let engine = step.attempt.engine_attempt_id.unwrap_or(1);
                next.push(with(
                    "StepCompleted",
                    json!({"status": "SUCCESS", "logicalAttemptId": attempt,
                    "engineAttemptId": engine, "artifacts": crate::samples::artifacts()}),
                ));
                next.push(with(
                    "StepFailed",
                    json!({"status": "FAILED", "logicalAttemptId": attempt,
                    "engineAttemptId": engine, "error": {"code": "C", "message": "m"}}),
                ));
                next.push(with("StepTakenOver", json!({"logicalAttemptId": attempt, "engineAttemptId": engine + 1})));
            }
            StepStatus::Failed => {
                next.push(with("StepRetryScheduled", json!({"logicalAttemptId": attempt + 1, "notBefore": at(5)})));
            }
            StepStatus::Success | StepStatus::Skipped => {}
        }
    }
    next
}
