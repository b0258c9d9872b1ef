//! The client of a Servo server, of AWS Lambda, or of anything else that serves the durable execution API. Requests carry an
//! API key, or a signature, or nothing.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::de::DeserializeOwned;
use servo_canon::Digest;
use servo_wire::channel;
use servo_wire::lambda::{
    CheckpointRequest, CheckpointResponse, ErrorBody, GetStateResponse, Operation, OperationUpdate,
};
use servo_wire::sigv4::{Request, encode};
use tokio::sync::Mutex;

use crate::channel::{Answer, Channel, Known};
use crate::clock::{Clock as _, SystemClock};
use crate::environment::{ENDPOINT_VARIABLES, Environment};
use crate::service::{DurableServiceClient, ServiceError};
use crate::sigv4::{self, AwsCredentials};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer that is read into memory. A page of the state has some megabytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The beginning of a refusal that is not in the service's form.
const EXCERPT_CHARS: usize = 200;
const API: &str = "2025-12-01";
/// Channels of one client. Each is served by one task on either side, so that a few of them use a few cores; with more, fewer
/// calls share a write.
const CHANNELS: usize = 4;

const SERVICE: &str = "lambda";

/// Clones share connections.
#[derive(Debug, Clone)]
pub struct ServoClient {
    http: reqwest::Client,
    base: Url,
    keys: Option<AwsCredentials>,
    channels: Arc<[Mutex<Known>; CHANNELS]>,
}

impl ServoClient {
    /// Signs every request, as AWS asks for.
    pub fn signed(endpoint: &str, keys: AwsCredentials) -> Result<Self, ServiceError> {
        Ok(Self { keys: Some(keys), ..Self::new(endpoint, None)? })
    }

    /// `token` is an API key of the server; a development server asks for none.
    pub fn new(endpoint: &str, token: Option<&str>) -> Result<Self, ServiceError> {
        let base = address(endpoint)?;
        let mut headers = header::HeaderMap::new();
        if let Some(token) = token {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| unusable(endpoint, "the token has characters that a header cannot carry"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let http = connections(base.scheme() == "http").default_headers(headers);
        let http = http.build().map_err(|error| unusable(endpoint, error))?;
        Ok(Self { http, base, keys: None, channels: Arc::default() })
    }

    /// By the variables that also configure AWS's own SDKs: `AWS_ENDPOINT_URL_LAMBDA` or `AWS_ENDPOINT_URL`, else
    /// `SERVO_URL`. With `SERVO_TOKEN` requests carry it; else they are signed when `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and `AWS_REGION` are set, and then the address may be left out: it is AWS's own.
    pub fn from_env() -> Result<Self, ServiceError> {
        let Environment { endpoint, token, keys } = Environment::read();
        let keys = keys.filter(|_| token.is_none());
        match (endpoint, keys) {
            (Some(endpoint), None) => Self::new(&endpoint, token.as_deref()),
            (Some(endpoint), Some(keys)) => Self::signed(&endpoint, keys),
            (None, Some(keys)) => Self::signed(&format!("https://lambda.{}.amazonaws.com", keys.region), keys),
            (None, None) => {
                let names = ENDPOINT_VARIABLES.join(", ");
                Err(ServiceError::Unreachable(format!("no address is set; set one of {names}")))
            }
        }
    }

    /// The server's address.
    pub fn endpoint(&self) -> &str {
        self.base.as_str()
    }

    /// The way for calls that need no connection of their own: `None` where every call is a request. Signed requests are, because
    /// their signature covers their body.
    async fn channel(&self, arn: &str) -> Result<Option<Channel>, ServiceError> {
        if self.keys.is_some() {
            return Ok(None);
        }
        // The ends of ARNs are as good as random.
        let which = arn.bytes().next_back().map_or(0, usize::from) % CHANNELS;
        let mut known = self.channels[which].lock().await;
        match &*known {
            Known::Absent => return Ok(None),
            Known::Open(channel) if channel.is_open() => return Ok(Some(channel.clone())),
            Known::Open(_) | Known::Nothing => {}
        }
        let mut url = self.base.clone();
        url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), channel::PATH));
        *known = Channel::open(self.http.post(url), ANSWER_BYTES_MAX).await?;
        Ok(match &*known {
            Known::Open(channel) => Some(channel.clone()),
            Known::Nothing | Known::Absent => None,
        })
    }

    /// A request for one call. The ARN is one segment of the path: its slashes are encoded.
    fn request(
        &self,
        method: &Method,
        (arn, call): (&str, &str),
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{API}/durable-executions/{}/{call}", encode(arn.as_bytes(), false)));
        let encoded = query.iter().map(|(name, value)| format!("{name}={}", encode(value.as_bytes(), false)));
        let encoded = encoded.collect::<Vec<_>>().join("&");
        url.set_query((!encoded.is_empty()).then_some(encoded.as_str()));
        let mut request = self.http.request(method.clone(), url.clone()).timeout(ANSWER_TIMEOUT);
        let body = body.unwrap_or_default();
        if let Some(keys) = &self.keys {
            for (name, value) in sign(keys, method.as_str(), &url, query, &body) {
                request = request.header(name, value);
            }
        }
        if body.is_empty() { request } else { request.header(header::CONTENT_TYPE, JSON).body(body) }
    }
}

