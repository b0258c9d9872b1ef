//! Bad input gets a typed error that names what is wrong, and changes nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, one_step, plan, plan_ref, start};

#[tokio::test]
async fn bodies_that_do_not_fit_name_the_field() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    server.finish(&run).await;
    let good = start(one_step()).to_string();
    let with = |name: &str, value: Value| {
        let mut request = start(one_step());
        request[name] = value;
        request.to_string()
    };
    let planned = |steps: Value| start(steps).to_string();
    let engine = |name: &str| {
        let mut plan = plan(one_step());
        plan["engineType"] = json!(name);
        json!({"planRef": plan_ref(&plan), "plan": plan}).to_string()
    };
    let signals = format!("/v1/runs/{run}/signals");
    let terminate = format!("/v1/runs/{run}/terminate");
    let deep = format!("{{\"plan\":{}{}}}", "[".repeat(64), "]".repeat(64));
    for (path, body, code, pointer) in [
        ("/v1/runs", "", "MALFORMED_JSON", ""),
        ("/v1/runs", "{", "MALFORMED_JSON", ""),
        ("/v1/runs", "\u{feff}{}", "MALFORMED_JSON", ""),
        ("/v1/runs", &format!("{good}x"), "MALFORMED_JSON", ""),
        ("/v1/runs", "[]", "SCHEMA_VALIDATION_FAILED", ""),
        ("/v1/runs", "null", "SCHEMA_VALIDATION_FAILED", ""),
        ("/v1/runs", "{}", "SCHEMA_VALIDATION_FAILED", "/planRef"),
        ("/v1/runs", &deep, "SCHEMA_VALIDATION_FAILED", ""),
        ("/v1/runs", &with("colour", json!("red")), "SCHEMA_VALIDATION_FAILED", "/colour"),
        ("/v1/runs", &with("tenantId", json!("globex")), "SCHEMA_VALIDATION_FAILED", "/tenantId"),
        ("/v1/runs", &with("approvalRequired", json!(1)), "SCHEMA_VALIDATION_FAILED", "/approvalRequired"),
        ("/v1/runs", &with("projectId", json!("../x")), "SCHEMA_VALIDATION_FAILED", "/projectId"),
        ("/v1/runs", &with("environmentId", json!("")), "SCHEMA_VALIDATION_FAILED", "/environmentId"),
        ("/v1/runs", &with("runRequestId", json!("a|b")), "SCHEMA_VALIDATION_FAILED", "/runRequestId"),
        ("/v1/runs", &with("runRequestId", json!("")), "SCHEMA_VALIDATION_FAILED", "/runRequestId"),
        ("/v1/runs", &with("notBefore", json!("tomorrow")), "SCHEMA_VALIDATION_FAILED", "/notBefore"),
        ("/v1/runs", &with("triggerSource", json!("cron")), "SCHEMA_VALIDATION_FAILED", "/triggerSource"),
        ("/v1/runs", &with("planRef", json!(["a"])), "SCHEMA_VALIDATION_FAILED", "/planRef"),
        ("/v1/runs", &planned(json!([])), "SCHEMA_VALIDATION_FAILED", "/plan"),
        (
            "/v1/runs",
            &planned(json!([{"stepId": "a", "dependOn": []}])),
            "SCHEMA_VALIDATION_FAILED",
            "/plan/steps/0/dependOn",
        ),
        ("/v1/runs", &planned(json!([{"stepId": "a", "dependsOn": ["a"]}])), "SCHEMA_VALIDATION_FAILED", "/plan"),
        ("/v1/runs", &engine("temporal"), "ENGINE_UNKNOWN", "/plan/engineType"),
        ("/v1/runs", &engine("native"), "ENGINE_UNKNOWN", "/plan/engineType"),
        ("/v1/runs", &engine("Mock"), "ENGINE_UNKNOWN", "/plan/engineType"),
        ("/v1/runs", &engine("function"), "ENGINE_UNKNOWN", "/plan/engineType"),
        (&signals, "{}", "SCHEMA_VALIDATION_FAILED", "/signalId"),
        (&signals, r#"{"signalId":"a b","type":"PAUSE"}"#, "SCHEMA_VALIDATION_FAILED", "/signalId"),
        (&signals, r#"{"signalId":"s","type":"pause"}"#, "SCHEMA_VALIDATION_FAILED", "/type"),
        (&signals, r#"{"signalId":"s","type":"RETRY_STEP"}"#, "SCHEMA_VALIDATION_FAILED", "/stepId"),
        (&signals, r#"{"signalId":"s","type":"PAUSE","stepId":"a"}"#, "SCHEMA_VALIDATION_FAILED", "/stepId"),
        (&signals, r#"{"signalId":"s","type":"PAUSE","by":"root"}"#, "SCHEMA_VALIDATION_FAILED", "/by"),
        (&terminate, "{}", "SCHEMA_VALIDATION_FAILED", "/reason"),
        ("/v1/runs/import", "{}", "SCHEMA_VALIDATION_FAILED", "/format"),
        ("/v1/dead-letters/redrive", r#"{"position":"7"}"#, "SCHEMA_VALIDATION_FAILED", "/position"),
        ("/v1/dead-letters/redrive", r#"{"positoin":"cursor-7"}"#, "SCHEMA_VALIDATION_FAILED", "/positoin"),
    ] {
        let answer = server.post_text(path, body).await;
        assert_eq!(answer.json["code"], code, "{path} {body}: {}", answer.text);
        if ["SCHEMA_VALIDATION_FAILED", "ENGINE_UNKNOWN"].contains(&code) {
            assert_eq!(answer.json["errors"][0]["pointer"], pointer, "{path} {body}: {}", answer.text);
        }
    }
    let items = server.get("/v1/runs").await.json["items"].as_array().unwrap().len();
    assert_eq!(items, 1, "nothing was started");
}

#[tokio::test]
async fn bodies_of_bytes_are_refused() {
    let server = Server::start().await;
    let request = server.request(Method::POST, "/v1/runs").body(vec![0xff, 0xfe, b'{', b'}']);
    Answer::of(request).await.is_problem("MALFORMED_JSON");
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_named() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    for (path, name) in [
        ("/v1/runs?limit=0", "limit"),
        ("/v1/runs?limit=1001", "limit"),
        ("/v1/runs?limit=-1", "limit"),
        ("/v1/runs?limit=ten", "limit"),
        ("/v1/runs?limit=1&limit=2", "limit"),
        ("/v1/runs?status=FAILED", "status"),
        ("/v1/runs?planId=a%20b", "planId"),
        ("/v1/runs?colour=red", "colour"),
        ("/v1/runs?tenant=globex", "tenant"),
        ("/v1/alerts?after=1", "after"),
        ("/v1/dead-letters?after=7", "after"),
        ("/v1/dead-letters?after=cursor-", "after"),
        ("/runtime/events?after=cursor-x", "after"),
        ("/runtime/events?limit=1001", "limit"),
        ("/v1/runs/a%20b", "runId"),
        ("/v1/runs/%2A", "runId"),
        ("/v1/runs/..%2F", "runId"),
        ("/v1/runs/%ff", "runId"),
        ("/v1/runs/a%00/events", "runId"),
        (&format!("/v1/runs/{run}/events?after=-1"), "after"),
        (&format!("/v1/runs/{run}/events?after=x"), "after"),
        (&format!("/v1/runs/{run}/events?limit=0"), "limit"),
        (&format!("/v1/runs/{}", "x".repeat(129)), "runId"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.text);
        answer.is_problem("INVALID_PARAMETER");
        answer.names(name);
    }
    for limit in [1, 1_000] {
        assert_eq!(server.get(&format!("/v1/runs?limit={limit}")).await.status, 200);
    }
    for cursor in ["", "x", "%20", "AAAA", &"A".repeat(100), &"A".repeat(5_000)] {
        server.get(&format!("/v1/runs?cursor={cursor}")).await.is_problem("INVALID_CURSOR");
    }
    let stream = server.request(Method::GET, &format!("/v1/runs/{run}/events"));
    let stream = stream.header("accept", "text/event-stream").header("last-event-id", "seven");
    Answer::of(stream).await.names("last-event-id");
}

#[tokio::test]
async fn unknown_addresses_and_methods_are_problems_too() {
    let server = Server::start().await;
    for path in ["/v1", "/v1/run", "/v2/runs", "/v1/runs/x/y", "/runtime", "/admin"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404);
        answer.is_problem("NOT_FOUND");
    }
    for (method, path) in [
        (Method::PUT, "/v1/runs"),
        (Method::DELETE, "/v1/alerts"),
        (Method::GET, "/runtime/commands"),
        (Method::POST, "/livez"),
        (Method::from_bytes(b"BREW").unwrap(), "/v1/runs"),
    ] {
        server.send(method, path, "", None).await.is_problem("METHOD_NOT_ALLOWED");
    }
    for path in
        ["/v1/runs/inv_unknown", "/v1/runs/_system", "/v1/runs/inv_unknown/events", "/v1/runs/inv_unknown/export"]
    {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404);
        answer.is_problem("RUN_NOT_FOUND");
    }
}

/// Depth is counted where the body enters, also inside of plans that are kept as they are.
#[tokio::test]
async fn depth_has_a_limit_and_not_before_it() {
    let server = Server::start().await;
    let nested = |levels: usize| {
        let value: Value = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        json!([{"stepId": "a", "with": {"artifacts": [], "sleepMs": 0, "error": value}}])
    };
    // The body, the plan, the steps, the step, its input: five levels stand around the value.
    let deepest = server.post("/v1/runs", &start(nested(59))).await;
    assert_eq!(deepest.status, 201, "{}", deepest.text);
    let deeper = server.post("/v1/runs", &start(nested(60))).await;
    assert_eq!(deeper.status, 422);
    deeper.is_problem("SCHEMA_VALIDATION_FAILED");
    let bomb = "[".repeat(1_000_000);
    server.post_text("/v1/runs", &bomb).await.is_problem("SCHEMA_VALIDATION_FAILED");
    server.post_text("/runtime/commands", &bomb).await.is_problem("SCHEMA_VALIDATION_FAILED");
}

#[tokio::test]
async fn inline_plans_may_carry_any_reference_to_themselves() {
    let server = Server::start().await;
    let plan = plan(one_step());
    let mut reference = plan_ref(&plan);
    reference["uri"] = json!("s3://plans/demo.json");
    let run = server.post("/v1/runs", &json!({"planRef": reference, "plan": plan})).await.run_id();
    server.finish(&run).await;
    let events = server.get(&format!("/v1/runs/{run}/events?limit=1")).await.json;
    assert_eq!(events["events"][0]["planRef"]["uri"], "s3://plans/demo.json");
}
