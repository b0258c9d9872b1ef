//! Handlers that are called: a POST of the payload to a URL that speaks Lambda's Invoke.
//!
//! One client for all, behind the egress guard, as a tenant chooses the URL and reads what it answers. It has no retries of its
//! own and follows no redirects: how often a handler is invoked is decided on the log.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use servo_adapter::{HandlerCall, HandlerFailure};
use servo_egress::{Allowed, Denied, Guard};

use crate::settings::ANSWER_BYTES_MAX;
use crate::{failure, trace};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// As many as a node has calls in flight by default: with fewer, a burst would open and close a connection for each call.
const IDLE_CONNECTIONS_PER_HOST: usize = 256;
const FUNCTION_ERROR: &str = "x-amz-function-error";

#[derive(Debug)]
pub(crate) struct Push {
    client: Client,
    guard: Guard,
}

impl Push {
    pub(crate) fn new(allowed: Allowed) -> reqwest::Result<Self> {
        let guard = Guard::new(allowed);
        let client = servo_egress::client(&guard)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .build()?;
        Ok(Self { client, guard })
    }

    /// Without a timeout: whoever calls has one.
    pub(crate) async fn call(&self, url: &str, call: Box<HandlerCall>) -> Result<String, HandlerFailure> {
        let url = Url::parse(url).map_err(|error| no_address(url, &error.to_string()))?;
        let url = completed(url, &call.function);
        let address = url.to_string();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(no_address(&address, "only http and https are called"));
        }
        self.guard.check_url(&url).map_err(|denied| not_allowed(&denied))?;
        let headers = headers(&call);
        let durable = call.spec.durable;
        let request = self.client.post(url).headers(headers).body(call.payload);
        let mut response = request.send().await.map_err(|error| broken(&address, error))?;
        let status = response.status();
        let function_error = response.headers().get(FUNCTION_ERROR).map(|value| {
            String::from_utf8_lossy(value.as_bytes()).into_owned() // the handler failed, and this says how
        });
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(&address, error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                let message = format!("{address} answered with more than {ANSWER_BYTES_MAX} bytes; let it answer less");
                return Err(failure::too_large(message));
            }
            body.extend_from_slice(&chunk);
        }
        answer(&address, status, function_error.as_deref(), body, durable)
    }
}

fn answer(
    address: &str,
    status: StatusCode,
    function_error: Option<&str>,
    body: Vec<u8>,
    durable: bool,
) -> Result<String, HandlerFailure> {
    if status == StatusCode::NOT_FOUND {
        let message =
            format!("{address} has no such function (status 404); correct the URL, or deploy the function there");
        return Err(HandlerFailure::unreachable(failure::NOT_FOUND, message));
    }
    if function_error.is_none() && turned_away(status, durable) {
        let message = format!("{address} answered with status {status}, and the function did not");
        return Err(HandlerFailure::unreached(failure::CONNECTION, message));
    }
    if status != StatusCode::OK {
        let message = format!("{address} answered with status {status}: {}", failure::excerpt(&body));
        return Err(HandlerFailure::crashed(failure::INVALID_RESPONSE, message));
    }
    if function_error.is_some() {
        return Err(failure::raised(&body, function_error));
    }
    let body = String::from_utf8(body).map_err(|_| {
        HandlerFailure::crashed(failure::INVALID_RESPONSE, format!("the answer of {address} is not UTF-8"))
    })?;
    if durable && failure::is_error_document(&body) {
        return Err(failure::crashed(failure::read(body.as_bytes(), None)));
    }
    Ok(body)
}

/// Whether something on the way to the function answered in its place. Behind a 502 or a 504 the function may have begun: a durable
/// one shows by its checkpoints if it did, a plain one must not run twice.
fn turned_away(status: StatusCode, durable: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => durable,
        _ => false,
    }
}

