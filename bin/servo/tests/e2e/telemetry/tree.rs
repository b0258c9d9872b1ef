//! One trace for one request, whatever it leads to; and nothing in it that is nobody else's business.

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use super::collector::{Collector, text};
use super::handlers::Handlers;
use crate::support::process::Servo;
use crate::support::until;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const SECRET: &str = "canary-7c1e0a5f9b3d";

/// A server whose spans go to a collector, and handlers that it calls.
struct World {
    servo: Servo,
    collector: Collector,
    handlers: Handlers,
    client: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start(more: &[(&str, &str)]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().expect("a folder");
        let collector = Collector::start().await;
        let mut variables = vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of%20the%20collector"),
            ("OTEL_SERVICE_NAME", "servo-under-test"),
            ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ];
        variables.extend_from_slice(more);
        let servo = Servo::dev(folder.path(), &variables).expect("it starts");
        let handlers = Handlers::serve(&servo.url, SECRET).await;
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        for function in ["outer", "inner", "breaks"] {
            let url = format!("{}/v1/functions/{function}", servo.url);
            let reach = json!({"reach": {"kind": "push", "url": handlers.url}});
            let status = client.put(url).json(&reach).send().await.expect("an answer").status();
            assert!(status.is_success(), "{status}");
        }
        Self { servo, collector, handlers, client, _folder: folder }
    }

    /// Calls a function, with a secret in everything that a caller sends, and waits for its end.
    async fn call(&self, function: &str, traceparent: Option<&str>) -> String {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.servo.url);
        let request = self.client.post(url).json(&json!({"secret": SECRET})).bearer_auth(SECRET);
        let request = match traceparent {
            Some(trace) => request.header("traceparent", trace),
            None => request,
        };
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.text().await.expect("a body")
    }

    /// The spans of the trace, once this many have come.
    async fn trace(&self, count: usize) -> Vec<Span> {
        until("the spans of a trace", async || {
            let spans = self.collector.spans();
            let ours: Vec<Span> = spans.into_iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
            (ours.len() >= count).then_some(ours)
        })
        .await
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The only span of a name that has these attributes.
#[track_caller]
fn find<'a>(spans: &'a [Span], name: &str, wanted: &[(&str, &str)]) -> &'a Span {
    let has = |span: &Span| wanted.iter().all(|(name, value)| text(&span.attributes, name).as_deref() == Some(*value));
    let mut found = spans.iter().filter(|span| span.name == name && has(span));
    let (first, second) = (found.next(), found.next());
    assert!(first.is_some() && second.is_none(), "one {name} with {wanted:?} in {spans:#?}");
    first.expect("it was looked for")
}

/// A request, its run, the run that this one calls, and what each of them did: one tree, below the span of the caller. What is
/// told to a handler is the span of its invocation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_all_that_it_leads_to_are_one_tree() {
    let world = World::start(&[]).await;
    let result = world.call("outer", Some(&format!("00-{TRACE}-{CALLER}-01"))).await;
    assert!(result.contains(SECRET), "{result}");
    let told = world.handlers.told("outer");
    // Request, two starts, each invocation, one checkpoint, one timer.
    let spans = world.trace(5 + told.len() + 1).await;

    let request =
        find(&spans, "POST /2015-03-31/functions/{name}/invocations", &[("http.response.status_code", "200")]);
    assert_eq!(hex(&request.parent_span_id), CALLER);
    assert_eq!(text(&request.attributes, "servo.tenant").as_deref(), Some("default"));
    let outer = find(&spans, "start outer", &[("servo.tenant", "default"), ("servo.function", "outer")]);
    assert_eq!(outer.parent_span_id, request.span_id);
    let run = text(&outer.attributes, "servo.run.id").expect("a run");
    let first = find(&spans, "invoke outer", &[("servo.invocation", "1"), ("servo.invocation.outcome", "pending")]);
    let number = told.len().to_string();
    let last = [("servo.invocation", number.as_str()), ("servo.run.status", "COMPLETED"), ("servo.run.id", &run)];
    let last = find(&spans, "invoke outer", &last);
    assert_eq!([&first.parent_span_id, &last.parent_span_id], [&outer.span_id; 2]);
    assert_eq!(told[0], format!("00-{TRACE}-{}-01", hex(&first.span_id)));
    assert_eq!(*told.last().expect("it was called"), format!("00-{TRACE}-{}-01", hex(&last.span_id)));
    let checkpoint = find(&spans, "checkpoint", &[("servo.checkpoint.updates", "2"), ("servo.run.id", &run)]);
    assert_eq!(checkpoint.parent_span_id, first.span_id);
    let timer = find(&spans, "timer", &[("servo.run.id", &run)]);
    assert_eq!(timer.parent_span_id, outer.span_id);
    let inner = find(&spans, "start inner", &[("servo.run.parent", &run)]);
    assert_eq!(inner.parent_span_id, checkpoint.span_id);
    let invoked = find(&spans, "invoke inner", &[("servo.invocation.outcome", "succeeded")]);
    assert_eq!(invoked.parent_span_id, inner.span_id);
    assert_eq!(world.handlers.told("inner"), [format!("00-{TRACE}-{}-01", hex(&invoked.span_id))]);

    for span in &spans {
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    }
    assert!(world.collector.services().iter().all(|name| name == "servo-under-test"));
    assert!(world.collector.keys().iter().all(|key| key == "of the collector") && !world.collector.keys().is_empty());
    assert!(world.servo.stop().success());
}

/// A secret that comes with a request, passes through two runs and comes back in a result and in an error is in no byte
/// that is exported. The names beside it are, so they were looked for at the right place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_any_exported_byte() {
    let world = World::start(&[]).await;
    let caller = format!("00-{TRACE}-{CALLER}-01");
    world.call("outer", Some(&caller)).await;
    let failed = world.call("breaks", Some(&caller)).await;
    assert!(failed.contains(SECRET), "{failed}");
    let World { servo, collector, .. } = world;
    // What is left is sent before the server has ended.
    assert!(servo.stop().success());
    let spans = collector.spans();
    let broken = find(&spans, "invoke breaks", &[("error.type", "Broken"), ("servo.run.status", "FAILED")]);
    assert_eq!(broken.status.as_ref().map(|status| status.code), Some(2));
    assert!(collector.holds("invoke inner") && collector.holds("Broken"));
    assert!(!collector.holds(SECRET));
}

/// Nothing of a trace that its caller does not want is recorded, and handlers are told so. A trace that begins here is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_decides_what_is_recorded() {
    let world = World::start(&[]).await;
    world.call("inner", Some(&format!("00-{TRACE}-{CALLER}-00"))).await;
    world.call("inner", None).await;
    let told = world.handlers.told("inner");
    assert_eq!(told[0], format!("00-{TRACE}-{CALLER}-00"));
    assert!(told[1].ends_with("-01") && !told[1].contains(TRACE), "{told:?}");
    let World { servo, collector, .. } = world;
    assert!(servo.stop().success());
    let spans = collector.spans();
    assert!(spans.iter().all(|span| hex(&span.trace_id) != TRACE), "{spans:#?}");
    let start = find(&spans, "start inner", &[]);
    assert!(told[1].contains(&hex(&start.trace_id)));
}
