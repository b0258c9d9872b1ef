//! ES-040: the snapshot's names, to the letter.

use serde_json::{Value, json};
use servo_model::RunSnapshot;
use servo_model::projection::project_run;

use crate::samples::artifacts;
use crate::support::{beginning, body, completed, log, run_id, started};

fn snapshot(bodies: Vec<servo_model::EventBody>) -> Value {
    let snapshot = project_run(&run_id(), &log(bodies));
    let value = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(serde_json::from_value::<RunSnapshot>(value.clone()).unwrap(), snapshot);
    value
}

/// ES-040: a run in the middle of its work, with every kind of step.
#[test]
fn a_running_run_looks_like_this() {
    let error = json!({"code": "TIMEOUT", "message": "no answer", "retryable": true});
    let mut bodies = beginning(1);
    bodies.extend([
        started("a", 1),
        completed("a", 1, artifacts()[1..].to_vec()),
        started("b", 1),
        body("StepFailed", json!({"stepId": "b", "status": "FAILED", "logicalAttemptId": 1, "error": error})),
        body("StepRetryScheduled", json!({"stepId": "b", "logicalAttemptId": 2})),
        started("b", 2),
        body("StepSkipped", json!({"stepId": "c", "status": "SKIPPED", "logicalAttemptId": 1, "cause": "OPERATOR", "reason": "not needed"})),
    ]);
    let artifact = json!({"uri": "file:/var/log/run", "kind": "log-bundle"});
    assert_eq!(
        snapshot(bodies),
        json!({
            "runId": "run_1",
            "status": "RUNNING",
            "lastEventSeq": 10,
            "steps": [
                {"stepId": "a", "status": "SUCCESS", "logicalAttemptId": 1, "engineAttemptId": 1,
                 "startedAt": "2026-02-11T10:30:04.000Z", "completedAt": "2026-02-11T10:30:05.000Z", "artifacts": [artifact]},
                {"stepId": "b", "status": "FAILED", "logicalAttemptId": 1, "engineAttemptId": 1,
                 "startedAt": "2026-02-11T10:30:06.000Z", "completedAt": "2026-02-11T10:30:07.000Z", "artifacts": [],
                 "error": error},
                {"stepId": "b", "status": "RUNNING", "logicalAttemptId": 2, "engineAttemptId": 1,
                 "startedAt": "2026-02-11T10:30:09.000Z", "artifacts": []},
                {"stepId": "c", "status": "SKIPPED", "logicalAttemptId": 1, "completedAt": "2026-02-11T10:30:10.000Z",
                 "artifacts": [], "skipReason": "not needed"},
                {"stepId": "d", "status": "PENDING", "logicalAttemptId": 1, "artifacts": []},
            ],
            "artifacts": [],
            "failedSteps": 0,
            "engineRunRef": "mock://diamond/1",
            "engineType": "mock",
            "queuedAt": "2026-02-11T10:30:01.000Z",
            "startedAt": "2026-02-11T10:30:01.000Z",
        })
    );
}

/// ES-040: a finished run, with its end and its duration.
#[test]
fn a_completed_run_looks_like_this() {
    let mut bodies = vec![beginning(1).remove(2), started("a", 1), completed("a", 1, artifacts())];
    bodies.push(body("RunCompleted", json!({"status": "COMPLETED"})));
    let whole = json!([
        {"uri": "s3://bucket/report.json", "kind": "report",
         "sha256": "845e91831319e89c4d656bdb80c278ac09a7230d61e5dfd2e1b1fbb436ac8917", "sizeBytes": 9_007_199_254_740_991_u64,
         "expiresAt": "2026-02-12T10:30:00.000Z"},
        {"uri": "file:/var/log/run", "kind": "log-bundle"},
    ]);
    assert_eq!(
        snapshot(bodies),
        json!({
            "runId": "run_1",
            "status": "COMPLETED",
            "lastEventSeq": 4,
            "steps": [
                {"stepId": "a", "status": "SUCCESS", "logicalAttemptId": 1, "engineAttemptId": 1,
                 "startedAt": "2026-02-11T10:30:02.000Z", "completedAt": "2026-02-11T10:30:03.000Z", "artifacts": whole},
            ],
            "artifacts": whole,
            "failedSteps": 0,
            "engineRunRef": "mock://diamond/1",
            "engineType": "mock",
            "startedAt": "2026-02-11T10:30:01.000Z",
            "completedAt": "2026-02-11T10:30:04.000Z",
            "totalDurationMs": 3000,
        })
    );
}

/// ES-040: a run of which nothing is known but its name.
#[test]
fn an_empty_run_looks_like_this() {
    let expected = json!({"runId": "run_1", "status": "PENDING", "lastEventSeq": 0, "steps": [], "artifacts": [],
        "failedSteps": 0, "blockedBy": [{"cause": "capacity"}]});
    assert_eq!(snapshot(Vec::new()), expected);
}