/// A URL whose path names the operation is taken as it is. What follows the path names nothing.
fn completed(mut url: Url, function: &str) -> Url {
    if !url.cannot_be_a_base() && !url.path().ends_with("/invocations") {
        let path = format!("{}/2015-03-31/functions/{function}/invocations", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    url
}

fn headers(call: &HandlerCall) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-amz-invocation-type", HeaderValue::from_static("RequestResponse"));
    headers.insert("x-dex-handler-invoke", HeaderValue::from_static("true"));
    let mut optional = |name: &'static str, value: Option<&str>| {
        // What cannot stand in a header came from a caller; the handler does without it. A tenant id was looked at before.
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    optional("lambda-runtime-aws-request-id", Some(&call.request_id));
    optional("x-amz-tenant-id", call.tenant_id.as_deref());
    optional("x-amz-client-context", call.client_context.as_deref());
    let trace = trace::headers(call.trace.as_deref());
    optional("traceparent", trace.traceparent.as_deref());
    optional("tracestate", trace.tracestate.as_deref());
    optional("x-amzn-trace-id", trace.amazon.as_deref());
    headers
}

fn no_address(address: &str, why: &str) -> HandlerFailure {
    HandlerFailure::unreachable(failure::INVALID_PARAMETER, format!("{address} is no address: {why}"))
}

/// It does not get better by itself.
fn not_allowed(denied: &Denied) -> HandlerFailure {
    HandlerFailure::unreachable(failure::ADDRESS, format!("the function was not called: {denied}"))
}

/// The causes tell about the network between here and there, which is the operator's: they are logged, and the run tells of
/// which kind they are. It may: an address that is nobody's business was refused before.
fn broken(address: &str, error: reqwest::Error) -> HandlerFailure {
    if let Some(denied) = Denied::of(&error) {
        return not_allowed(denied);
    }
    let error = error.without_url();
    let (nobody_there, timed_out) = (error.is_connect(), error.is_timeout());
    let (mut causes, mut kind) = (error.to_string(), None);
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        causes.push_str(": ");
        causes.push_str(&inner.to_string());
        kind = inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        cause = inner.source();
    }
    // Of every attempt, so it is no warning: who operates the server need not mind that one tenant's function is away.
    tracing::info!(address, causes, "a handler did not answer");
    if nobody_there {
        let why = if timed_out { "the connection timed out" } else { unreached_by(kind, &causes) };
        return HandlerFailure::unreached(failure::CONNECTION, format!("no answer from {address}: {why}"));
    }
    HandlerFailure::crashed(failure::CONNECTION, format!("no answer from {address}: the connection broke"))
}

/// Why there is no connection.
fn unreached_by(kind: Option<std::io::ErrorKind>, causes: &str) -> &'static str {
    use std::io::ErrorKind;
    match kind {
        Some(ErrorKind::ConnectionRefused) => "connection refused",
        Some(ErrorKind::TimedOut) => "the connection timed out",
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => "there is no way to its host",
        _ if causes.contains("certificate") => "its certificate is not trusted",
        _ if causes.contains("dns error") || causes.contains("lookup address") => "its name cannot be resolved",
        _ => "it cannot be reached",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_cause_is_told() {
        use std::io::ErrorKind;
        assert_eq!(unreached_by(Some(ErrorKind::ConnectionRefused), ""), "connection refused");
        let names = "error sending request: client error (Connect): dns error: failed to lookup address information";
        assert_eq!(unreached_by(Some(ErrorKind::Other), names), "its name cannot be resolved");
        assert_eq!(
            unreached_by(Some(ErrorKind::InvalidData), "invalid peer certificate: UnknownIssuer"),
            "its certificate is not trusted"
        );
        assert_eq!(unreached_by(None, "something else at 10.0.0.1"), "it cannot be reached");
    }

    #[test]
    fn a_url_is_completed_unless_it_is_complete() {
        let called = |url: &str| completed(Url::parse(url).unwrap(), "f").to_string();
        let emulator = "http://h:1/2015-03-31/functions/function/invocations";
        for (url, expected) in [
            ("http://h:1", "http://h:1/2015-03-31/functions/f/invocations"),
            ("http://h:1/base/", "http://h:1/base/2015-03-31/functions/f/invocations"),
            ("http://h:1/base?key=1", "http://h:1/base/2015-03-31/functions/f/invocations?key=1"),
            ("http://h:1/a?x=/invocations", "http://h:1/a/2015-03-31/functions/f/invocations?x=/invocations"),
            ("http://h:1/a#/invocations", "http://h:1/a/2015-03-31/functions/f/invocations#/invocations"),
            ("http://h:1/a%2finvocations", "http://h:1/a%2finvocations/2015-03-31/functions/f/invocations"),
            (emulator, emulator),
            (&format!("{emulator}?key=1"), &format!("{emulator}?key=1")),
        ] {
            assert_eq!(called(url), expected, "{url}");
        }
    }
}
