//! Runs of an entrypoint that is one user's: the same for every API that shows runs.

use reqwest::Method;
use serde_json::{Value, json};
use servo_model::RunId;
use servo_model::alert::AlertCode;
use servo_store::relay::NewAlert;

use super::support::{Api, WORKFLOW, definition_of};
use crate::harness::{Answer, Options, keys, wait_for};

/// As long as a real id, so that also the length of the answers can be compared.
const UNKNOWN: &str = "inv_00000000000000000000000000000000";

const OWNER: &str = "acme-developer";

/// A server with an entrypoint that is its developer's alone, and an ended run of it.
async fn private(address: &str) -> (Api, String, String) {
    let server = servo_server::config::ServerConfig { series_every_ms: 100, ..Default::default() };
    let api = Api::with(Options { auth: keys(), server, ..Options::default() }, &[OWNER]).await;
    let mut document = definition_of("acme", address);
    document["owner"] = json!({"owner_type": "user", "id": OWNER, "tenant_id": "acme"});
    let registered = api.send(Method::POST, "/entrypoints", OWNER, Some(&document)).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let entrypoint = registered.json["id"].as_str().unwrap().to_owned();
    let path = format!("/entrypoints/{entrypoint}:status");
    assert_eq!(api.send(Method::POST, &path, OWNER, Some(&json!({"action": "activate"}))).await.status, 200);
    let request = json!({"entrypoint_id": address, "mode": "sync", "params": {"amount": 5}});
    let started = api.send(Method::POST, "/invocations", OWNER, Some(&request)).await;
    assert_eq!(started.status, 201, "{}", started.text);
    let invocation = started.json["record"]["id"].as_str().unwrap().to_owned();
    (api, entrypoint, invocation)
}

/// All that may tell two answers about runs apart: what is said, not of which run.
async fn ask(api: &Api, method: &Method, path: &str, id: &str, key: &str, body: Option<&Value>) -> (u16, Value) {
    let mut request = api.server.request(method.clone(), &path.replace("{id}", id)).bearer_auth(key);
    if let Some(body) = body {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap().replace(id, "ID");
    let mut json: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(fields) = json.as_object_mut() {
        fields.remove("requestId");
    }
    (status, json)
}

/// SR-012, SR-016: a run that is one user's is answered to others like one that is not there, whichever API they ask. Only what a
/// handler does with the token of its invocation is not asked about.
async fn a_private_run_is_not_there_in_any_api() {
    let (api, _, run) = private(WORKFLOW).await;
    let signal = json!({"signalId": "s", "type": "CANCEL"});
    let rows: [(Method, &str, Option<Value>); 10] = [
        (Method::GET, "/v1/runs/{id}", None),
        (Method::GET, "/v1/runs/{id}/events", None),
        (Method::GET, "/v1/runs/{id}/logs", None),
        (Method::GET, "/v1/runs/{id}/export", None),
        (Method::POST, "/v1/runs/{id}/signals", Some(signal)),
        (Method::POST, "/v1/runs/{id}/terminate", Some(json!({"reason": "mine"}))),
        (Method::DELETE, "/v1/runs/{id}", None),
        (Method::GET, "/2025-12-01/durable-executions/{id}", None),
        (Method::GET, "/2025-12-01/durable-executions/{id}/history", None),
        (Method::POST, "/2025-12-01/durable-executions/{id}/stop", None),
    ];
    for (method, path, body) in &rows {
        for key in ["acme-viewer", "acme-operator", "acme-admin"] {
            let unknown = ask(&api, method, path, UNKNOWN, key, body.as_ref()).await;
            let theirs = ask(&api, method, path, &run, key, body.as_ref()).await;
            assert!(matches!(theirs.0, 403 | 404), "{method} {path} as {key}: {theirs:?}");
            assert_eq!(unknown, theirs, "{method} {path} as {key}");
        }
    }
    let stream = |id: &str| {
        let request = api.server.request(Method::GET, &format!("/v1/runs/{id}/events")).bearer_auth("acme-admin");
        request.header("accept", "text/event-stream")
    };
    assert_eq!(Answer::of(stream(&run)).await.status, 404);
    // The owner and the platform see what they saw before.
    for key in [OWNER, "acme-platform-admin"] {
        for (method, path, _) in rows.iter().filter(|(method, ..)| *method == Method::GET) {
            let (status, answer) = ask(&api, method, path, &run, key, None).await;
            assert_eq!(status, 200, "{path} as {key}: {answer}");
        }
    }
    // By its whole ARN as well.
    let path = format!("/2025-12-01/durable-executions/{run}");
    let own = api.server.send(Method::GET, &path, OWNER, None).await;
    let arn = own.json["DurableExecutionArn"].as_str().unwrap().replace(':', "%3A").replace('/', "%2F");
    for (key, expected) in [(OWNER, 200), ("acme-admin", 404)] {
        let path = "/2025-12-01/durable-executions/{id}";
        assert_eq!(ask(&api, &Method::GET, path, &arn, key, None).await.0, expected, "{key}");
    }
}

async fn alert(api: &Api, subject: &str, run_id: Option<RunId>) {
    let alert = NewAlert {
        code: AlertCode::RunQuarantined,
        subject: subject.to_owned(),
        run_id,
        tenant: servo_model::TenantId::parse("acme").unwrap(),
        message: "for the test".to_owned(),
    };
    api.server.runtime.engine().store().raise_alert(alert).await.unwrap();
}

/// SR-012: nor is it in lists, alerts and charts.
async fn a_private_run_is_in_no_list_of_others() {
    let (api, entrypoint, run) = private(WORKFLOW).await;
    alert(&api, &run, Some(RunId::parse(&run).unwrap())).await;
    let lists = ["/v1/runs", &format!("/v1/runs?planId={entrypoint}"), "/v1/alerts"];
    for (key, sees) in [("acme-viewer", 0), ("acme-admin", 0), (OWNER, 1), ("acme-platform-admin", 1)] {
        for path in lists {
            let answer = api.server.send(Method::GET, path, key, None).await;
            assert_eq!(answer.json["items"].as_array().map(Vec::len), Some(sees), "{path} as {key}: {}", answer.text);
        }
    }
    let counted = async |key: &str| {
        let series = api.server.send(Method::GET, "/v1/series", key, None).await.json;
        series["points"].as_array().unwrap().iter().any(|point| point["counts"]["succeeded"] == 1)
    };
    wait_for("a point with the run", async || counted(OWNER).await.then_some(())).await;
    assert!(!counted("acme-admin").await);
    assert!(counted("acme-platform-admin").await);
}

/// SR-012: an alert that is kept from somebody does not push out one that is not.
async fn a_private_run_takes_no_place_in_the_list_of_alerts() {
    let (api, _, run) = private(WORKFLOW).await;
    // The private run's comes first, also when both are of one millisecond: then they are in the order of their subjects.
    alert(&api, "what all see", None).await;
    alert(&api, &run, Some(RunId::parse(&run).unwrap())).await;
    for (key, sees) in [("acme-viewer", "what all see"), (OWNER, run.as_str()), ("acme-platform-admin", run.as_str())] {
        let answer = api.server.send(Method::GET, "/v1/alerts?limit=1", key, None).await;
        let subjects: Vec<_> = answer.json["items"].as_array().unwrap().iter().map(|item| &item["subject"]).collect();
        assert_eq!(subjects, [sees], "{key}: {}", answer.text);
    }
}

crate::backend::on_every_store! {
    a_private_run_takes_no_place_in_the_list_of_alerts,
    a_private_run_is_not_there_in_any_api,
    a_private_run_is_in_no_list_of_others,
}
