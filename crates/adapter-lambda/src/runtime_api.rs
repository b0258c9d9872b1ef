//! The Runtime API of Lambda, as workers see it: next, response, error, and an error before the first of them.
//!
//! A request names no function, so each function has addresses of its own. Streamed answers are read to their end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use servo_adapter::HandlerFailure;
use servo_ingress::{Ask, Listener, Pages, Sent, decide};
use servo_model::TenantId;
use servo_sched::Held;

use crate::listener::Connection;
use crate::port::PortId;
use crate::pull::{Answer, Handed, Hub};
use crate::settings::ANSWER_BYTES_MAX;
use crate::{failure, trace};

/// A body over the limit is read so far, so that its sender hears why it is refused instead of losing the connection.
const READ_BYTES_MAX: usize = 4 * ANSWER_BYTES_MAX;
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
const ERROR_TYPE: &str = "lambda-runtime-function-error-type";
/// What calls of functions by push carry, and no worker: whoever registers a function chooses where it is called.
const OF_CALLS: [&str; 3] = ["x-dex-handler-invoke", "x-amz-invocation-type", "lambda-runtime-aws-request-id"];

#[derive(Clone)]
struct Api {
    hub: Arc<Hub>,
    port: PortId,
}

pub(crate) fn router(hub: Arc<Hub>, port: PortId) -> Router {
    let api = Api { hub, port };
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
        .layer(from_fn_with_state(api.clone(), around))
        .with_state(api)
}

/// Around every request: whether it can be a worker's, and whether there is a place for it.
async fn around(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Some(connection) = request.extensions().get::<Arc<Connection>>().cloned() else { return broken() };
    let exchange = connection.begin();
    let response = if !is_workers(&api, &connection, &request) {
        let message = "only workers ask here, by the address that they were given; pages and calls of functions do not";
        problem(StatusCode::FORBIDDEN, "AccessDenied", message)
    } else if connection.is_beyond() {
        busy("too many connections are open")
    } else {
        next.run(request).await
    };
    if connection.is_beyond() {
        connection.end();
    }
    response.map(|body| Body::new(Sent::new(body, exchange)))
}

/// Workers show no credentials, so what they cannot be is looked at: pages in browsers, and functions that are called.
fn is_workers(api: &Api, connection: &Connection, request: &Request) -> bool {
    let headers = request.headers();
    let listener = Listener {
        address: connection.local,
        loopback: connection.local.is_some_and(|address| address.is_loopback()),
        keyless: true,
        hosts: api.hub.settings.hosts.clone(),
        pages: Pages::None,
    };
    let (method, uri, version) = (request.method(), request.uri(), request.version());
    let ask = Ask { method, uri, version, headers, is_page: false };
    decide(&listener, &ask).is_ok() && !OF_CALLS.iter().any(|name| headers.contains_key(*name))
}

/// Waits as long as the worker does.
async fn next(State(api): State<Api>, Extension(connection): Extension<Arc<Connection>>) -> Response {
    connection.works(false);
    let Handed { call, deadline } = api.hub.next(api.port, Some(connection.id)).await;
    connection.works(true);
    let mut response = Response::new(Body::from(call.payload));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut set = |name: &'static str, value: Option<&str>| {
        // The request id was checked when the call came; a worker can do without the others.
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    set("lambda-runtime-aws-request-id", Some(&call.request_id));
    set("lambda-runtime-deadline-ms", Some(&deadline.as_millis().to_string()));
    set("lambda-runtime-invoked-function-arn", Some(&call.function_arn));
    let trace = trace::headers(call.trace.as_deref());
    set("traceparent", trace.traceparent.as_deref());
    set("tracestate", trace.tracestate.as_deref());
    set("lambda-runtime-trace-id", trace.amazon.as_deref());
    set("lambda-runtime-aws-tenant-id", call.tenant_id.as_deref());
    set("lambda-runtime-client-context", call.client_context.as_deref().and_then(plain_json).as_deref());
    response
}

