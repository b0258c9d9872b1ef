//! Signals over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Options, Server, endless, keys, one_step, start, wait_for};

fn signal(id: &str, kind: &str) -> Value {
    json!({"signalId": id, "type": kind})
}

#[tokio::test]
async fn a_run_waits_for_approval_and_goes_on_with_it() {
    let server = Server::start().await;
    let mut request = start(one_step());
    request["approvalRequired"] = json!(true);
    let started = server.post("/v1/runs", &request).await;
    assert_eq!(started.json["status"], "PENDING");
    assert_eq!(started.json["blockedBy"][0]["cause"], "approval");
    let run = started.run_id();
    let answer = server.post(&format!("/v1/runs/{run}/signals"), &signal("ok-1", "APPROVE")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json["accepted"], true);
    assert_eq!(answer.json["snapshot"]["status"], "APPROVED");
    assert_eq!(server.finish(&run).await["status"], "COMPLETED");
}

#[tokio::test]
async fn pause_resume_and_cancel() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    wait_for("the step to run", async || {
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.json;
        (snapshot["steps"][0]["status"] == "RUNNING").then_some(())
    })
    .await;
    let path = format!("/v1/runs/{run}/signals");
    let paused = server.post(&path, &signal("1", "PAUSE")).await.json;
    assert_eq!(paused["snapshot"]["status"], "PAUSED");
    assert_eq!(paused["snapshot"]["substatus"], "DRAINING");
    let resumed = server.post(&path, &signal("2", "RESUME")).await.json;
    assert_eq!(resumed["snapshot"]["status"], "RUNNING");
    let cancelled = server.post(&path, &signal("3", "CANCEL")).await.json;
    assert_eq!(cancelled["snapshot"]["status"], "CANCELLED");
    let late = server.post(&path, &signal("4", "PAUSE")).await;
    assert_eq!(late.status, 410);
    late.is_problem("RUN_CLOSED");
}

#[tokio::test]
async fn a_refused_signal_is_recorded_and_refused_again() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    let path = format!("/v1/runs/{run}/signals");
    let head = async || server.get(&format!("/v1/runs/{run}/events")).await.json["lastEventSeq"].as_u64().unwrap();
    let first = server.post(&path, &signal("r1", "RESUME")).await;
    assert_eq!(first.status, 409);
    first.is_problem("ILLEGAL_TRANSITION");
    let events = server.get(&format!("/v1/runs/{run}/events")).await.json;
    let rejected = events["events"].as_array().unwrap().iter().find(|event| event["eventType"] == "SignalRejected");
    assert_eq!(rejected.unwrap()["signalId"], "r1");
    // Let the step's start be recorded, so that the head stands still.
    wait_for("the step to run", async || {
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.json;
        (snapshot["steps"][0]["status"] == "RUNNING").then_some(())
    })
    .await;
    let before = head().await;
    let again = server.post(&path, &signal("r1", "RESUME")).await;
    assert_eq!(again.json["code"], first.json["code"]);
    assert_eq!(again.json["detail"], first.json["detail"]);
    let other = server.post(&path, &signal("r1", "PAUSE")).await;
    other.is_problem("SIGNAL_REJECTED");
    assert_eq!(head().await, before, "a known id records nothing");
    let missing = server.post(&path, &json!({"signalId": "r2", "type": "SKIP_STEP", "stepId": "zzz"})).await;
    missing.is_problem("STEP_NOT_FOUND");
}

#[tokio::test]
async fn the_same_accepted_signal_again_changes_nothing() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    let path = format!("/v1/runs/{run}/signals");
    server.post(&path, &signal("p", "PAUSE")).await;
    server.post(&path, &signal("q", "RESUME")).await;
    let again = server.post(&path, &signal("p", "PAUSE")).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json["snapshot"]["status"], "RUNNING", "the run was resumed since");
}

#[tokio::test]
async fn a_viewers_attempt_is_recorded_and_forbidden() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let run = server.start_as("acme-operator", endless()).await;
    let path = format!("/v1/runs/{run}/signals");
    let cancel = signal("v1", "CANCEL");
    for _ in 0..2 {
        let answer = server.send(Method::POST, &path, "acme-viewer", Some(&cancel)).await;
        assert_eq!(answer.status, 403);
        answer.is_problem("FORBIDDEN");
    }
    let events = server.send(Method::GET, &format!("/v1/runs/{run}/events"), "acme-viewer", None).await.json;
    let rejected: Vec<_> =
        events["events"].as_array().unwrap().iter().filter(|event| event["eventType"] == "SignalRejected").collect();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0]["decidedBy"], "acme-viewer");
    assert_eq!(rejected[0]["code"], "FORBIDDEN");
    let taken = server.send(Method::POST, &path, "acme-operator", Some(&cancel)).await;
    taken.is_problem("SIGNAL_REJECTED");
    // Also when the run has ended and records nothing.
    server.send(Method::POST, &path, "acme-operator", Some(&signal("o1", "CANCEL"))).await;
    let answer = server.send(Method::POST, &path, "acme-viewer", Some(&signal("v2", "CANCEL"))).await;
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn a_failed_step_is_retried_and_another_skipped() {
    let server = Server::start().await;
    let steps = json!([
        {"stepId": "a", "with": {"failAttempts": 1}},
        {"stepId": "b", "dependsOn": ["a"]},
    ]);
    let run = server.start_run(steps).await;
    assert_eq!(server.finish(&run).await["status"], "FAILED");
    let retry = json!({"signalId": "1", "type": "RETRY_STEP", "stepId": "a", "reason": "try again"});
    let answer = server.post(&format!("/v1/runs/{run}/signals"), &retry).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let done = wait_for("the run to complete", async || {
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.json;
        (snapshot["status"] == "COMPLETED").then_some(snapshot)
    })
    .await;
    let attempts = done["steps"].as_array().unwrap().iter().filter(|step| step["stepId"] == "a").count();
    assert_eq!(attempts, 2);
}
