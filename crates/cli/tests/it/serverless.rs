//! `servo entrypoints` and `servo invocations`: what they ask for, and the exit codes they end with.

use clap::Parser;
use serde_json::{Value, json};
use servo_cli::{Cli, Failure, Next, exit};

use crate::server::{Reply, Server};

async fn run(server: &Server, line: &[&str]) -> Result<u8, Failure> {
    let line = [&["servo", "--server", &server.url][..], line].concat();
    match servo_cli::run(Cli::try_parse_from(line).unwrap()).await? {
        Next::Done(code) => Ok(code),
        Next::Local(local) => panic!("{local:?}"),
    }
}

fn record(status: &str) -> Value {
    json!({
        "id": "inv_1", "invocation_id": "inv_1", "entrypoint_id": "gts.a.b.c.v1~", "entrypoint_version": "1.0.0",
        "tenant_id": "t", "status": status, "mode": "async", "params": {}, "result": null, "error": null,
        "timestamps": {"created_at": "2026-01-20T10:30:15.123Z", "started_at": null, "suspended_at": null, "finished_at": null},
        "observability": {"correlation_id": "c", "trace_id": null, "span_id": null, "metrics": {"memory_limit_mb": 0}},
    })
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.rsplit("\r\n").next().unwrap()).unwrap()
}

#[tokio::test]
async fn waiting_ends_with_the_invocations_own_verdict() {
    for (status, expected) in [("succeeded", exit::OK), ("failed", exit::RUN_FAILED), ("canceled", exit::RUN_FAILED)] {
        let started = json!({"record": record("queued"), "dry_run": false, "cached": false});
        let server = Server::start(vec![
            Reply::json(201, &started.to_string()),
            Reply::Close(Reply::stream("event: end\ndata: {}\n\n")),
            Reply::json(200, &record(status).to_string()),
        ]);
        let line = ["invocations", "start", "vendor.app.tax", "--params", r#"{"amount":1}"#, "--key", "k", "--wait"];
        let result = run(&server, &line).await;
        assert_eq!(result.unwrap_or_else(|failure| failure.exit), expected, "{status}");
        let requests = server.finish();
        assert_eq!(body(&requests[0])["entrypoint_id"], "vendor.app.tax", "the server knows which version is meant");
        assert_eq!(body(&requests[0])["params"], json!({"amount": 1}));
        assert!(requests[0].contains("idempotency-key: k\r\n"), "{}", requests[0]);
    }
}

#[tokio::test]
async fn waiting_too_long_is_exit_code_8() {
    let started = json!({"record": record("queued"), "dry_run": false, "cached": false});
    let server =
        Server::start(vec![Reply::json(201, &started.to_string()), Reply::Hold(Reply::stream(": nothing yet\n\n"))]);
    let line = ["invocations", "start", "vendor.app.tax", "--timeout", "20ms"];
    assert_eq!(run(&server, &line).await.unwrap_err().exit, exit::TIMED_OUT);
    server.finish();
}

/// The server's words, with the file in place of the document that was made of it: for people, and in `-o json`.
#[tokio::test]
async fn a_mistake_in_code_is_told_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("bad.star");
    std::fs::write(&code, "def main(ctx, input)\n  return {}\n").unwrap();
    let place = json!({"path": "$.implementation.code.source", "line": 1, "column": 21, "message": "Parse error"});
    let refusal = json!({"type": "t", "title": "Invalid", "status": 422, "code": "gts.x.err.validation.v1~",
        "detail": "$.implementation.code.source:1:21: Parse error", "errors": [place]});
    for verb in ["register", "validate"] {
        let server = Server::start(vec![Reply::json(422, &refusal.to_string())]);
        let line = ["entrypoints", verb, code.to_str().unwrap(), "--name", "vendor.app.bad"];
        let failure = run(&server, &line).await.unwrap_err();
        assert_eq!(failure.to_string(), format!("{}:1:21: Parse error", code.display()));
        server.finish();
    }
}

#[tokio::test]
async fn code_becomes_a_definition() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("tax.star");
    std::fs::write(&code, "def main(ctx, input):\n  return {}\n").unwrap();
    let schema = folder.path().join("params.json");
    std::fs::write(&schema, r#"{"type":"object","required":["amount"]}"#).unwrap();
    let refusal = r#"{"type":"t","title":"Conflict","status":409,"code":"gts.x.err.conflict.v1~","errors":[]}"#;
    let server = Server::start(vec![Reply::json(409, refusal)]);
    let line = [
        "entrypoints",
        "register",
        code.to_str().unwrap(),
        "--name",
        "vendor.app.tax",
        "--workflow",
        "--params-schema",
        schema.to_str().unwrap(),
    ];
    assert_eq!(run(&server, &line).await.unwrap_err().exit, exit::CONFLICT);
    let sent = body(&server.finish()[0]);
    assert!(sent["entrypoint_id"].as_str().unwrap().ends_with(".workflow.v1~vendor.app.tax.v1~"), "{sent}");
    assert_eq!(sent["schema"]["params"]["required"], json!(["amount"]));
    assert_eq!(sent["implementation"]["code"]["source"], "def main(ctx, input):\n  return {}\n");
    assert!(sent["traits"]["workflow"].is_object());
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (code, document, broken) = (file("a.star", ""), file("a.json", "{}"), file("b.json", "{"));
    let server = Server::start(Vec::new());
    for (line, needle) in [
        (vec!["entrypoints", "register", &code], "needs a name"),
        (vec!["entrypoints", "validate", &document, "--workflow"], "are for code"),
        (vec!["entrypoints", "update", "ep_1", &broken], "b.json"),
        (vec!["invocations", "start", "a.b.c", "--params", "{"], "--params"),
        (vec!["invocations", "start", "a.b.c", "--params", r#"{"n": 18446744073709551617}"#], "/n: this number"),
    ] {
        let failure = run(&server, &line).await.unwrap_err();
        assert_eq!(failure.exit, exit::USAGE, "{line:?}");
        assert!(failure.to_string().contains(needle), "{failure}");
    }
    assert!(server.finish().is_empty());
}

#[tokio::test]
async fn a_bulk_action_with_refusals_says_so() {
    let error = json!({"error_type_id": "gts.e.v1~", "message": "no", "category": "non_retryable", "details": {}});
    for (error, expected) in [(Value::Null, exit::OK), (error, exit::CONFLICT)] {
        let page = json!({"items": [{"id": "inv_1", "invocation_id": "inv_1", "error": error}],
                          "page_info": {"next_cursor": null, "prev_cursor": null, "has_more": false}});
        let server = Server::start(vec![Reply::json(200, &page.to_string())]);
        let line = ["invocations", "bulk", "retry", "--filter", "status eq 'failed'", "--per-second", "5"];
        assert_eq!(run(&server, &line).await.unwrap(), expected);
        assert_eq!(body(&server.finish()[0])["per_second"], 5);
    }
}