/// Runtimes read the client context as JSON. In a header it is ASCII and one line; JSON can say all of it so.
fn plain_json(base64: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(base64).ok()?).ok()?;
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Between the parts of a document: inside of texts they are escaped already.
            '\n' | '\r' | '\t' => plain.push(' '),
            ' '..='~' => plain.push(character),
            other => {
                let mut units = [0; 2];
                plain.extend(other.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    Some(plain)
}

async fn response(
    State(api): State<Api>,
    Extension(connection): Extension<Arc<Connection>>,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    connection.works(false);
    match read(&api, body).await {
        Ok((body, _room)) => {
            let answer = String::from_utf8(body)
                .map_err(|_| HandlerFailure::crashed(failure::INVALID_RESPONSE, "the answer is not UTF-8"));
            report(&api, &id, answer).await
        }
        Err(unread) => refuse(&api, &id, unread),
    }
}

async fn error(
    State(api): State<Api>,
    Extension(connection): Extension<Arc<Connection>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    connection.works(false);
    match read(&api, body).await {
        Ok((body, _room)) => report(&api, &id, Err(failure::raised(&body, error_type(&headers)))).await,
        Err(unread) => refuse(&api, &id, unread),
    }
}

async fn init_error(State(api): State<Api>, headers: HeaderMap, body: Body) -> Response {
    let (body, _room) = match read(&api, body).await {
        Ok(read) => read,
        Err(Unread::TooLarge) => return too_large(),
        Err(Unread::Broken) => return broken(),
        Err(Unread::Busy) => return busy(BODIES),
    };
    let error = failure::clipped(failure::read(&body, error_type(&headers)));
    tracing::warn!(function = api.hub.function, "a worker could not begin; the calls that wait for it say why");
    // It is whatever the worker sent: it may hold what only its calls should.
    tracing::debug!(
        function = api.hub.function,
        error_type = error.error_type.as_deref(),
        error_message = error.error_message.as_deref(),
        "what a worker said that could not begin"
    );
    api.hub.init_failed(&failure::crashed(error));
    accepted()
}

async fn not_found() -> Response {
    problem(StatusCode::NOT_FOUND, "NotFound", "the Runtime API has next, response, error and init/error")
}

async fn report(api: &Api, id: &str, answer: Answer) -> Response {
    let wanted = api.hub.answer(api.port, id, answer);
    // Before the worker goes on: what it writes from then on belongs to its next call.
    api.hub.drained(api.port).await;
    if wanted { accepted() } else { unknown() }
}

fn refuse(api: &Api, id: &str, unread: Unread) -> Response {
    match unread {
        Unread::Broken => broken(),
        Unread::Busy => busy(BODIES),
        Unread::TooLarge => {
            let message = format!("the answer has more than {ANSWER_BYTES_MAX} bytes; let the handler answer less");
            if api.hub.answer(api.port, id, Err(failure::too_large(message))) { too_large() } else { unknown() }
        }
    }
}

#[derive(Clone, Copy)]
enum Unread {
    TooLarge,
    Broken,
    /// There is no room for it.
    Busy,
}

const BODIES: &str = "too many large answers are being read";

/// A whole body, with the room that it takes.
async fn read(api: &Api, body: Body) -> Result<(Vec<u8>, Held<TenantId>), Unread> {
    let mut room = api.hub.bodies.take(&api.hub.tenant, 0).map_err(|_| Unread::Busy)?;
    let whole = async {
        let mut stream = body.into_data_stream();
        let (mut bytes, mut length) = (Vec::new(), 0_usize);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Unread::Broken)?;
            length += chunk.len();
            if length > READ_BYTES_MAX {
                return Err(Unread::TooLarge);
            }
            if length > ANSWER_BYTES_MAX {
                bytes = Vec::new();
                room.shrink(ANSWER_BYTES_MAX);
            } else {
                room.grow(chunk.len()).map_err(|_| Unread::Busy)?;
                bytes.extend_from_slice(&chunk);
            }
        }
        if length > ANSWER_BYTES_MAX { Err(Unread::TooLarge) } else { Ok((bytes, room)) }
    };
    tokio::time::timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(Unread::Broken))
}

fn error_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(ERROR_TYPE).and_then(|value| value.to_str().ok())
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, Json(serde_json::json!({ "status": "OK" }))).into_response()
}

fn unknown() -> Response {
    let message = "no invocation with this id is under way; it was answered already, stopped, or took too long";
    problem(StatusCode::BAD_REQUEST, "InvalidRequestID", message)
}

fn too_large() -> Response {
    let message = format!("a body has at most {ANSWER_BYTES_MAX} bytes");
    problem(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
}

fn busy(what: &str) -> Response {
    let mut response = problem(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", what);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn broken() -> Response {
    problem(StatusCode::BAD_REQUEST, "InvalidBody", "the body ended early or took too long; send it again")
}

fn problem(status: StatusCode, error_type: &str, message: &str) -> Response {
    (status, Json(serde_json::json!({ "errorType": error_type, "errorMessage": message }))).into_response()
}
