//! The connection: address, credentials, TLS, limits, and how an answer becomes a value or an error.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::de::DeserializeOwned;
use servo_wire::Problem;
use servo_wire::lambda::ErrorBody;

use crate::answer::Answer;
use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For answers that the server has at hand. Long work (verification, retention, backups, streams) has no limit of its own.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// For an invocation that is waited for: a little more than the server waits for it.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(16 * 60);
/// The largest JSON answer that is read into memory.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The beginning of an answer that is no problem document, as far as an error shows it.
const EXCERPT_CHARS: usize = 200;

/// What a client needs to know. `Options::new` is enough for a local server.
#[derive(Debug, Clone)]
pub struct Options {
    pub base_url: String,
    pub token: Option<String>,
    /// Certificates to trust beside those of the system, as PEM.
    pub ca_pem: Option<Vec<u8>>,
    pub user_agent: String,
}

impl Options {
    pub fn new(base_url: impl Into<String>, token: Option<String>) -> Self {
        let user_agent = concat!("servo-client/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { base_url: base_url.into(), token, ca_pem: None, user_agent }
    }
}

/// A client of one server. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
}

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Usual,
    Invocation,
    Endless,
}

impl Client {
    pub fn new(base_url: impl Into<String>, token: Option<String>) -> Result<Self, Error> {
        Self::with_options(&Options::new(base_url, token))
    }

