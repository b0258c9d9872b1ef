//! AWS Signature Version 4, verified: the caller has the secret of an access key, and nobody has changed what was signed.

use axum::http::HeaderName;
use axum::http::request::Parts;
use servo_canon::Digest;
use servo_model::Timestamp;
use servo_wire::sigv4::{ALGORITHM, Request, Scope};

/// How old or how far ahead a signed request may be.
const SKEW_MS: i64 = 5 * 60 * 1_000;
const SERVICE: &str = "lambda";
const DATE: &str = "x-amz-date";
const CONTENT: &str = "x-amz-content-sha256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Why a signature is not taken, in AWS's words: its clients know these errors, and people search for them. Nothing is told that AWS
/// would not tell, and what was to be signed is not told at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It is not of the form that a signature has.
    Incomplete(String),
    /// It does not hold for this request, here and now.
    Invalid(String),
}

impl Unfit {
    /// Of a signature that is well made, but with another secret, or for another request.
    pub(crate) fn another() -> Self {
        Unfit::Invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key \
             and signing method. Consult the service documentation for details."
                .to_owned(),
        )
    }
}

/// The parts of an `Authorization` header of this kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signed<'a> {
    pub access_key: &'a str,
    scope: Scope<'a>,
    headers: Vec<&'a str>,
    signature: &'a str,
}

/// Whether a request says that it is signed in this way.
pub(crate) fn is_signed(parts: &Parts) -> bool {
    let mut values = parts.headers.get_all("authorization").iter();
    values.any(|value| value.as_bytes().trim_ascii_start().starts_with(ALGORITHM.as_bytes()))
}

impl<'a> Signed<'a> {
    /// The parts, or what is missing.
    pub(crate) fn read(parts: &'a Parts) -> Result<Self, Unfit> {
        let incomplete = |what: String| Unfit::Incomplete(what);
        let mut values = parts.headers.get_all("authorization").iter();
        let value = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
        if values.next().is_some() {
            return Err(incomplete("There is more than one Authorization header.".to_owned()));
        }
        let fields = value.trim_start().strip_prefix(ALGORITHM).filter(|rest| rest.starts_with([' ', '\t']));
        let fields = fields.ok_or_else(|| incomplete(format!("Authorization header requires '{ALGORITHM}'.")))?;
        let field = |name: &str| {
            let mut found =
                fields.split(',').filter_map(|field| field.trim().strip_prefix(name)?.strip_prefix('=')).map(str::trim);
            let one = found.next().filter(|value| !value.is_empty() && found.next().is_none());
            one.ok_or_else(|| incomplete(format!("Authorization header requires one '{name}' parameter.")))
        };
        let (credential, names, signature) = (field("Credential")?, field("SignedHeaders")?, field("Signature")?);
        let five = || {
            let form = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term.";
            incomplete(form.to_owned())
        };
        let (access_key, scope) = credential.split_once('/').ok_or_else(five)?;
        if access_key.is_empty() || scope.split('/').count() != 4 {
            return Err(five());
        }
        let scope = Scope::parse(scope).ok_or_else(|| {
            Unfit::Invalid("Credential should be scoped with a valid terminator: 'aws4_request'.".to_owned())
        })?;
        Ok(Self { access_key, scope, headers: names.split(';').collect(), signature })
    }

