//! A collector: takes what OTLP over HTTP sends, and keeps it as it came and as it reads.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

#[derive(Debug, Clone, Default)]
pub(super) struct Collector {
    pub(super) url: String,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    services: Vec<String>,
    keys: Vec<String>,
}

impl Collector {
    /// Serves it for as long as the test runs.
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let collector = Self { url, ..Self::default() };
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        collector
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        self.taken.lock().expect("nobody panics with it").spans.clone()
    }

    pub(super) fn services(&self) -> Vec<String> {
        self.taken.lock().expect("nobody panics with it").services.clone()
    }

    /// What came in the header that the exporter was told to send.
    pub(super) fn keys(&self) -> Vec<String> {
        self.taken.lock().expect("nobody panics with it").keys.clone()
    }

    /// Whether these bytes have come, in whatever field.
    pub(super) fn holds(&self, text: &str) -> bool {
        let taken = self.taken.lock().expect("nobody panics with it");
        taken.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> (StatusCode, Vec<u8>) {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else {
        return (StatusCode::BAD_REQUEST, Vec::new());
    };
    let mut taken = collector.taken.lock().expect("nobody panics with it");
    taken.bytes.extend_from_slice(&body);
    taken.keys.extend(headers.get("x-key").map(|key| key.to_str().expect("text").to_owned()));
    for resource in request.resource_spans {
        taken.services.extend(text(&resource.resource.expect("a resource").attributes, "service.name"));
        taken.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    (StatusCode::OK, Vec::new())
}

pub(super) fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}
