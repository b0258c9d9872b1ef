//! What a worker's environment says about the service: the variables that also configure AWS's own SDKs, and those of a server.

use crate::sigv4::AwsCredentials;

/// Where to look for the address, in this order. The first two are what AWS's own SDKs read.
pub(crate) const ENDPOINT_VARIABLES: [&str; 3] = ["AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL", "SERVO_URL"];
const TOKEN_VARIABLE: &str = "SERVO_TOKEN";

pub(crate) struct Environment {
    pub(crate) endpoint: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) keys: Option<AwsCredentials>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self::of(variable)
    }

    /// A variable that is set to nothing is not set.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let keys = || {
            Some(AwsCredentials {
                access_key_id: variable("AWS_ACCESS_KEY_ID")?,
                secret_access_key: variable("AWS_SECRET_ACCESS_KEY")?,
                session_token: variable("AWS_SESSION_TOKEN"),
                region: variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"))?,
            })
        };
        Self {
            endpoint: ENDPOINT_VARIABLES.iter().find_map(|name| variable(name)),
            token: variable(TOKEN_VARIABLE),
            keys: keys(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a worker's settings come from its environment, as Lambda sets them")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Environment {
        Environment::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    /// DX-044: what Lambda sets is enough, and half a pair of keys is none.
    #[test]
    fn keys_are_found_as_lambda_sets_them() {
        let pair = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_SESSION_TOKEN", "session")];
        let with = |name, value| of(&[&pair[..], &[(name, value)]].concat()).keys;
        let keys = with("AWS_REGION", "eu-west-1").unwrap();
        assert_eq!([&keys.access_key_id[..], &keys.secret_access_key, &keys.region], ["id", "secret", "eu-west-1"]);
        assert_eq!(keys.session_token.as_deref(), Some("session"));
        assert_eq!(with("AWS_DEFAULT_REGION", "eu-west-2").unwrap().region, "eu-west-2");
        assert!(with("AWS_REGION", "").is_none());
        assert!(of(&[("AWS_ACCESS_KEY_ID", "id"), ("AWS_REGION", "eu-west-1")]).keys.is_none());
    }

    #[test]
    fn the_address_for_lambda_alone_comes_first() {
        let all = [("SERVO_URL", "c"), ("AWS_ENDPOINT_URL", "b"), ("AWS_ENDPOINT_URL_LAMBDA", "a")];
        assert_eq!(of(&all).endpoint.as_deref(), Some("a"));
        assert_eq!(of(&all[..2]).endpoint.as_deref(), Some("b"));
        assert_eq!(of(&all[..1]).endpoint.as_deref(), Some("c"));
        assert!(of(&[]).endpoint.is_none());
    }
}