    /// Whether the signature could hold for this request, here and now: all that can be said without the secret. `encrypted` is
    /// whether the connection is: only there nobody else could have put another body under a signature that covers none.
    pub(crate) fn check(&self, parts: &Parts, encrypted: bool, now: Timestamp) -> Result<(), Unfit> {
        let invalid = |what: String| Err(Unfit::Invalid(what));
        let mut times = parts.headers.get_all(DATE).iter();
        let time = times.next().and_then(|value| value.to_str().ok()).filter(|_| times.next().is_none());
        let Some((time, at)) = time.and_then(|time| Some((time, signed_at(time)?))) else {
            let needed =
                "Authorization header requires existence of one 'X-Amz-Date' header, such as 20260131T120000Z.";
            return Err(Unfit::Incomplete(needed.to_owned()));
        };
        let is_name = |name: &&str| HeaderName::from_lowercase(name.as_bytes()).is_ok();
        if !self.headers.iter().all(is_name) || !self.headers.is_sorted_by(|one, next| one < next) {
            let form = "SignedHeaders are names in lower case, in order, each once, with semicolons between.";
            return Err(Unfit::Incomplete(form.to_owned()));
        }
        // The host is what keeps a request from being sent elsewhere.
        if !self.headers.contains(&"host") {
            return invalid("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.".to_owned());
        }
        // What means something here means only what its sender has said. Clients leave out what proxies change on the way.
        let matters = |name: &str| name.starts_with("x-amz-") || name == "content-type";
        let mut names: Vec<&str> = parts.headers.keys().map(HeaderName::as_str).collect();
        names.retain(|name| matters(name) && !self.headers.contains(name));
        if !names.is_empty() {
            names.sort_unstable();
            let names = names.join(", ");
            return invalid(format!("There were headers present in the request which were not signed: {names}"));
        }
        let Scope { date, service, .. } = self.scope;
        let day = &time[..8];
        if date != day {
            return invalid(format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: it is not '{day}', \
                 from '{time}'."
            ));
        }
        if service != SERVICE {
            return invalid(format!("Credential should be scoped to correct service: '{SERVICE}'."));
        }
        if self.scope.region.is_empty() {
            return invalid("Credential should be scoped to a valid region.".to_owned());
        }
        let (now, minutes) = (now.as_millis(), SKEW_MS / 60_000);
        if at < now - SKEW_MS {
            let (here, least) = (written(now), written(now - SKEW_MS));
            return invalid(format!("Signature expired: {time} is now earlier than {least} ({here} - {minutes} min.)"));
        }
        if at > now + SKEW_MS {
            let (here, most) = (written(now), written(now + SKEW_MS));
            return invalid(format!(
                "Signature not yet current: {time} is still later than {most} ({here} + {minutes} min.)"
            ));
        }
        if !encrypted && parts.headers.get_all(CONTENT).iter().any(|value| value == UNSIGNED) {
            return invalid(format!("{UNSIGNED} is taken over TLS only: sign the body."));
        }
        Ok(())
    }

    /// Whether the signature was made with this secret, for this request, about now.
    pub(crate) fn is_by(&self, secret: &str, parts: &Parts, encrypted: bool, body: &[u8], now: Timestamp) -> bool {
        let Some(time) = parts.headers.get(DATE).and_then(|value| value.to_str().ok()) else { return false };
        if self.check(parts, encrypted, now).is_err() {
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
        let payload = match parts.headers.get(CONTENT) {
            Some(value) if value == UNSIGNED => UNSIGNED.to_owned(),
            _ => Digest::of(body).to_string(),
        };
        let query = decoded(parts.uri.query().unwrap_or_default());
        Some(Request { method: parts.method.as_str(), path: parts.uri.path(), query, headers, payload })
    }
}

/// A time as signatures have it.
fn written(millis: i64) -> String {
    let text = Timestamp::from_millis(millis).to_string();
    text.chars().take(19).filter(|digit| !matches!(digit, '-' | ':')).chain(['Z']).collect()
}

