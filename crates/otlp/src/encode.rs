//! Spans in the messages of OTLP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as proto;
use proto::span::SpanKind as Kind;
use proto::status::StatusCode;
use proto::{ResourceSpans, ScopeSpans, Status};
use servo_runtime::spans::Value;
use servo_runtime::{Span, SpanKind};

use crate::settings::Settings;

/// The name under which collectors see what made the spans.
const SCOPE: &str = "servo";

/// What is said about this process with every batch.
pub(crate) fn resource(settings: &Settings, instance: &str) -> Resource {
    let own = [
        ("service.name", settings.service_name.as_str()),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", instance),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.name", SCOPE),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    // What somebody has said about the service goes before what it says of itself.
    let said = settings.resource.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = own.into_iter().filter(|(name, _)| !settings.resource.iter().any(|(said, _)| said == name));
    let attributes = said.chain(own).map(|(name, value)| pair(name, Any::StringValue(value.to_owned())));
    Resource { attributes: attributes.collect(), ..Resource::default() }
}

pub(crate) fn request(resource: &Resource, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = spans.into_iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource_spans = ResourceSpans { resource: Some(resource.clone()), scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn span(span: Span) -> proto::Span {
    let kind = match span.kind {
        SpanKind::Internal => Kind::Internal,
        SpanKind::Server => Kind::Server,
        SpanKind::Client => Kind::Client,
        SpanKind::Producer => Kind::Producer,
    };
    let status = span.failed.then(|| Status { code: StatusCode::Error.into(), ..Status::default() });
    proto::Span {
        trace_id: span.context.trace().to_be_bytes().to_vec(),
        span_id: span.context.span().to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        name: span.name,
        kind: kind.into(),
        start_time_unix_nano: span.began_at,
        end_time_unix_nano: span.ended_at,
        attributes: span.attributes.into_iter().map(|(name, value)| pair(name, any(value))).collect(),
        status,
        flags: u32::from(span.context.is_sampled()),
        ..proto::Span::default()
    }
}

fn any(value: Value) -> Any {
    match value {
        Value::Text(text) => Any::StringValue(text),
        Value::Number(number) => Any::IntValue(number),
        Value::Flag(flag) => Any::BoolValue(flag),
    }
}

fn pair(name: &str, value: Any) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
