//! Signature Version 4 of the two calls. Small on purpose: AWS's own client for Lambda brings a hundred other calls along.

use hmac::{Hmac, KeyInit as _, Mac as _};
use servo_canon::Digest;
use sha2::Sha256;

/// Keys of an AWS account, or an access key of a server.
#[derive(Clone)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
    pub region: String,
}

impl std::fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { access_key_id, region, .. } = self;
        f.debug_struct("AwsCredentials")
            .field("access_key_id", access_key_id)
            .field("region", region)
            .finish_non_exhaustive()
    }
}

/// What is signed of a request. `headers` are in lower case and in order.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    /// As it is sent.
    pub(crate) path: &'a str,
    /// Names and values, not encoded.
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// The value of the `authorization` header. `time` is `20150830T123600Z`.
pub(crate) fn authorization(keys: &AwsCredentials, service: &str, time: &str, request: &Signed<'_>) -> String {
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let headers: String = request.headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let mut query: Vec<String> =
        request.query.iter().map(|(name, value)| format!("{}={}", encode(name, false), encode(value, false))).collect();
    query.sort();
    // The path is encoded once more than it is sent, except for S3.
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{}",
        request.method,
        encode(request.path, true),
        query.join("&"),
        Digest::of(request.body)
    );
    let date = time.get(..8).unwrap_or(time);
    let scope = format!("{date}/{}/{service}/aws4_request", keys.region);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", Digest::of(canonical.as_bytes()));
    let mut key = format!("AWS4{}", keys.secret_access_key).into_bytes();
    for part in [date, &keys.region, service, "aws4_request"] {
        key = mac(&key, part.as_bytes()).to_vec();
    }
    let signature = Digest::from_bytes(mac(&key, text.as_bytes()));
    let credential = format!("{}/{scope}", keys.access_key_id);
    format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}")
}

fn mac(key: &[u8], data: &[u8]) -> [u8; 32] {
    // HMAC takes keys of every length, so the other arm is never used.
    Hmac::<Sha256>::new_from_slice(key).map_or([0; 32], |mut mac| {
        mac.update(data);
        mac.finalize().into_bytes().into()
    })
}

/// Everything but letters, digits and `-._~`; slashes are kept in paths.
pub(crate) fn encode(text: &str, path: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (path && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::{AwsCredentials, Signed, authorization, encode};

    fn keys() -> AwsCredentials {
        AwsCredentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: "us-east-1".into(),
        }
    }

    /// The published test vector `get-vanilla`, and the worked example of the documentation.
    #[test]
    fn signatures_are_the_published_ones() {
        let time = "20150830T123600Z";
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", time)];
        let vanilla = Signed { method: "GET", path: "/", query: &[], headers: &headers, body: b"" };
        let text = authorization(&keys(), "service", time, &vanilla);
        assert!(text.ends_with("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"), "{text}");
        let headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", time),
        ];
        let query = [("Version", "2010-05-08"), ("Action", "ListUsers")];
        let users = Signed { method: "GET", path: "/", query: &query, headers: &headers, body: b"" };
        let text = authorization(&keys(), "iam", time, &users);
        assert!(text.ends_with("Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"), "{text}");
    }

    #[test]
    fn paths_keep_their_slashes() {
        assert_eq!(encode("/a%2Fb:c", true), "/a%252Fb%3Ac");
        assert_eq!(encode("t+/=", false), "t%2B%2F%3D");
    }
}
