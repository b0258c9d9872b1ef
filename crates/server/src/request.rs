//! Around every request: its ids, the limit on how many at once, panics, and the one place where problems are written.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use servo_entrypoint::RuntimeErrorPayload;
use servo_ingress::{Ask, Listener, Sent};
use servo_model::{TenantId, TraceContext, codes, trace};
use servo_runtime::{OpenSpan, SpanKind};

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::failures::{self, Written};
use crate::link::{Asking, Exchange, Link};
use crate::rooms::Seat;
use crate::routes::lambda;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const AMAZON_REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const CORRELATION_CHARS_MAX: usize = 128;

/// The address that a connection came from. Headers that name another one are anybody's to write, and are not believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub std::net::IpAddr);

/// What a request is called in logs and answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestInfo {
    pub request_id: String,
    /// The caller's, if it sent a plain one, else the request id.
    pub correlation_id: String,
    /// Where it stands in a trace.
    pub trace: Option<TraceContext>,
    /// What the caller's `tracestate` says besides; without a `traceparent` it means nothing.
    pub trace_state: Option<String>,
}

/// Learns whose request it is, for its span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose(Arc<OnceLock<TenantId>>);

impl Whose {
    pub(crate) fn is(&self, tenant: &TenantId) {
        let _ = self.0.set(tenant.clone());
    }
}

/// Put into an answer that nothing was done for: a dry run, a result that was kept. Such a request leaves no span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untraced;

impl RequestInfo {
    /// What a caller finds the request by: the trace that it is part of, or its own id where there is none.
    pub(crate) fn trace_id(&self) -> String {
        self.trace.map_or_else(|| self.request_id.clone(), TraceContext::trace_id)
    }

    fn new(app: &App, headers: &HeaderMap) -> Self {
        let engine = app.runtime.engine();
        let request_id = engine.ids().event_id(engine.clock().now()).to_string();
        let given = headers.get(&CORRELATION_ID).and_then(|value| value.to_str().ok());
        let correlation_id = given.filter(|text| is_plain(text)).unwrap_or(&request_id).to_owned();
        let (trace, trace_state) = caller_of(headers);
        Self { request_id, correlation_id, trace, trace_state }
    }
}

/// The span that a request comes from, in either spelling.
fn caller_of(headers: &HeaderMap) -> (Option<TraceContext>, Option<String>) {
    let read = |name: &str| headers.get(name).and_then(|value| TraceContext::parse(value.to_str().ok()?));
    match read("traceparent") {
        Some(caller) => {
            let states = headers.get_all("tracestate").iter().filter_map(|value| value.to_str().ok());
            (Some(caller), trace::state_from(states))
        }
        None => (read("x-amzn-trace-id"), None),
    }
}

/// What has no span of its own: probes and files, and the calls of handlers, whose spans the runtime makes below their
/// invocation's.
fn is_passed_over(route: &str) -> bool {
    const ROUTES: [&str; 8] =
        ["none", "/", "/livez", "/readyz", "/metrics", "/version", "/openapi.json", servo_wire::channel::PATH];
    let handler = |end: &str| route.starts_with("/2025-12-01/durable-executions/") && route.ends_with(end);
    ROUTES.contains(&route) || route.starts_with("/console") || handler("/checkpoint") || handler("/state")
}

/// The request's span, if it has one. Its address and query are left out: some hold ids that are credentials.
fn span_of(app: &App, request: &mut Request, info: &mut RequestInfo, route: &str) -> Option<(OpenSpan, Whose)> {
    let engine = app.runtime.engine();
    if engine.spans().is_none() || is_passed_over(route) {
        return None;
    }
    let name = format!("{} {route}", request.method());
    let (trace, span) = engine.entry_span(info.trace, &name, SpanKind::Server);
    info.trace = trace;
    let mut span = span?;
    span.set("http.request.method", request.method().as_str());
    span.set("http.route", route);
    span.set("servo.request.id", info.request_id.as_str());
    span.set("servo.correlation_id", info.correlation_id.as_str());
    let whose = Whose::default();
    request.extensions_mut().insert(whose.clone());
    Some((span, whose))
}