fn decoded(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// `20260131T120000Z`, in milliseconds.
fn signed_at(time: &str) -> Option<i64> {
    let digits = |from: usize, to: usize| time.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
    if time.len() != 16 || time.get(8..9) != Some("T") || time.get(15..) != Some("Z") {
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
        let signed = Signed::read(&parts).unwrap();
        assert_eq!(signed.access_key, "AKIDEXAMPLE");
        assert!(signed.is_by(SECRET, &parts, false, b"{}", now()));
        assert!(!signed.is_by("another", &parts, false, b"{}", now()), "another secret");
        assert!(!signed.is_by(SECRET, &parts, false, b"{ }", now()), "another body");
        let late = Timestamp::parse("2026-01-31T12:06:00Z").unwrap();
        assert!(!signed.is_by(SECRET, &parts, false, b"{}", late), "replayed later");
    }

    #[test]
    fn what_is_no_signature_is_none() {
        let mut unsigned = parts(GOOD);
        unsigned.headers.insert("authorization", "Bearer x".parse().unwrap());
        assert!(Signed::read(&unsigned).is_err() && !is_signed(&unsigned));
        let wrong = parts("00");
        assert!(!Signed::read(&wrong).unwrap().is_by(SECRET, &wrong, false, b"{}", now()));
    }

    const TIME: &str = "20260131T120000Z";

    /// A request that says about itself what a row says, with a signature that is right for it.
    struct Case {
        scope: &'static str,
        names: &'static str,
        headers: &'static [(&'static str, &'static str)],
        now: &'static str,
        encrypted: bool,
    }

    const PLAIN: Case = Case {
        scope: "20260131/us-east-1/lambda/aws4_request",
        names: "host;x-amz-date",
        headers: &[("host", "localhost:8700"), ("x-amz-date", TIME)],
        now: "2026-01-31T12:01:00Z",
        encrypted: false,
    };

    impl Case {
        fn parts(&self) -> Parts {
            let mut request = axum::http::Request::builder().method("POST").uri("/2015-03-31/functions/f/invocations");
            for (name, value) in self.headers {
                request = request.header(*name, *value);
            }
            let authorization = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{}, SignedHeaders={}, Signature={}",
                self.scope,
                self.names,
                "0".repeat(64)
            );
            let mut parts = request.header("authorization", authorization).body(()).unwrap().into_parts().0;
            // Signed by the rules that are the published ones, whatever it says.
            let signature = Signed::read(&parts).ok().and_then(|signed| {
                let request = signed.request(&parts, b"{}")?;
                let time = parts.headers.get(DATE)?.to_str().ok()?;
                Some(signed.scope.sign(SECRET, time, &request).to_string())
            });
            if let Some(signature) = signature {
                let value = parts.headers["authorization"].to_str().unwrap().replace(&"0".repeat(64), &signature);
                parts.headers.insert("authorization", value.parse().unwrap());
            }
            parts
        }

        fn judged(&self) -> Result<(), Unfit> {
            let (parts, now) = (self.parts(), Timestamp::parse(self.now).unwrap());
            let signed = Signed::read(&parts)?;
            signed.check(&parts, self.encrypted, now)?;
            match signed.is_by(SECRET, &parts, self.encrypted, b"{}", now) {
                true => Ok(()),
                false => Err(Unfit::another()),
            }
        }
    }

    /// Each row is signed with the right secret: what is wrong with it is what it leaves out, or claims.
    #[test]
    fn what_aws_takes_is_taken() {
        let signed_all: &[(&str, &str)] = &[
            ("content-type", "application/json"),
            ("host", "localhost:8700"),
            ("x-amz-client-context", "e30="),
            ("x-amz-date", TIME),
        ];
        // What botocore and the SDKs for JavaScript and Rust leave out, because it may change on the way.
        let unsigned: &[(&str, &str)] = &[
            ("host", "localhost:8700"),
            ("x-amz-date", TIME),
            ("user-agent", "Boto3/1.43"),
            ("x-amzn-trace-id", "Root=1-aaaaaaaa-bbbbbbbbbbbbbbbbbbbbbbbb"),
            ("connection", "keep-alive"),
            ("expect", "100-continue"),
            ("transfer-encoding", "chunked"),
            ("cache-control", "no-cache"),
            ("te", "trailers"),
            ("accept", "*/*"),
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("content-length", "2"),
        ];
        let payload: &[(&str, &str)] =
            &[("host", "localhost:8700"), ("x-amz-content-sha256", UNSIGNED), ("x-amz-date", TIME)];
        for (what, case) in [
            ("plain", PLAIN),
            ("any region", Case { scope: "20260131/eu-moon-7/lambda/aws4_request", ..PLAIN }),
            (
                "all signed",
                Case { names: "content-type;host;x-amz-client-context;x-amz-date", headers: signed_all, ..PLAIN },
            ),
            ("what proxies change", Case { headers: unsigned, ..PLAIN }),
            ("a trace that is signed", Case { names: "host;x-amz-date;x-amzn-trace-id", headers: unsigned, ..PLAIN }),
            (
                "no body, over TLS",
                Case { names: "host;x-amz-content-sha256;x-amz-date", headers: payload, encrypted: true, ..PLAIN },
            ),
            ("five minutes old", Case { now: "2026-01-31T12:05:00Z", ..PLAIN }),
            ("five minutes ahead", Case { now: "2026-01-31T11:55:00Z", ..PLAIN }),
        ] {
            assert_eq!(case.judged(), Ok(()), "{what}");
        }
    }

    #[test]
    fn what_aws_refuses_is_refused_in_its_words() {
        const HOST: (&str, &str) = ("host", "localhost:8700");
        const AT: (&str, &str) = (DATE, TIME);
        let with = |headers: &'static [(&'static str, &'static str)]| Case { headers, ..PLAIN };
        let scope = |scope: &'static str| Case { scope, ..PLAIN };
        let names = |names: &'static str| Case { names, ..PLAIN };
        for (case, expected) in [
            (with(&[HOST, AT, ("x-amz-invocation-type", "Event")]), "not signed: x-amz-invocation-type"),
            (with(&[HOST, AT, ("x-amz-durable-execution-name", "n")]), "not signed: x-amz-durable-execution-name"),
            (with(&[HOST, AT, ("X-Amz-Client-Context", "e30=")]), "not signed: x-amz-client-context"),
            (with(&[HOST, AT, ("x-amz-tenant-id", "t")]), "not signed: x-amz-tenant-id"),
            (with(&[HOST, AT, ("x-amz-whatever", "")]), "not signed: x-amz-whatever"),
            (with(&[HOST, AT, ("x-amz-security-token", "t")]), "not signed: x-amz-security-token"),
            (with(&[HOST, AT, (CONTENT, UNSIGNED)]), "not signed: x-amz-content-sha256"),
            (with(&[HOST, AT, ("content-type", "text/plain")]), "not signed: content-type"),
            (with(&[HOST, AT, ("x-amz-b", ""), ("content-type", "a")]), "not signed: content-type, x-amz-b"),
            (names("x-amz-date"), "'Host' or ':authority' must be a 'SignedHeader'"),
            (names("host"), "not signed: x-amz-date"),
            (names("x-amz-date;host"), "SignedHeaders"),
            (names("host;host;x-amz-date"), "SignedHeaders"),
            (names("host;x-amz-date;x-amz-date"), "SignedHeaders"),
            (names("Host;X-Amz-Date"), "SignedHeaders"),
            (names("host;;x-amz-date"), "SignedHeaders"),
            (names("host;x-amz-date;"), "SignedHeaders"),
            (names("host;x-amz-date;x-none"), "does not match"),
            (scope("/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("2/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("2026/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("202601/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("20260130/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("20260131T/us-east-1/lambda/aws4_request"), "Date in Credential scope"),
            (scope("20260131/us-east-1/s3/aws4_request"), "correct service: 'lambda'"),
            (scope("20260131/us-east-1//aws4_request"), "correct service: 'lambda'"),
            (scope("20260131//lambda/aws4_request"), "valid region"),
            (scope("20260131/us-east-1/lambda/aws5_request"), "valid terminator: 'aws4_request'"),
            (scope("20260131/us-east-1/lambda"), "exactly 5 slash-delimited elements"),
            (scope("20260131/us-east-1/lambda/aws4_request/x"), "exactly 5 slash-delimited elements"),
            (with(&[HOST]), "requires existence of one 'X-Amz-Date'"),
            (with(&[HOST, (DATE, "20260131")]), "requires existence of one 'X-Amz-Date'"),
            (with(&[HOST, (DATE, "20260131T120000")]), "requires existence of one 'X-Amz-Date'"),
            (with(&[HOST, (DATE, "20260131X120000Z")]), "requires existence of one 'X-Amz-Date'"),
            (with(&[HOST, (DATE, "+0260131T120000Z")]), "requires existence of one 'X-Amz-Date'"),
            (with(&[HOST, AT, AT]), "requires existence of one 'X-Amz-Date'"),
            (
                Case { now: "2026-01-31T12:05:01Z", ..PLAIN },
                "Signature expired: 20260131T120000Z is now earlier than 20260131T120001Z (20260131T120501Z - 5 min.)",
            ),
            (
                Case { now: "2026-01-31T11:54:59Z", ..PLAIN },
                "Signature not yet current: 20260131T120000Z is still later than 20260131T115959Z (20260131T115459Z + 5 min.)",
            ),
            (
                Case {
                    names: "host;x-amz-content-sha256;x-amz-date",
                    headers: &[HOST, AT, (CONTENT, UNSIGNED)],
                    ..PLAIN
                },
                "over TLS only",
            ),
        ] {
            match case.judged() {
                Err(Unfit::Incomplete(told) | Unfit::Invalid(told)) => {
                    assert!(told.contains(expected), "{expected}: {told}")
                }
                Ok(()) => panic!("taken: {expected}"),
            }
        }
    }

    #[test]
    fn a_header_that_is_no_signature_says_what_it_lacks() {
        let mut parts = PLAIN.parts();
        let good = parts.headers["authorization"].to_str().unwrap().to_owned();
        let mut told = |value: &str| {
            parts.headers.insert("authorization", value.parse().unwrap());
            match Signed::read(&parts) {
                Err(Unfit::Incomplete(told)) => told,
                other => panic!("{value}: {other:?}"),
            }
        };
        for name in ["Credential", "SignedHeaders", "Signature"] {
            for value in [good.replace(&format!("{name}="), "X="), format!("{good}, {name}=twice")] {
                assert!(told(&value).contains(&format!("one '{name}' parameter")), "{value}");
            }
        }
        assert!(told("AWS4-HMAC-SHA256").contains("requires 'AWS4-HMAC-SHA256'"));
        assert!(told(&good.replace("SHA256 ", "SHA256x ")).contains("requires 'AWS4-HMAC-SHA256'"));
        assert!(told(&good.replace("AKIDEXAMPLE", "")).contains("5 slash-delimited"));
        parts.headers.insert("authorization", good.parse().unwrap());
        parts.headers.append("authorization", good.parse().unwrap());
        assert!(is_signed(&parts) && matches!(Signed::read(&parts), Err(Unfit::Incomplete(_))));
    }
}
