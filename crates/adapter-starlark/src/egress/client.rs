//! Requests with limits on everything: scheme, headers, sizes, time, redirects.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, StatusCode, Url};
use servo_egress::{Allowed, Denied, Guard};

use super::{EgressSettings, NoResponse, Response};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const URL_LEN_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 100;
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// What the client itself says about the message.
const RESERVED: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "proxy-authorization"];
/// What must not reach another host than the one it was meant for.
const CREDENTIALS: [&str; 2] = ["authorization", "cookie"];

#[derive(Debug)]
pub(crate) struct Egress {
    client: Client,
    guard: Guard,
    settings: EgressSettings,
}

/// A name, a value, and whether the value holds a secret.
pub(crate) type Header = (String, String, bool);

impl Egress {
    pub(crate) fn new(settings: EgressSettings) -> reqwest::Result<Self> {
        let guard = Guard::new(Allowed { hosts: settings.allow_hosts.clone(), nets: settings.allow_nets.clone() });
        let client = servo_egress::client(&guard).connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(Self { client, guard, settings })
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        url: &str,
        headers: Vec<Header>,
        body: Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<Response, NoResponse> {
        let method = method.to_ascii_uppercase();
        let allowed = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = match Method::from_bytes(method.as_bytes()) {
            Ok(known) if allowed.contains(&method.as_str()) => known,
            _ => return Err(NoResponse::denied(format!("{method:?} is no method; use one of {}", allowed.join(", ")))),
        };
        if body.len() > self.settings.request_bytes_max {
            let max = self.settings.request_bytes_max;
            return Err(NoResponse::denied(format!("the request's body has {} bytes, at most {max}", body.len())));
        }
        let url = parse(url)?;
        let headers = checked(headers)?;
        let limit = timeout.unwrap_or(self.settings.timeout_default).min(self.settings.timeout_max);
        let Ok(outcome) = tokio::time::timeout(limit, self.follow(method, url, headers, body)).await else {
            return Err(NoResponse::passing(format!("no response within {} seconds", limit.as_secs_f64())));
        };
        outcome
    }

    async fn follow(
        &self,
        mut method: Method,
        mut url: Url,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        mut body: Vec<u8>,
    ) -> Result<Response, NoResponse> {
        for _ in 0..=self.settings.redirects_max {
            self.guard.check_url(&url).map_err(|denied| NoResponse::denied(denied.to_string()))?;
            let sent: HeaderMap = headers.iter().cloned().collect();
            let request = self.client.request(method.clone(), url.clone()).headers(sent).body(body.clone());
            let response = request.send().await.map_err(|error| failed(&url, &error))?;
            let Some(target) = redirect(&response) else { return self.read(&url, response).await };
            let next = url.join(&target).map_err(|_| NoResponse::denied("a redirect leads to no address"))?;
            let next = parse(next.as_str())?;
            let keeps = matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            if !keeps && method != Method::HEAD {
                method = Method::GET;
                body = Vec::new();
                headers.retain(|(name, _)| !name.as_str().starts_with("content-"));
            }
            let same_host = next.host_str() == url.host_str() && next.scheme() == url.scheme();
            if !same_host || next.port_or_known_default() != url.port_or_known_default() {
                headers.retain(|(name, value)| !value.is_sensitive() && !CREDENTIALS.contains(&name.as_str()));
            }
            url = next;
        }
        Err(NoResponse::denied(format!("more than {} redirects", self.settings.redirects_max)))
    }

    async fn read(&self, url: &Url, mut response: reqwest::Response) -> Result<Response, NoResponse> {
        let status = response.status().as_u16();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let headers: Vec<(String, String)> = headers.take(HEADERS_MAX).collect();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, &error))? {
            if body.len() + chunk.len() > self.settings.response_bytes_max {
                let max = self.settings.response_bytes_max;
                return Err(NoResponse::denied(format!("the response has more than {max} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status, headers, body })
    }
}

fn parse(text: &str) -> Result<Url, NoResponse> {
    if text.len() > URL_LEN_MAX {
        return Err(NoResponse::denied(format!("the address has more than {URL_LEN_MAX} bytes")));
    }
    let url = Url::parse(text).map_err(|error| NoResponse::denied(format!("the address is wrong: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NoResponse::denied("only http and https are served"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(NoResponse::denied("an address with credentials in it; use a header and ctx.secret"));
    }
    Ok(url)
}

fn checked(headers: Vec<Header>) -> Result<Vec<(HeaderName, HeaderValue)>, NoResponse> {
    let bytes: usize = headers.iter().map(|(name, value, _)| name.len() + value.len()).sum();
    if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message = format!("at most {HEADERS_MAX} headers with {HEADER_BYTES_MAX} bytes together");
        return Err(NoResponse::denied(message));
    }
    let header = |(name, value, is_secret): Header| {
        // The value is not repeated: it may be a secret.
        let wrong = || NoResponse::denied(format!("the header {name:?} is wrong or reserved"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
        value.set_sensitive(is_secret);
        if RESERVED.contains(&name.as_str()) { Err(wrong()) } else { Ok((name, value)) }
    };
    headers.into_iter().map(header).collect()
}

fn redirect(response: &reqwest::Response) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let target = response.headers().get(LOCATION)?.to_str().ok()?;
    is_redirect.then(|| target.to_owned())
}

/// What the guard said, if it was the guard; else a short reason that tells nothing about our network.
fn failed(url: &Url, error: &reqwest::Error) -> NoResponse {
    if let Some(denied) = Denied::of(error) {
        return NoResponse::denied(denied.to_string());
    }
    let what = if error.is_connect() {
        "cannot be reached"
    } else if error.is_timeout() {
        "took too long"
    } else {
        "gave no usable response"
    };
    NoResponse::passing(format!("{} {what}", url.host_str().unwrap_or_default()))
}