const JSON: &str = "application/json";

/// An address that requests can be sent to.
pub(crate) fn address(endpoint: &str) -> Result<Url, ServiceError> {
    let base = Url::parse(endpoint).map_err(|error| unusable(endpoint, error))?;
    if base.cannot_be_a_base() || base.host_str().is_none() {
        return Err(unusable(endpoint, "give an address such as http://127.0.0.1:4400"));
    }
    Ok(base)
}

fn unusable(endpoint: &str, reason: impl Display) -> ServiceError {
    ServiceError::Unreachable(format!("{endpoint:?} cannot be used: {reason}"))
}

/// Connections to a service, `plain` ones without TLS.
pub(crate) fn connections(plain: bool) -> reqwest::ClientBuilder {
    // Fails when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("servo-sdk/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would carry the key elsewhere.
        .redirect(reqwest::redirect::Policy::none());
    // Without TLS the system's certificates need not be there, nor be read.
    if plain { builder.tls_certs_only([]).no_proxy() } else { builder }
}

/// The headers of a signed request.
fn sign(
    keys: &AwsCredentials,
    method: &str,
    url: &Url,
    query: &[(&str, &str)],
    body: &[u8],
) -> Vec<(&'static str, String)> {
    // 2026-02-11T10:30:00.000Z without what AWS leaves out.
    let time = SystemClock.now().to_string();
    let time: String = time.chars().take(19).filter(|digit| !matches!(digit, '-' | ':')).chain(['Z']).collect();
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let mut headers = vec![("host", host), ("x-amz-date", time.clone())];
    if !body.is_empty() {
        headers.insert(0, ("content-type", JSON.to_owned()));
    }
    if let Some(token) = &keys.session_token {
        headers.push(("x-amz-security-token", token.clone()));
    }
    let query = query.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let request = Request { method, path: url.path(), query, headers, payload: Digest::of(body).to_string() };
    let mut signed = vec![("authorization", sigv4::authorization(keys, SERVICE, &time, &request))];
    signed.extend(keys.session_token.clone().map(|token| ("x-amz-security-token", token)));
    signed.push(("x-amz-date", time));
    signed
}

#[async_trait]
impl DurableServiceClient for ServoClient {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        let body = serde_json::to_vec(&request).map_err(|error| ServiceError::Unreadable(error.to_string()))?;
        if let Some(channel) = self.channel(arn).await? {
            let mut response = read(channel.call(arn, &body).await?)?;
            complete(&mut response, request.updates.unwrap_or_default());
            return Ok(response);
        }
        answer(self.request(&Method::POST, (arn, "checkpoint"), &[], Some(body)).send().await).await
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        let query = [("CheckpointToken", token), ("Marker", marker)];
        answer(self.request(&Method::GET, (arn, "state"), &query, None).send().await).await
    }
}

