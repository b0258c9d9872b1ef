//! AWS Signature Version 4, verified: the caller has the secret of an access key, and nobody has changed what was signed.

use axum::http::request::Parts;
use servo_canon::Digest;
use servo_model::Timestamp;
use servo_wire::sigv4::{ALGORITHM, Request, Scope};

/// How old or how far ahead a signed request may be.
const SKEW_MS: i64 = 5 * 60 * 1_000;
const SERVICE: &str = "lambda";

/// The parts of an `Authorization` header of this kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signed<'a> {
    pub access_key: &'a str,
    scope: Scope<'a>,
    headers: Vec<&'a str>,
    signature: &'a str,
}

impl<'a> Signed<'a> {
    /// `None` if the request is not signed in this way.
    pub(crate) fn of(parts: &'a Parts) -> Option<Self> {
        let mut values = parts.headers.get_all("authorization").iter();
        let value = values.next()?.to_str().ok()?;
        if values.next().is_some() {
            return None;
        }
        let fields = value.strip_prefix(ALGORITHM)?.trim();
        let field = |name: &str| {
            fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('=')).map(str::trim)
        };
        let (access_key, scope) = field("Credential")?.split_once('/')?;
        let headers: Vec<&str> = field("SignedHeaders")?.split(';').collect();
        Some(Self { access_key, scope: Scope::parse(scope)?, headers, signature: field("Signature")? })
    }

    /// Whether the signature was made with this secret, for this request, about now.
    pub(crate) fn is_by(&self, secret: &str, parts: &Parts, body: &[u8], now: Timestamp) -> bool {
        let Some(time) = parts.headers.get("x-amz-date").and_then(|value| value.to_str().ok()) else { return false };
        // The host is what keeps a request from being sent elsewhere.
        let fresh = signed_at(time).is_some_and(|at| (at - now.as_millis()).abs() <= SKEW_MS);
        let covers = |name: &str| self.headers.contains(&name);
        let ours = self.scope.service == SERVICE && time.starts_with(self.scope.date);
        if !fresh || !ours || !covers("host") || !covers("x-amz-date") {
            return false;
        }
        let Some(request) = self.request(parts, body) else { return false };
        let Ok(signature) = Digest::parse(self.signature) else { return false };
        self.scope.is_signed(secret, time, &request, &signature)
    }

    /// What the caller says that it has signed, as it has come.
    fn request<'p>(&'p self, parts: &'p Parts, body: &[u8]) -> Option<Request<'p>> {
        let mut headers = Vec::with_capacity(self.headers.len());
        for name in &self.headers {
            let values: Option<Vec<_>> = parts.headers.get_all(*name).iter().map(|value| value.to_str().ok()).collect();
            let mut values = values?;
            let authority = parts.uri.authority().map(|authority| authority.as_str());
            if values.is_empty() && *name == "host" {
                values.extend(authority);
            }
            if values.is_empty() {
                return None;
            }
            let trimmed: Vec<&str> = values.iter().map(|value| value.trim()).collect();
            headers.push((*name, trimmed.join(",")));
        }
        let payload = match parts.headers.get("x-amz-content-sha256").and_then(|value| value.to_str().ok()) {
            Some("UNSIGNED-PAYLOAD") => "UNSIGNED-PAYLOAD".to_owned(),
            _ => Digest::of(body).to_string(),
        };
        let query = decoded(parts.uri.query().unwrap_or_default());
        Some(Request { method: parts.method.as_str(), path: parts.uri.path(), query, headers, payload })
    }
}

fn decoded(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// `20260131T120000Z`, in milliseconds.
fn signed_at(time: &str) -> Option<i64> {
    let digits = |from: usize, to: usize| time.get(from..to);
    if time.len() != 16 {
        return None;
    }
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        digits(0, 4)?,
        digits(4, 6)?,
        digits(6, 8)?,
        digits(9, 11)?,
        digits(11, 13)?,
        digits(13, 15)?
    );
    Timestamp::parse(&text).ok().map(Timestamp::as_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    /// Made with botocore's signer for this request, so that the rules are not only our own.
    fn parts(signature: &str) -> Parts {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260131/us-east-1/lambda/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, Signature={signature}"
        );
        let request = axum::http::Request::builder()
            .method("POST")
            .uri("/2025-12-01/durable-executions/arn%3Aaws%3Alambda%2Fx/checkpoint?b=2&a=1%2F2")
            .header("host", "127.0.0.1:8700")
            .header("content-type", "application/json")
            .header("x-amz-date", "20260131T120000Z")
            .header("authorization", authorization)
            .body(())
            .unwrap();
        request.into_parts().0
    }

    const GOOD: &str = "537c435daea12998b40a84a06cfd11fdcb661ea5e243ed2bce11db597ab8c16b";

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-31T12:01:00Z").unwrap()
    }

    #[test]
    fn a_signature_holds_for_its_request_and_secret_and_time() {
        let parts = parts(GOOD);
        let signed = Signed::of(&parts).unwrap();
        assert_eq!(signed.access_key, "AKIDEXAMPLE");
        assert!(signed.is_by(SECRET, &parts, b"{}", now()));
        assert!(!signed.is_by("another", &parts, b"{}", now()), "another secret");
        assert!(!signed.is_by(SECRET, &parts, b"{ }", now()), "another body");
        let late = Timestamp::parse("2026-01-31T12:06:00Z").unwrap();
        assert!(!signed.is_by(SECRET, &parts, b"{}", late), "replayed later");
    }

    #[test]
    fn what_is_no_signature_is_none() {
        let mut unsigned = parts(GOOD);
        unsigned.headers.insert("authorization", "Bearer x".parse().unwrap());
        assert!(Signed::of(&unsigned).is_none());
        let wrong = parts("00");
        assert!(!Signed::of(&wrong).unwrap().is_by(SECRET, &wrong, b"{}", now()));
    }
}
