//! AWS Signature Version 4: what is signed of a request, and the signature. Made by clients and checked by servers with the same
//! code; who may sign, and when, is decided elsewhere.

use hmac::{Hmac, KeyInit as _, Mac as _};
use servo_canon::Digest;
use sha2::Sha256;

pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const TERMINATOR: &str = "aws4_request";

/// What is signed of a request.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub method: &'a str,
    /// As it is sent.
    pub path: &'a str,
    /// Names and values, not encoded.
    pub query: Vec<(Vec<u8>, Vec<u8>)>,
    /// In lower case, in the order of `SignedHeaders`. A header that comes several times has its values with commas between.
    pub headers: Vec<(&'a str, String)>,
    /// The digest of the body, or the word that stands for an unsigned one.
    pub payload: String,
}

impl Request<'_> {
    /// `SignedHeaders`.
    pub fn signed_headers(&self) -> String {
        self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
    }

    fn canonical(&self) -> String {
        let mut query: Vec<(String, String)> =
            self.query.iter().map(|(name, value)| (encode(name, false), encode(value, false))).collect();
        query.sort();
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let words = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}:{}\n", words(value))).collect();
        // The path is encoded once more than it is sent, except for S3.
        let path = encode(self.path.as_bytes(), true);
        let (method, names, payload) = (self.method, self.signed_headers(), &self.payload);
        format!("{method}\n{path}\n{}\n{headers}\n{names}\n{payload}", query.join("&"))
    }
}

/// What a signature is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope<'a> {
    /// `20150830`
    pub date: &'a str,
    pub region: &'a str,
    pub service: &'a str,
}

impl<'a> Scope<'a> {
    /// Of `date/region/service/aws4_request`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (date, region, service) = (parts.next()?, parts.next()?, parts.next()?);
        (parts.next()? == TERMINATOR).then_some(Self { date, region, service })
    }

    /// The MAC over the request; `time` is `20150830T123600Z`.
    fn mac(self, secret: &str, time: &str, request: &Request<'_>) -> Hmac<Sha256> {
        let text = format!("{ALGORITHM}\n{time}\n{self}\n{}", Digest::of(request.canonical().as_bytes()));
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [self.date, self.region, self.service, TERMINATOR] {
            key = mac(&key, part.as_bytes()).finalize().into_bytes().to_vec();
        }
        mac(&key, text.as_bytes())
    }

    pub fn sign(self, secret: &str, time: &str, request: &Request<'_>) -> Digest {
        Digest::from_bytes(self.mac(secret, time, request).finalize().into_bytes().into())
    }

    /// Compares in constant time.
    pub fn is_signed(self, secret: &str, time: &str, request: &Request<'_>, signature: &Digest) -> bool {
        self.mac(secret, time, request).verify_slice(signature.as_bytes()).is_ok()
    }
}

impl std::fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { date, region, service } = self;
        write!(f, "{date}/{region}/{service}/{TERMINATOR}")
    }
}

fn mac(key: &[u8], data: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a MAC takes a key of any length");
    mac.update(data);
    mac
}

/// Everything but letters, digits and `-._~`; slashes are kept in paths.
pub fn encode(bytes: &[u8], path: bool) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || (path && *byte == b'/') {
            encoded.push(char::from(*byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const TIME: &str = "20150830T123600Z";

    fn request<'a>(query: &[(&str, &str)], headers: &[(&'a str, &str)]) -> Request<'a> {
        Request {
            method: "GET",
            path: "/",
            query: query.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect(),
            headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            payload: Digest::of(b"").to_string(),
        }
    }

    /// The published test vector `get-vanilla`, and the worked example of the documentation.
    #[test]
    fn signatures_are_the_published_ones() {
        let vanilla = request(&[], &[("host", "example.amazonaws.com"), ("x-amz-date", TIME)]);
        let scope = Scope { date: "20150830", region: "us-east-1", service: "service" };
        let signature = scope.sign(SECRET, TIME, &vanilla);
        assert_eq!(signature.to_string(), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        assert!(scope.is_signed(SECRET, TIME, &vanilla, &signature));
        assert!(!scope.is_signed("another", TIME, &vanilla, &signature));
        assert_eq!(Scope::parse(&scope.to_string()), Some(scope));
        let headers = [
            ("content-type", "application/x-www-form-urlencoded;   charset=utf-8"),
            ("host", " iam.amazonaws.com "),
            ("x-amz-date", TIME),
        ];
        let users = request(&[("Version", "2010-05-08"), ("Action", "ListUsers")], &headers);
        let scope = Scope { service: "iam", ..scope };
        let signature = scope.sign(SECRET, TIME, &users);
        assert_eq!(signature.to_string(), "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
        assert_eq!(users.signed_headers(), "content-type;host;x-amz-date");
    }

    /// By name, and by value only among the same names: `a-` comes behind `a`, whatever their values.
    #[test]
    fn queries_are_in_the_order_of_their_names() {
        let canonical = request(&[("a-", "1"), ("a", "2"), ("a", "1")], &[("host", "h")]).canonical();
        assert_eq!(canonical.lines().nth(2), Some("a=1&a=2&a-=1"));
    }

    #[test]
    fn paths_keep_their_slashes() {
        assert_eq!(encode(b"/a%2Fb:c", true), "/a%252Fb%3Ac");
        assert_eq!(encode(b"t+/=", false), "t%2B%2F%3D");
    }

    #[test]
    fn a_scope_of_another_kind_is_none() {
        for text in ["", "20150830/us-east-1/lambda", "20150830/us-east-1/lambda/aws5_request", "a/b/c/aws4_request/d"]
        {
            assert_eq!(Scope::parse(text), None, "{text}");
        }
    }
}
