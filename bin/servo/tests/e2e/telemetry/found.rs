//! What an invocation is found by in logs and traces, and what leaves nothing to find.

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::collector::{Collector, text};
use crate::support::process::Servo;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ADDRESS: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.found.v1~";

fn definition() -> Value {
    json!({
        "entrypoint_id": ADDRESS,
        "version": "1.0.0",
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "title": "found",
        "schema": {"params": {"type": "object"}, "returns": {"type": "object"}},
        "traits": {
            "invocation": {"supported": ["sync"], "default": "sync"},
            "limits": {"timeout_seconds": 20, "memory_mb": 64, "cpu": 1.0},
            "retry": {"max_attempts": 1, "initial_delay_ms": 1, "max_delay_ms": 1, "backoff_multiplier": 1.0},
            "caching": {"max_age_seconds": 600},
            "is_idempotent": true,
        },
        "implementation": {
            "adapter": "gts.x.core.serverless.adapter.starlark.v1~", "kind": "code",
            "code": {"language": "starlark", "source": "def main(ctx, input):\n  return {}\n"},
        },
    })
}

/// SR-533: the log and the trace of an invocation are found by its correlation id and by its trace id, and a refusal names the trace.
/// SR-410, SR-444: a dry run and a result that was kept leave no span.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invocation_is_found_by_its_ids() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a folder");
    let collector = Collector::start().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("SERVO_LOG", "info,servo_server=debug"),
    ];
    let (servo, mut log) = Servo::dev_watched(folder.path(), &variables).expect("it starts");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let base = format!("{}/api/serverless-runtime/v1", servo.url);
    let post = async |path: &str, body: Value, correlation: &str| {
        let request = client.post(format!("{base}{path}")).json(&body).header("x-correlation-id", correlation);
        let request = request.header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
        let response = request.header("idempotency-key", "k1").send().await.expect("an answer");
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.expect("JSON"))
    };
    let (status, made) = post("/entrypoints", definition(), "register").await;
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().expect("an id");
    assert_eq!(post(&format!("/entrypoints/{id}:status"), json!({"action": "activate"}), "activate").await.0, 200);

    let start = json!({"entrypoint_id": ADDRESS, "params": {}});
    let (status, answer) = post("/invocations", start.clone(), "for-real").await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(answer["record"]["observability"]["trace_id"], TRACE);
    log.until(&["answered", "for-real", TRACE, "/invocations"]);
    let (status, cached) = post("/invocations", start.clone(), "kept").await;
    assert_eq!((status, &cached["cached"]), (200, &json!(true)), "{cached}");
    let dry = json!({"entrypoint_id": ADDRESS, "params": {}, "dry_run": true});
    assert_eq!(post("/invocations", dry, "dry").await.0, 200);
    let (status, refused) = post("/invocations", json!({"entrypoint_id": ADDRESS, "params": []}), "refused").await;
    assert_eq!((status, &refused["trace_id"]), (422, &json!(TRACE)), "{refused}");

    // What is left is sent before the server has ended.
    assert!(servo.stop().success());
    let spans = collector.spans();
    let with = |correlation: &str| -> Vec<&Span> {
        let of = |span: &&Span| text(&span.attributes, "servo.correlation_id").as_deref() == Some(correlation);
        spans.iter().filter(of).collect()
    };
    let mut names: Vec<_> = with("for-real").iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["POST /api/serverless-runtime/v1/invocations", &format!("start {ADDRESS}")]);
    assert_eq!((with("kept").len(), with("dry").len(), with("refused").len()), (0, 0, 1));
    let starts = spans.iter().filter(|span| span.name.starts_with("start ")).count();
    assert_eq!(starts, 1);
}
