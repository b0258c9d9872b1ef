//! What belongs to another tenant does not exist.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Options, Server, endless, keys, one_step, start, wait_for};

/// All that may tell two answers apart: when and where, not what.
fn essence(answer: &Answer) -> (u16, Vec<String>, Value) {
    let mut json = answer.json.clone();
    if let Some(fields) = json.as_object_mut() {
        fields.remove("requestId");
        fields.remove("instance");
    }
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id" | "x-correlation-id" | "content-length"))
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort_unstable();
    (answer.status.as_u16(), headers, json)
}

#[tokio::test]
async fn a_foreign_run_is_answered_like_none() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let foreign = server.start_as("acme-operator", endless()).await;
    wait_for("the step to run", async || {
        let snapshot = server.send(Method::GET, &format!("/v1/runs/{foreign}"), "acme-viewer", None).await.json;
        (snapshot["steps"][0]["status"] == "RUNNING").then_some(())
    })
    .await;
    let before = server.send(Method::GET, &format!("/v1/runs/{foreign}/events"), "acme-viewer", None).await;
    // As long as a real one, so that also the length of the answers can be compared.
    let unknown = format!("inv_{}", "0".repeat(32));
    assert_eq!(unknown.len(), foreign.as_str().len());
    let signal = json!({"signalId": "s", "type": "CANCEL"});
    for (method, path, body) in [
        (Method::GET, "/v1/runs/{id}", None),
        (Method::GET, "/v1/runs/{id}/events", None),
        (Method::GET, "/v1/runs/{id}/events?after=1&limit=1", None),
        (Method::GET, "/v1/runs/{id}/export", None),
        (Method::POST, "/v1/runs/{id}/signals", Some(&signal)),
        (Method::POST, "/v1/runs/{id}/terminate", Some(&json!({"reason": "mine"}))),
        (Method::DELETE, "/v1/runs/{id}", None),
    ] {
        for key in ["globex-viewer", "globex-operator", "globex-platform-admin"] {
            let ask = async |id: &str| server.send(method.clone(), &path.replace("{id}", id), key, body).await;
            let (mine, theirs) = (ask(&unknown).await, ask(foreign.as_str()).await);
            assert!(matches!(theirs.status.as_u16(), 403 | 404), "{method} {path} as {key}: {}", theirs.text);
            assert_eq!(essence(&mine), essence(&theirs), "{method} {path} as {key}");
            assert_eq!(mine.text.len(), theirs.text.len());
        }
    }
    let stream = |id: &str| {
        let request = server.request(Method::GET, &format!("/v1/runs/{id}/events")).bearer_auth("globex-viewer");
        request.header("accept", "text/event-stream")
    };
    let (mine, theirs) = (Answer::of(stream(&unknown)).await, Answer::of(stream(foreign.as_str())).await);
    assert_eq!(theirs.status, 404);
    assert_eq!(essence(&mine), essence(&theirs));
    let after = server.send(Method::GET, &format!("/v1/runs/{foreign}/events"), "acme-viewer", None).await;
    assert_eq!(before.json, after.json, "nothing of it reached the run");
}

#[tokio::test]
async fn lists_alerts_and_request_ids_end_at_the_tenant() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let mut request = start(one_step());
    request["runRequestId"] = json!("same");
    let acme = server.send(Method::POST, "/v1/runs", "acme-operator", Some(&request)).await;
    let globex = server.send(Method::POST, "/v1/runs", "globex-operator", Some(&request)).await;
    assert_eq!((acme.status.as_u16(), globex.status.as_u16()), (201, 201));
    assert_ne!(acme.run_id(), globex.run_id());
    for (key, run) in [("acme-viewer", acme.run_id()), ("globex-platform-admin", globex.run_id())] {
        let items = server.send(Method::GET, "/v1/runs", key, None).await.json["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1, "{key}");
        assert_eq!(items[0]["runId"], run.as_str());
    }
    let alert = |tenant: &str| servo_store::relay::NewAlert {
        code: servo_model::alert::AlertCode::PauseDrainTimeout,
        subject: format!("{tenant}-run"),
        run_id: None,
        tenant: servo_model::TenantId::parse(tenant).unwrap(),
        message: "still draining".to_owned(),
    };
    let store = server.runtime.engine().store();
    for tenant in ["acme", "globex", "_system"] {
        store.raise_alert(alert(tenant)).await.unwrap();
    }
    let subjects = async |key: &str| {
        let items = server.send(Method::GET, "/v1/alerts?limit=10", key, None).await.json["items"].clone();
        let mut subjects: Vec<_> =
            items.as_array().unwrap().iter().map(|alert| alert["subject"].as_str().unwrap().to_owned()).collect();
        subjects.sort_unstable();
        subjects
    };
    assert_eq!(subjects("acme-viewer").await, ["acme-run"]);
    assert_eq!(subjects("globex-admin").await, ["globex-run"]);
    assert_eq!(subjects("acme-platform-admin").await, ["_system-run", "acme-run", "globex-run"]);
}
