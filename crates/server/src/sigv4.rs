//! AWS Signature Version 4, verified: the caller has the secret of an access key, and nobody has changed what was signed.

use axum::http::request::Parts;
use hmac::{Hmac, KeyInit, Mac};
use servo_model::Timestamp;
use sha2::{Digest as _, Sha256};

/// How old or how far ahead a signed request may be.
const SKEW_MS: i64 = 5 * 60 * 1_000;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "lambda";

/// The parts of an `Authorization` header of this kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signed<'a> {
    pub access_key: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
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
        let mut scope = field("Credential")?.splitn(5, '/');
        let access_key = scope.next()?;
        let (date, region, service) = (scope.next()?, scope.next()?, scope.next()?);
        if scope.next()? != "aws4_request" {
            return None;
        }
        let headers: Vec<&str> = field("SignedHeaders")?.split(';').collect();
        Some(Self { access_key, date, region, service, headers, signature: field("Signature")? })
    }

    /// Whether the signature was made with this secret, for this request, about now.
    pub(crate) fn is_by(&self, secret: &str, parts: &Parts, body: &[u8], now: Timestamp) -> bool {
        let Some(time) = parts.headers.get("x-amz-date").and_then(|value| value.to_str().ok()) else { return false };
        // The host is what keeps a request from being sent elsewhere.
        let fresh = signed_at(time).is_some_and(|at| (at - now.as_millis()).abs() <= SKEW_MS);
        let covers = |name: &str| self.headers.contains(&name);
        if !fresh || !time.starts_with(self.date) || self.service != SERVICE || !covers("host") || !covers("x-amz-date")
        {
            return false;
        }
        let Some(request) = self.canonical(parts, body) else { return false };
        let scope = format!("{}/{}/{}/aws4_request", self.date, self.region, self.service);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [self.date, self.region, self.service, "aws4_request"] {
            key = mac(&key, part.as_bytes()).finalize().into_bytes().to_vec();
        }
        let Some(signature) = unhex(self.signature) else { return false };
        mac(&key, text.as_bytes()).verify_slice(&signature).is_ok()
    }

    fn canonical(&self, parts: &Parts, body: &[u8]) -> Option<String> {
        let mut headers = String::new();
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
            let trimmed = values.iter().map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
            headers.push_str(&format!("{name}:{}\n", trimmed.collect::<Vec<_>>().join(",")));
        }
        let path = parts.uri.path().split('/').map(encode).collect::<Vec<_>>().join("/");
        let payload = match parts.headers.get("x-amz-content-sha256").and_then(|value| value.to_str().ok()) {
            Some("UNSIGNED-PAYLOAD") => "UNSIGNED-PAYLOAD".to_owned(),
            _ => hex(&Sha256::digest(body)),
        };
        let (method, query) = (parts.method.as_str(), canonical_query(parts.uri.query().unwrap_or_default()));
        Some(format!("{method}\n{path}\n{query}\n{headers}\n{}\n{payload}", self.headers.join(";")))
    }
}

fn mac(key: &[u8], data: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a MAC takes a key of any length");
    mac.update(data);
    mac
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

/// What was encoded once in the path is encoded again in the signature, for every service but one.
fn encode(segment: &str) -> String {
    let mut out = String::new();
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn canonical_query(query: &str) -> String {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let again = |text: &str| {
        let bytes = decode(text);
        bytes.iter().map(|byte| encode_byte(*byte)).collect::<String>()
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (again(name), again(value)))
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn encode_byte(byte: u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    bytes.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
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
