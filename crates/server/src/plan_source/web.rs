//! Plans from listed addresses.

use std::sync::Once;
use std::time::Duration;

use reqwest::Url;
use servo_model::Invalid;

use super::{not_allowed, too_large, unavailable};
use crate::error::Answer;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client that goes where it is sent and nowhere else.
pub(super) fn client() -> reqwest::Result<reqwest::Client> {
    static PROVIDER: Once = Once::new();
    // The client takes its cryptography from the process's default. Somebody else may have set one; theirs is fine.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .user_agent(concat!("servo/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// No credentials, no fragment, and no escapes that another reader of the path could take for a separator or a dot.
pub(super) fn is_plain(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    let escaped = ["%2e", "%2f", "%5c", "%25"].iter().any(|escape| path.contains(escape));
    url.username().is_empty() && url.password().is_none() && url.fragment().is_none() && !escaped
}

/// Whether a URL lies below a listed one. Both are in the form that the request will have.
fn covers(listed: &Url, url: &Url) -> bool {
    let place = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    let prefix = listed.path();
    let below = match url.path().strip_prefix(prefix) {
        Some(rest) => prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
        None => false,
    };
    place(listed) == place(url) && below
}

pub(super) async fn read(
    client: Option<&reqwest::Client>,
    listed: &[Url],
    uri: &str,
    bytes_max: usize,
) -> Answer<Vec<u8>> {
    let url = Url::parse(uri).map_err(|_| not_allowed())?;
    let allowed = is_plain(&url) && listed.iter().any(|listed| covers(listed, &url));
    let client = client.filter(|_| allowed).ok_or_else(not_allowed)?;
    let mut response = client.get(url).send().await.map_err(unavailable)?;
    let status = response.status();
    if status.is_client_error() || status.is_redirection() {
        return Err(Invalid::new("planRef/uri", format!("was answered with status {}", status.as_u16())).into());
    }
    if !status.is_success() {
        return Err(unavailable(format!("status {status}")));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_a_listed_address_is_covered() {
        let listed = Url::parse("https://plans.example/prod/").unwrap();
        let bare = Url::parse("https://plans.example/prod").unwrap();
        let check = |uri: &str| Url::parse(uri).is_ok_and(|url| is_plain(&url) && covers(&listed, &url));
        for good in ["https://plans.example/prod/a.json", "https://PLANS.example:443/prod/x/../a.json?v=1"] {
            assert!(check(good), "{good}");
        }
        for bad in [
            "http://plans.example/prod/a.json",
            "https://plans.example:444/prod/a.json",
            "https://plans.example.evil/prod/a.json",
            "https://plans.example@evil/prod/a.json",
            "https://user@plans.example/prod/a.json",
            "https://evil/https://plans.example/prod/",
            "https://plans.example/prod/../secret",
            "https://plans.example/prod/%2e%2e/secret",
            "https://plans.example/prod/..%2fsecret",
            "https://plans.example/prod/..\\..\\secret",
            "https://plans.example/production/a.json",
            "https://plans.example/prod/a.json#x",
            "https://169.254.169.254/prod/",
            "https://plans.example./prod/a.json",
        ] {
            assert!(!check(bad), "{bad}");
        }
        assert!(covers(&bare, &Url::parse("https://plans.example/prod/a").unwrap()));
        assert!(!covers(&bare, &Url::parse("https://plans.example/production").unwrap()));
    }
}
