//! Signature Version 4 of the two calls. Small on purpose: AWS's own client for Lambda brings a hundred other calls along.

use servo_wire::sigv4::{ALGORITHM, Request, Scope};

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

/// The value of the `authorization` header. `time` is `20150830T123600Z`.
pub(crate) fn authorization(keys: &AwsCredentials, service: &str, time: &str, request: &Request<'_>) -> String {
    let scope = Scope { date: time.get(..8).unwrap_or(time), region: &keys.region, service };
    let signature = scope.sign(&keys.secret_access_key, time, request);
    let (credential, names) = (format!("{}/{scope}", keys.access_key_id), request.signed_headers());
    format!("{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vector `get-vanilla`.
    #[test]
    fn the_header_is_the_published_one() {
        let keys = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: "us-east-1".into(),
        };
        let time = "20150830T123600Z";
        let request = Request {
            method: "GET",
            path: "/",
            query: Vec::new(),
            headers: vec![("host", "example.amazonaws.com".to_owned()), ("x-amz-date", time.to_owned())],
            payload: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned(),
        };
        assert_eq!(
            authorization(&keys, "service", time, &request),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }
}