    pub fn with_options(options: &Options) -> Result<Self, Error> {
        let base = parse_base(&options.base_url)?;
        // Fails when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(&options.user_agent)
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would carry the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers(options.token.as_deref())?);
        if base.scheme() == "http" {
            // No TLS, so the system's certificates need not be there, nor be read.
            builder = builder.tls_certs_only([]);
        } else if let Some(pem) = &options.ca_pem {
            let certificates = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| Error::Setup { what: "certificates", reason: innermost(&error) })?;
            builder = builder.tls_certs_merge(certificates);
        }
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| Error::Setup { what: "client", reason: innermost(&error) })?;
        Ok(Self { http, base })
    }

    /// The server's address, without anything secret.
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Whether somebody on the way could read what is sent.
    pub fn is_in_the_clear(&self) -> bool {
        self.base.scheme() == "http" && !is_loopback(&self.base)
    }

    pub(crate) fn request(&self, method: Method, path: &str, query: &[(&str, Option<String>)]) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        let given: Vec<_> = query.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        if !given.is_empty() {
            url.query_pairs_mut().extend_pairs(given);
        }
        self.http.request(method, url)
    }

    /// Sends, and turns every status that is not a success into an error.
    pub(crate) async fn send(&self, request: RequestBuilder, patience: Patience) -> Result<Response, Error> {
        let response = self.exchange(request, patience).await?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// Sends, and leaves the status to the caller.
    pub(crate) async fn exchange(&self, request: RequestBuilder, patience: Patience) -> Result<Response, Error> {
        let request = match patience {
            Patience::Usual => request.timeout(ANSWER_TIMEOUT),
            Patience::Invocation => request.timeout(INVOCATION_TIMEOUT),
            Patience::Endless => request,
        };
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        patience: Patience,
    ) -> Result<Answer<T>, Error> {
        let response = self.send(request, patience).await?;
        self.decode(response).await
    }

    pub(crate) async fn decode<T: DeserializeOwned>(&self, response: Response) -> Result<Answer<T>, Error> {
        let request = response.url().path().to_owned();
        let raw = self.text(response).await?;
        match serde_json::from_str(&raw) {
            Ok(value) => Ok(Answer::new(value, raw)),
            Err(error) => Err(Error::Decode { request, reason: error.to_string() }),
        }
    }

    /// The body, up to the limit.
    pub(crate) async fn text(&self, mut response: Response) -> Result<String, Error> {
        let request = response.url().path().to_owned();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                let reason = format!("it is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(Error::Decode { request, reason });
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| Error::Decode { request, reason: "it is not UTF-8".to_owned() })
    }

    pub(crate) async fn refusal(&self, response: Response) -> Error {
        let status = response.status();
        let request_id = header(&response, "x-request-id");
        let error_type = header(&response, "x-amzn-errortype");
        let instance = response.url().path().to_owned();
        // The status alone is an answer; what the body adds is welcome.
        let body = self.text(response).await.unwrap_or_default();
        if let Some(name) = error_type {
            return lambda_refusal(status, &name, &body, request_id);
        }
        let mut problem: Problem = serde_json::from_str(&body).unwrap_or_else(|_| made_up(status, instance, &body));
        problem.request_id = problem.request_id.or(request_id);
        Error::Api { status: status.as_u16(), problem: Box::new(problem) }
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Error {
        let reason = if error.is_timeout() { "timed out".to_owned() } else { innermost(error) };
        Error::Unreachable { server: self.server().to_owned(), reason }
    }
}

/// A header of an answer, if it is there and text.
pub(crate) fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The header may carry a namespace after a colon, which says nothing.
fn lambda_refusal(status: StatusCode, name: &str, body: &str, request_id: Option<String>) -> Error {
    let name = name.split(':').next().unwrap_or_default().to_owned();
    let said = serde_json::from_str::<ErrorBody>(body).ok();
    let said = said.map(|body| body.text().to_owned()).filter(|text| !text.is_empty());
    let message = said.unwrap_or_else(|| format!("the server answered {status}: {name}"));
    Error::Lambda { status: status.as_u16(), name, message, request_id }
}

/// A problem for an answer that is none, such as a proxy's page.
fn made_up(status: StatusCode, instance: String, body: &str) -> Problem {
    let excerpt: String =
        body.trim().chars().take(EXCERPT_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    Problem {
        kind: "about:blank".to_owned(),
        title: format!("The server answered {status}"),
        status: status.as_u16(),
        detail: (!excerpt.is_empty()).then_some(excerpt),
        instance: Some(instance),
        code: format!("HTTP_{}", status.as_u16()),
        request_id: None,
        errors: Vec::new(),
        suggestions: Vec::new(),
        retry_after: None,
    }
}

fn parse_base(text: &str) -> Result<Url, Error> {
    let wrong = |reason: String| Error::Setup { what: "server address", reason };
    let url =
        Url::parse(text).map_err(|error| wrong(format!("{error} in `{text}`; it looks like http://127.0.0.1:8700")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("`{text}` begins neither with http:// nor with https://")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("holds more than scheme, host, port and path".to_owned()));
    }
    Ok(url)
}

fn headers(token: Option<&str>) -> Result<header::HeaderMap, Error> {
    let mut headers = header::HeaderMap::new();
    if let Some(token) = token {
        let mut value = header::HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::Setup { what: "token", reason: "holds characters that a header cannot".to_owned() })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The innermost cause: the only one of a network error that says something to people.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_work_are_refused_with_the_reason() {
        for (text, needle) in [
            ("127.0.0.1:8700", "http://127.0.0.1:8700"),
            ("ftp://host", "neither"),
            ("http://key@host", "more than"),
            ("http://host?x=1", "more than"),
        ] {
            let error = Client::new(text, None).unwrap_err().to_string();
            assert!(error.contains(needle), "{text} gave {error}");
        }
        assert!(Client::new("http://host", Some("a\nb".to_owned())).is_err());
    }

    #[test]
    fn paths_go_below_the_base_and_queries_are_encoded() {
        let client = Client::new("http://host:1/servo/", None).unwrap();
        let query = [("status", None), ("planId", Some("a b&c".to_owned()))];
        let request = client.request(Method::GET, "/v1/runs", &query).build().unwrap();
        assert_eq!(request.url().as_str(), "http://host:1/servo/v1/runs?planId=a+b%26c");
        assert_eq!(client.server(), "http://host:1/servo");
        let request = client.request(Method::GET, "/livez", &[]).build().unwrap();
        assert_eq!(request.url().as_str(), "http://host:1/servo/livez");
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://servo.example", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(text).unwrap()), expected, "{text}");
            assert_eq!(Client::new(text, None).unwrap().is_in_the_clear(), !expected, "{text}");
        }
    }
}