fn note_answer((mut span, whose): (OpenSpan, Whose), status: u16) {
    span.set("http.response.status_code", i64::from(status));
    if let Some(tenant) = whose.0.get() {
        span.set("servo.tenant", tenant.as_str());
    }
    if status >= 500 {
        span.fail(&status.to_string());
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=CORRELATION_CHARS_MAX).contains(&text.len()) && text.bytes().all(plain)
}

/// The layer around every route.
pub(crate) async fn around(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let mut info = RequestInfo::new(&app, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let span = span_of(&app, &mut request, &mut info, route);
    let info = Arc::new(info);
    request.extensions_mut().insert(info.clone());
    let version = request.version();
    let link = request.extensions().get::<Arc<Link>>().cloned();
    let (answer, exchange) = admitted(&app, link.as_ref(), route, request, next).await;
    let mut response = finish(answer, &info, uri.path());
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    put(headers, REQUEST_ID, &info.request_id);
    if lambda::owns(uri.path()) {
        // Under this name AWS's clients look for it, also to tell it to people.
        put(headers, AMAZON_REQUEST_ID, &info.request_id);
    }
    put(headers, CORRELATION_ID, &info.correlation_id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    match span {
        Some((span, _)) if response.extensions().get::<Untraced>().is_some() => span.discard(),
        Some(span) => note_answer(span, status),
        None => {}
    }
    crate::metrics::request(method.as_str(), route, status, started.elapsed());
    if tracing::enabled!(tracing::Level::DEBUG) {
        let (request_id, correlation_id, trace_id) = (&info.request_id, &info.correlation_id, info.trace_id());
        tracing::debug!(%request_id, %correlation_id, %trace_id, %method, path = uri.path(), status, "answered");
    }
    if let Some(link) = link.filter(|link| link.is_beyond()) {
        // Its place is wanted by the next one.
        link.ending.tell();
        if version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    match exchange {
        Some(exchange) => response.map(|body| Body::new(Sent::new(body, exchange))),
        None => response,
    }
}

/// What is answered to machines that watch, however many connections there are.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// The answer to a request that may come in; with it, what lasts until it has been sent.
async fn admitted(
    app: &App,
    link: Option<&Arc<Link>>,
    route: &str,
    mut request: Request,
    next: Next,
) -> (Response, Option<Arc<Exchange>>) {
    if let Err(refused) = guard(app, link, route, &request) {
        let exchange = link.cloned().map(Exchange::begin);
        // Through the audit log, where attacks are looked for.
        request.extensions_mut().insert(TurnedAway(refused));
        return (crate::audit::watch(app, request, next).await, exchange);
    }
    let Some(link) = link else { return (crate::audit::watch(app, request, next).await, None) };
    let asking = Asking::of(request.headers());
    let has_place = !link.is_beyond() || PROBES.contains(&route);
    // A connection that was told to come back and did not wait waits now, outside of all rooms.
    let has_waited = has_place && link.pause(asking).await;
    let exchange = Exchange::begin(link.clone());
    if !has_waited {
        let busy = ApiError::busy("too many connections are open");
        return (said(busy, request.uri().path()), Some(exchange));
    }
    request.extensions_mut().insert(exchange.clone());
    let response = crate::audit::watch(app, request, next).await;
    link.note(asking, retry_after(&response));
    (response, Some(exchange))
}

/// When to come back, if the request was one too many.
fn retry_after(response: &Response) -> Option<Duration> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let said = response.extensions().get::<ApiError>().and_then(|error| error.retry_after);
    let header = || response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok();
    said.or_else(header).or(Some(1)).map(Duration::from_secs)
}

/// Whether the request may come from where it says it comes from.
fn guard(app: &App, link: Option<&Arc<Link>>, route: &str, request: &Request) -> Answer<()> {
    let address = link.and_then(|link| link.local);
    let listener = Listener { address, ..app.listener.clone() };
    let ask = Ask {
        method: request.method(),
        uri: request.uri(),
        version: request.version(),
        headers: request.headers(),
        is_page: is_page(route, request.uri().path()),
    };
    servo_ingress::decide(&listener, &ask).map_err(|refused| ApiError::forbidden(refused.reason()))
}

/// What people open by a link: the front and the console's views, not its files.
fn is_page(route: &str, path: &str) -> bool {
    route == "/" || (route.starts_with("/console") && !path.starts_with("/console/assets/"))
}

/// A refusal in the words of the API that was asked.
pub(crate) fn said(error: ApiError, path: &str) -> Response {
    if lambda::owns(path) { lambda::refused(error) } else { error.into_response() }
}

fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Around routes of which so many requests are answered at a time: each takes its place when it is known whose it is.
pub(crate) async fn limit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Seat::limited(&app.rooms.requests));
    next.run(request).await
}

