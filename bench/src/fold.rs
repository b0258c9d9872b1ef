//! Folding: events per second on one core.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use servo_canon::Digest;
use servo_model::event::{EventBody, idempotency_key};
use servo_model::{Event, EventId, RunId, RunState, Timestamp};

use crate::stats::median;

const STEPS: usize = 100;
const ATTEMPTS: u32 = 30;

pub(crate) fn run() -> Result<()> {
    let events = history()?;
    let encoded: Vec<(String, String)> =
        events.iter().map(|event| (event.body.event_type().to_owned(), event.body.encode())).collect();
    let (mut typed, mut stored) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let start = Instant::now();
        let state = RunState::new(events[0].run_id.clone()).fold(&events);
        typed.push(events.len() as f64 / start.elapsed().as_secs_f64());
        anyhow::ensure!(state.last_event_seq == events.len() as u64);
        let start = Instant::now();
        let mut state = RunState::new(events[0].run_id.clone());
        for (event, (event_type, payload)) in events.iter().zip(&encoded) {
            let body = EventBody::decode(event_type, payload)?;
            state = state.apply(&Event { body, ..event.clone() }).0;
        }
        stored.push(events.len() as f64 / start.elapsed().as_secs_f64());
    }
    println!("## Folding, one core\n");
    println!("| | events/s | goal |\n|---|---|---|");
    println!("| fold of {} events | {:.0} | ≥ 1,000,000 |", events.len(), median(&typed));
    println!("| the same, decoding each stored body first | {:.0} | |\n", median(&stored));
    Ok(())
}

/// A run of many steps, each of which fails many times and then succeeds.
fn history() -> Result<Vec<Event>> {
    let run_id = RunId::parse("inv_bench")?;
    let steps: Vec<_> = (0..STEPS).map(|n| json!({"stepId": format!("step-{n}")})).collect();
    let plan = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
    let plan_ref = json!({"uri": "inline:plan", "sha256": Digest::of(b"x"), "schemaVersion": "v1", "planId": "p", "planVersion": "1"});
    let context = json!({"tenantId": "default", "projectId": "d", "environmentId": "d"});
    let mut bodies = vec![
        ("RunQueued", json!({"status": "PENDING", "planRef": plan_ref, "context": context, "plan": plan})),
        ("RunApproved", json!({"status": "APPROVED"})),
        (
            "RunStarted",
            json!({"status": "RUNNING", "engineRunRef": "mock://x", "engineType": "mock", "planRef": plan_ref,
            "context": context, "startedAt": "2026-01-01T00:00:00.000Z"}),
        ),
    ];
    for attempt in 1..=ATTEMPTS {
        for n in 0..STEPS {
            let id = format!("step-{n}");
            bodies.push(("StepStarted", json!({"stepId": id, "status": "RUNNING", "logicalAttemptId": attempt})));
            if attempt < ATTEMPTS {
                let error = json!({"code": "X", "message": "failed", "retryable": true});
                bodies.push((
                    "StepFailed",
                    json!({"stepId": id, "status": "FAILED", "logicalAttemptId": attempt, "error": error}),
                ));
                bodies.push(("StepRetryScheduled", json!({"stepId": id, "logicalAttemptId": attempt + 1})));
            } else {
                bodies.push((
                    "StepCompleted",
                    json!({"stepId": id, "status": "SUCCESS", "logicalAttemptId": attempt, "artifacts": []}),
                ));
            }
        }
    }
    bodies.push(("RunCompleted", json!({"status": "COMPLETED"})));
    bodies
        .into_iter()
        .zip(1u64..)
        .map(|((event_type, body), seq)| {
            let body = EventBody::decode(event_type, &body.to_string()).map_err(anyhow::Error::from)?;
            let (step, number) = body.key_parts();
            Ok(Event {
                event_id: EventId::from_u128(u128::from(seq)),
                run_id: run_id.clone(),
                run_seq: seq,
                idempotency_key: idempotency_key(&run_id, step, number, event_type, "1"),
                emitted_at: Timestamp::from_millis(1_000),
                emitted_by: "engine".to_owned(),
                occurred_at: None,
                body,
            })
        })
        .collect()
}
