//! Plans by URI: only from listed places, without detours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::get;
use serde_json::{Value, json};
use servo_runtime::Tasks;
use tokio::net::TcpListener;

use crate::harness::{Options, Server, one_step, plan, plan_ref};

fn by_uri(uri: &str) -> Value {
    let mut reference = plan_ref(&plan(one_step()));
    reference["uri"] = json!(uri);
    json!({"planRef": reference})
}

#[tokio::test]
async fn a_plan_is_read_from_a_listed_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("demo.json"), plan(one_step()).to_string()).unwrap();
    std::fs::write(folder.path().join("other.json"), plan(json!([{"stepId": "z"}])).to_string()).unwrap();
    let prefix = format!("file://{}/", folder.path().display());
    let server = Server::with(Options { plan_sources: vec![prefix.clone()], ..Options::default() }).await;
    let answer = server.post("/v1/runs", &by_uri(&format!("{prefix}demo.json"))).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.run_id();
    assert_eq!(server.finish(&run).await["status"], "COMPLETED");
    server.post("/v1/runs", &by_uri(&format!("{prefix}other.json"))).await.is_problem("PLAN_DIGEST_MISMATCH");
    for uri in [
        format!("{prefix}../x.json"),
        format!("{prefix}missing.json"),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/".to_owned(),
        "gopher://x/".to_owned(),
        "inline:plan".to_owned(),
    ] {
        let answer = server.post("/v1/runs", &by_uri(&uri)).await;
        assert_eq!(answer.status, 422, "{uri}");
        answer.is_problem("PLAN_SOURCE_NOT_ALLOWED");
        answer.names("/planRef/uri");
    }
}

/// A web server that counts what it is asked for.
async fn web(hits: Arc<AtomicU32>) -> String {
    let secret = move || {
        hits.fetch_add(1, Ordering::SeqCst);
        async { plan(one_step()).to_string() }
    };
    let router = Router::new()
        .route("/plans/demo.json", get(async || plan(one_step()).to_string()))
        .route("/plans/away.json", get(async || Redirect::temporary("/secret.json")))
        .route("/plans/large.json", get(async || " ".repeat(100_000)))
        .route("/plans/broken.json", get(async || StatusCode::INTERNAL_SERVER_ERROR))
        .route("/secret.json", get(secret));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    Tasks::on_tokio().spawn("web", async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

#[tokio::test]
async fn a_plan_is_fetched_from_a_listed_address_without_detours() {
    let hits = Arc::new(AtomicU32::new(0));
    let web = web(hits.clone()).await;
    let mut options = Options { plan_sources: vec![format!("{web}/plans/")], ..Options::default() };
    options.runtime.limits.request_body_bytes_max = 50_000;
    let server = Server::with(options).await;
    let ask = async |path: &str| server.post("/v1/runs", &by_uri(&format!("{web}{path}"))).await;
    assert_eq!(ask("/plans/demo.json").await.status, 201);
    for (path, status, code) in [
        ("/plans/away.json", 422, "SCHEMA_VALIDATION_FAILED"),
        ("/plans/missing.json", 422, "SCHEMA_VALIDATION_FAILED"),
        ("/plans/large.json", 413, "LIMIT_EXCEEDED"),
        ("/plans/broken.json", 502, "PLAN_SOURCE_UNAVAILABLE"),
        ("/secret.json", 422, "PLAN_SOURCE_NOT_ALLOWED"),
        ("/plans/../secret.json", 422, "PLAN_SOURCE_NOT_ALLOWED"),
        ("/plans/%2e%2e/secret.json", 422, "PLAN_SOURCE_NOT_ALLOWED"),
        ("/plans/..%2fsecret.json", 422, "PLAN_SOURCE_NOT_ALLOWED"),
    ] {
        let answer = ask(path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        answer.is_problem(code);
    }
    let elsewhere = web.replace("127.0.0.1", "localhost");
    server
        .post("/v1/runs", &by_uri(&format!("{elsewhere}/plans/demo.json")))
        .await
        .is_problem("PLAN_SOURCE_NOT_ALLOWED");
    assert_eq!(hits.load(Ordering::SeqCst), 0, "nothing unlisted was asked for");
}
