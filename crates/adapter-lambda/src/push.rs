//! Handlers that are called: a POST of the payload to a URL that speaks Lambda's Invoke.
//!
//! One client for all, without retries of its own and without redirects: how often a handler is invoked is decided on the
//! log.

use std::sync::Once;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use servo_adapter::{HandlerCall, HandlerFailure};

use crate::settings::ANSWER_BYTES_MAX;
use crate::{failure, trace};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// As many as a node has calls in flight by default: with fewer, a burst would open and close a connection for each call.
const IDLE_CONNECTIONS_PER_HOST: usize = 256;
const FUNCTION_ERROR: &str = "x-amz-function-error";

#[derive(Debug)]
pub(crate) struct Push {
    client: Client,
}

impl Push {
    pub(crate) fn new() -> reqwest::Result<Self> {
        static PROVIDER: Once = Once::new();
        // The client takes its cryptography from the process's default. Somebody else may have set one; theirs is fine.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .user_agent(concat!("servo/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client })
    }

    /// Without a timeout: whoever calls has one.
    pub(crate) async fn call(&self, url: &str, call: Box<HandlerCall>) -> Result<String, HandlerFailure> {
        let address = address(url, &call.function);
        let headers = headers(&call);
        let durable = call.spec.durable;
        let request = self.client.post(&address).headers(headers).body(call.payload);
        let mut response = request.send().await.map_err(|error| broken(&address, error))?;
        let status = response.status();
        let function_error = response.headers().get(FUNCTION_ERROR).map(|value| {
            String::from_utf8_lossy(value.as_bytes()).into_owned() // the handler failed, and this says how
        });
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(&address, error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                let message = format!("{address} answered with more than {ANSWER_BYTES_MAX} bytes; let it answer less");
                return Err(HandlerFailure::crashed(failure::RESPONSE_TOO_LARGE, message));
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
        return Err(failure::crashed(failure::read(&body, function_error)));
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

fn address(url: &str, function: &str) -> String {
    if url.ends_with("/invocations") {
        return url.to_owned();
    }
    format!("{}/2015-03-31/functions/{function}/invocations", url.trim_end_matches('/'))
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

fn broken(address: &str, error: reqwest::Error) -> HandlerFailure {
    // The chain of causes says "connection refused" or the like; the outermost only that something failed.
    let mut message = format!("no answer from {address}");
    let error = error.without_url();
    let nobody_there = error.is_connect();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    if nobody_there {
        return HandlerFailure::unreached(failure::CONNECTION, message);
    }
    HandlerFailure::crashed(failure::CONNECTION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_completed_unless_it_is_complete() {
        assert_eq!(address("http://h:1", "f"), "http://h:1/2015-03-31/functions/f/invocations");
        assert_eq!(address("http://h:1/base/", "f"), "http://h:1/base/2015-03-31/functions/f/invocations");
        let emulator = "http://h:1/2015-03-31/functions/function/invocations";
        assert_eq!(address(emulator, "f"), emulator);
    }
}