/// Why a request is not handed to its handler.
#[derive(Debug, Clone)]
struct TurnedAway(ApiError);

/// What the handler answers. If it panics, the panic hook has told the log what and where.
pub(crate) async fn answered(mut request: Request, next: Next) -> Response {
    if let Some(TurnedAway(refused)) = request.extensions_mut().remove() {
        return said(refused, request.uri().path());
    }
    let panicked = |_| ApiError::new(codes::INTERNAL).cause("a handler panicked").into_response();
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(panicked)
}

/// Writes the problem of a refused request. Refusals of the framework itself get the same form.
fn finish(mut response: Response, info: &RequestInfo, path: &str) -> Response {
    let failure = response.extensions_mut().remove::<RuntimeErrorPayload>();
    let error = match response.extensions_mut().remove::<ApiError>() {
        Some(error) => error,
        None if failure.is_none() && is_answered(&response) => return response,
        None => of_status(response.status()),
    };
    if response.status().is_server_error() {
        let cause = error.cause.as_deref().unwrap_or("unknown");
        let (request_id, correlation_id, trace_id) = (&info.request_id, &info.correlation_id, info.trace_id());
        let code = &error.problem.code;
        tracing::error!(%request_id, %correlation_id, %trace_id, %code, path, cause, "request failed");
    }
    let Written { status, body, retry_after } =
        if failures::covers(path) { failures::write(failure, &error, info, path) } else { write(error, info, path) };
    let allow = response.headers_mut().remove(ALLOW);
    let mut answer = (status, Body::from(body)).into_response();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(servo_wire::problem::CONTENT_TYPE));
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(allow) = allow {
        headers.insert(ALLOW, allow);
    }
    answer
}

fn write(error: ApiError, info: &RequestInfo, path: &str) -> Written {
    let mut problem = *error.problem;
    problem.instance = Some(path.to_owned());
    problem.request_id = Some(info.request_id.clone());
    problem.retry_after = error.retry_after.filter(|_| problem.status < 500);
    let body = serde_json::to_string(&problem).expect("a problem of strings and numbers serialises");
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Written { status, body, retry_after: error.retry_after }
}

/// A success, or a no that a handler has written itself (`/readyz`).
fn is_answered(response: &Response) -> bool {
    let json = || response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    response.status().as_u16() < 400 || json()
}

fn of_status(status: StatusCode) -> ApiError {
    ApiError::new(match status {
        StatusCode::NOT_FOUND => codes::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED => codes::METHOD_NOT_ALLOWED,
        StatusCode::PAYLOAD_TOO_LARGE => codes::LIMIT_EXCEEDED,
        status if status.is_client_error() => codes::INVALID_PARAMETER,
        _ => codes::INTERNAL,
    })
}