/// Adds what the service has left out of its answer, because it was said by the call. Without a token the answer says that
/// the execution is over, and perhaps nothing was recorded.
fn complete(response: &mut CheckpointResponse, updates: Vec<OperationUpdate>) {
    if response.checkpoint_token.is_none() {
        return;
    }
    let operations = &mut response.new_execution_state.operations;
    let (told, now) = (operations.len(), SystemClock.now());
    for update in updates {
        if !operations[..told].iter().any(|operation| operation.id == update.id) {
            operations.extend(Operation::said_by(update, now.into()));
        }
    }
}

async fn answer<T: DeserializeOwned>(response: reqwest::Result<Response>) -> Result<T, ServiceError> {
    let mut response = response.map_err(|error| unreachable(&error))?;
    let (status, body) = (response.status(), body(&mut response).await?);
    let name = response.headers().get(ERROR_TYPE).and_then(|name| name.to_str().ok());
    read(Answer { status: status.as_u16(), name: name_of(name, status), body })
}

pub(crate) const ERROR_TYPE: &str = "x-amzn-errortype";

/// The name of a refusal: the service's, or the status's where somebody else has answered.
pub(crate) fn name_of(said: Option<&str>, status: StatusCode) -> String {
    // Some services put an address behind the name.
    let said = said.and_then(|said| said.split(':').next());
    said.or(status.canonical_reason()).unwrap_or("Unknown").to_owned()
}

/// The whole body.
pub(crate) async fn body(response: &mut Response) -> Result<Vec<u8>, ServiceError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ServiceError::Unreadable(format!("it is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, ServiceError> {
    if (200..300).contains(&answer.status) {
        return serde_json::from_slice(&answer.body).map_err(|error| ServiceError::Unreadable(error.to_string()));
    }
    Err(refusal(answer))
}

pub(crate) fn refusal(Answer { status, name: code, body }: Answer) -> ServiceError {
    let message = match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(error) if !error.text().is_empty() => error.text().to_owned(),
        _ => String::from_utf8_lossy(&body).chars().take(EXCERPT_CHARS).collect(),
    };
    ServiceError::Refused { status, code, message }
}

/// The innermost cause says more than the outermost.
pub(crate) fn unreachable(error: &reqwest::Error) -> ServiceError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    ServiceError::Unreachable(cause.to_string())
}

#[cfg(test)]
mod tests {
    use servo_wire::lambda::{NewExecutionState, OperationAction, OperationType, Seconds};

    use super::*;

    fn completed(token: Option<&str>, told: &[&str]) -> Vec<String> {
        let update = |id: &str, action| OperationUpdate::new(id, OperationType::Step, action);
        let at = Seconds::from(SystemClock.now());
        let told = told.iter().filter_map(|id| Operation::said_by(update(id, OperationAction::Succeed), at));
        let new_execution_state = NewExecutionState { operations: told.collect(), next_marker: None };
        let mut response = CheckpointResponse { checkpoint_token: token.map(str::to_owned), new_execution_state };
        let sent = [("a", OperationAction::Start), ("a", OperationAction::Succeed), ("b", OperationAction::Start)];
        complete(&mut response, sent.into_iter().map(|(id, action)| update(id, action)).collect());
        response.new_execution_state.operations.into_iter().map(|operation| operation.id).collect()
    }

    #[test]
    fn an_answer_is_completed_by_what_its_call_has_ended() {
        assert_eq!(completed(Some("t"), &["other"]), ["other", "a"]);
        assert_eq!(completed(Some("t"), &["a"]), ["a"], "what was told counts, once");
        assert!(completed(None, &[]).is_empty(), "nothing says that it was recorded");
    }
}
