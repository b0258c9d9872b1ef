//! Starting, reading and listing runs.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use servo_model::RunId;
use servo_runtime::RuntimeConfig;

use crate::harness::{Answer, Options, Server, endless, one_step, plan, plan_ref, start};

#[tokio::test]
async fn a_run_is_started_read_and_listed() {
    let server = Server::start().await;
    let steps = json!([
        {"stepId": "extract"},
        {"stepId": "left", "dependsOn": ["extract"], "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2}},
        {"stepId": "right", "dependsOn": ["extract"]},
        {"stepId": "load", "dependsOn": ["left", "right"], "with": {"artifacts": [{"uri": "s3://b/k", "kind": "table"}]}},
    ]);
    let answer = server.post("/v1/runs", &start(steps)).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json["created"], true);
    let run = answer.run_id();
    assert_eq!(answer.headers["location"], format!("/v1/runs/{run}"));
    let snapshot = server.finish(&run).await;
    assert_eq!(snapshot["status"], "COMPLETED");
    assert_eq!(snapshot["artifacts"][0]["uri"], "s3://b/k");
    assert_eq!(snapshot["steps"].as_array().unwrap().len(), 5, "one step was tried twice");
    let list = server.get("/v1/runs").await.json;
    let item = &list["items"][0];
    assert_eq!(item["runId"], run.as_str());
    assert_eq!(item["tenantId"], "default");
    assert_eq!((&item["projectId"], &item["environmentId"]), (&json!("default"), &json!("default")));
    assert_eq!((&item["status"], &item["visible"]), (&json!("COMPLETED"), &json!("succeeded")));
    assert!(item["finishedAt"].is_string() && item["createdAt"].is_string());
    assert!(list.get("nextCursor").is_none());
}

#[tokio::test]
async fn who_asked_and_how_is_recorded() {
    let server = Server::start().await;
    let mut request = start(one_step());
    request["projectId"] = json!("reports");
    request["environmentId"] = json!("prod/eu");
    request["triggerSource"] = json!("webhook");
    let run = server.post("/v1/runs", &request).await.run_id();
    server.finish(&run).await;
    let events = server.get(&format!("/v1/runs/{run}/events")).await.json;
    let context = &events["events"][0]["context"];
    assert_eq!(context["tenantId"], "default");
    assert_eq!(context["projectId"], "reports");
    assert_eq!(context["environmentId"], "prod/eu");
    assert_eq!(context["triggeredBy"], "dev");
    assert_eq!(context["triggerSource"], "webhook");
}

#[tokio::test]
async fn the_callers_correlation_id_is_kept_if_it_is_plain() {
    let server = Server::start().await;
    let with = |id: &str| server.request(Method::GET, "/v1/runs").header("x-correlation-id", id.to_owned());
    let plain = Answer::of(with("order-17_x")).await;
    assert_eq!(plain.headers["x-correlation-id"], "order-17_x");
    let odd = Answer::of(with("a b;c")).await;
    assert_eq!(odd.headers["x-correlation-id"], odd.headers["x-request-id"]);
    let long = Answer::of(with(&"x".repeat(129))).await;
    assert_eq!(long.headers["x-correlation-id"], long.headers["x-request-id"]);
}

#[tokio::test]
async fn the_same_request_id_gets_the_same_run() {
    let server = Server::start().await;
    let mut request = start(one_step());
    request["runRequestId"] = json!("nightly-1");
    let first = server.post("/v1/runs", &request).await;
    let again = server.post("/v1/runs", &request).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(again.json["created"], false);
    assert_eq!(first.run_id(), again.run_id());
    request["approvalRequired"] = json!(true);
    let other = server.post("/v1/runs", &request).await;
    other.is_problem("RUN_REQUEST_MISMATCH");
    assert_eq!(other.status, 422);
    // Another environment is another request.
    request["environmentId"] = json!("test");
    assert_eq!(server.post("/v1/runs", &request).await.status, 201);
}

