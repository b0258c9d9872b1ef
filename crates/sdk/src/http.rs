//! The client of a Servo server, or of anything else that serves the durable execution API without signed requests.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Response, Url, header};
use serde::de::DeserializeOwned;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, ErrorBody, GetStateResponse};

use crate::service::{DurableServiceClient, ServiceError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer that is read into memory. A page of the state has some megabytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The beginning of a refusal that is not in the service's form.
const EXCERPT_CHARS: usize = 200;
const API: &str = "2025-12-01";

/// Where to look for the address, in this order. The first two are what AWS's own SDKs read.
const ENDPOINT_VARIABLES: [&str; 3] = ["AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL", "SERVO_URL"];
const TOKEN_VARIABLE: &str = "SERVO_TOKEN";

/// Clones share connections.
#[derive(Debug, Clone)]
pub struct ServoClient {
    http: reqwest::Client,
    base: Url,
}

impl ServoClient {
    /// `token` is an API key of the server; a development server asks for none.
    pub fn new(endpoint: &str, token: Option<&str>) -> Result<Self, ServiceError> {
        let unusable = |reason: String| ServiceError::Unreachable(format!("{endpoint:?} cannot be used: {reason}"));
        let base = Url::parse(endpoint).map_err(|error| unusable(error.to_string()))?;
        if base.cannot_be_a_base() || base.host_str().is_none() {
            return Err(unusable("give an address such as http://127.0.0.1:4400".to_owned()));
        }
        let mut headers = header::HeaderMap::new();
        if let Some(token) = token {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| unusable("the token has characters that a header cannot carry".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        // Fails when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("servo-sdk/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            // A redirect would carry the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers);
        if base.scheme() == "http" {
            // No TLS, so the system's certificates need not be there, nor be read.
            builder = builder.tls_certs_only([]).no_proxy();
        }
        let http = builder.build().map_err(|error| unusable(error.to_string()))?;
        Ok(Self { http, base })
    }

    /// By the variables that also configure AWS's own SDKs: `AWS_ENDPOINT_URL_LAMBDA` or `AWS_ENDPOINT_URL`, else
    /// `SERVO_URL`; and `SERVO_TOKEN`.
    pub fn from_env() -> Result<Self, ServiceError> {
        let Some(endpoint) = ENDPOINT_VARIABLES.iter().find_map(|name| variable(name)) else {
            let names = ENDPOINT_VARIABLES.join(", ");
            return Err(ServiceError::Unreachable(format!("no address is set; set one of {names}")));
        };
        Self::new(&endpoint, variable(TOKEN_VARIABLE).as_deref())
    }

    fn url(&self, arn: &str, call: &str) -> Url {
        let mut url = self.base.clone();
        // The ARN is one segment: its slashes are encoded.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([API, "durable-executions", arn, call]);
        }
        url
    }
}

#[expect(clippy::disallowed_methods, reason = "a worker's settings come from its environment, as Lambda sets them")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[async_trait]
impl DurableServiceClient for ServoClient {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        answer(self.http.post(self.url(arn, "checkpoint")).json(&request).send().await).await
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        let mut url = self.url(arn, "state");
        url.query_pairs_mut().append_pair("CheckpointToken", token).append_pair("Marker", marker);
        answer(self.http.get(url).send().await).await
    }
}

async fn answer<T: DeserializeOwned>(response: reqwest::Result<Response>) -> Result<T, ServiceError> {
    let mut response = response.map_err(|error| unreachable(&error))?;
    let status = response.status();
    let name = response.headers().get("x-amzn-errortype").and_then(|name| name.to_str().ok());
    // Some services put an address behind the name.
    let name = name.and_then(|name| name.split(':').next()).map(str::to_owned);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ServiceError::Unreadable(format!("it is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| ServiceError::Unreadable(error.to_string()));
    }
    let message = match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(error) if !error.text().is_empty() => error.text().to_owned(),
        _ => String::from_utf8_lossy(&body).chars().take(EXCERPT_CHARS).collect(),
    };
    let code = name.unwrap_or_else(|| status.canonical_reason().unwrap_or("Unknown").to_owned());
    Err(ServiceError::Refused { status: status.as_u16(), code, message })
}

/// The innermost cause says more than the outermost.
fn unreachable(error: &reqwest::Error) -> ServiceError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    ServiceError::Unreachable(cause.to_string())
}