/// ES-072: requests that race under one id start one run, and all are told which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_requests_start_one_run() {
    let server = Server::start().await;
    let mut request = start(endless());
    request["runRequestId"] = json!("race");
    let answers = futures_util::future::join_all((0..64).map(|_| server.post("/v1/runs", &request))).await;
    let runs: BTreeSet<RunId> = answers.iter().map(Answer::run_id).collect();
    let created = answers.iter().filter(|answer| answer.json["created"] == true).count();
    assert_eq!((runs.len(), created), (1, 1));
    assert_eq!(server.get("/v1/runs").await.json["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_filtered_and_paged_without_loss_or_repetition() {
    let server = Server::start().await;
    let mut runs = Vec::new();
    for _ in 0..7 {
        let run = server.start_run(one_step()).await;
        server.finish(&run).await;
        runs.push(run.to_string());
    }
    let failed = server.start_run(json!([{"stepId": "a", "with": {"outcome": "fail"}}])).await;
    server.finish(&failed).await;
    runs.sort_unstable_by(|a, b| b.cmp(a));
    let (mut seen, mut path) = (Vec::new(), "/v1/runs?status=succeeded&planId=demo&limit=3".to_owned());
    loop {
        let page = server.get(&path).await.json;
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["runId"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(cursor) => path = format!("/v1/runs?status=succeeded&planId=demo&limit=3&cursor={cursor}"),
            None => break,
        }
        // New runs come in front and do not move what is behind the cursor.
        server.start_run(endless()).await;
    }
    assert_eq!(seen, runs);
    let failures = server.get("/v1/runs?status=failed").await.json;
    assert_eq!(failures["items"][0]["runId"], failed.as_str());
    assert_eq!(server.get("/v1/runs?planId=other").await.json["items"], json!([]));
}

/// S13: a cursor counts for the query and the tenant it was issued for.
#[tokio::test]
async fn a_cursor_of_another_query_is_refused() {
    let server = Server::with(Options { auth: crate::harness::keys(), ..Options::default() }).await;
    for _ in 0..2 {
        server.start_as("acme-operator", endless()).await;
        server.start_as("globex-operator", endless()).await;
    }
    let page = server.send(Method::GET, "/v1/runs?limit=1&status=running", "acme-viewer", None).await;
    let cursor = page.json["nextCursor"].as_str().unwrap_or_else(|| panic!("{}", page.text)).to_owned();
    let ask = async |key: &str, query: &str| {
        server.send(Method::GET, &format!("/v1/runs?{query}&cursor={cursor}"), key, None).await
    };
    assert_eq!(ask("acme-viewer", "limit=1&status=running").await.status, 200);
    assert_eq!(ask("acme-operator", "limit=5&status=running").await.status, 200);
    for (key, query) in [
        ("acme-viewer", "limit=1"),
        ("acme-viewer", "limit=1&status=failed"),
        ("acme-viewer", "limit=1&status=running&planId=demo"),
        ("globex-viewer", "limit=1&status=running"),
    ] {
        let answer = ask(key, query).await;
        assert_eq!(answer.status, 400);
        answer.is_problem("INVALID_CURSOR");
    }
}

/// ES-070: REJECT is 429 with `Retry-After`, QUEUE and DELAY accept.
#[tokio::test]
async fn overload_rejects_queues_or_delays_as_configured() {
    for (policy, status) in [("reject", 429), ("queue", 201), ("delay", 201)] {
        let overload = json!({"default": {"policy": policy, "active_runs_max": 1, "delay_ms": 2_500}});
        let runtime =
            RuntimeConfig { overload: serde_json::from_value(overload).unwrap(), ..Options::default().runtime };
        let server = Server::with(Options { runtime, ..Options::default() }).await;
        server.start_run(endless()).await;
        let second = server.post("/v1/runs", &start(endless())).await;
        assert_eq!(second.status, status, "{policy}: {}", second.text);
        match policy {
            "reject" => {
                second.is_problem("OVERLOADED");
                assert_eq!(second.headers["retry-after"], "3");
                assert_eq!(second.json["retryAfter"], 3);
                assert_eq!(server.get("/v1/runs").await.json["items"].as_array().unwrap().len(), 1);
            }
            "queue" => assert_eq!(second.json["blockedBy"][0]["cause"], "capacity"),
            _ => assert!(second.json["blockedBy"][0]["earliestAt"].is_string(), "{}", second.text),
        }
    }
}

#[tokio::test]
async fn a_plan_that_is_not_what_its_reference_says_is_refused() {
    let server = Server::start().await;
    let plan = plan(one_step());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut request = json!({"planRef": plan_ref(&plan), "plan": plan.clone()});
        change(&mut request);
        request
    };
    for (change, code, pointer) in [
        (
            &(|r: &mut Value| r["plan"]["steps"][0]["stepId"] = json!("b")) as &dyn Fn(&mut Value),
            "PLAN_DIGEST_MISMATCH",
            "/planRef/sha256",
        ),
        (&|r: &mut Value| r["planRef"]["planVersion"] = json!("2"), "SCHEMA_VALIDATION_FAILED", "/planRef/planVersion"),
        (&|r: &mut Value| r["planRef"]["uri"] = json!("no uri"), "SCHEMA_VALIDATION_FAILED", "/planRef/uri"),
        (&|r: &mut Value| drop(r.as_object_mut().unwrap().remove("plan")), "SCHEMA_VALIDATION_FAILED", "/plan"),
    ] {
        let answer = server.post("/v1/runs", &with(change)).await;
        assert_eq!(answer.status, 422);
        answer.is_problem(code);
        answer.names(pointer);
    }
    assert_eq!(server.get("/v1/runs").await.json["items"], json!([]), "nothing was started");
}
