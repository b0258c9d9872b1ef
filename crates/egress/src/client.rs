//! A client that makes connections only where its guard lets it, and none that the guard does not see.

use std::sync::{Arc, Once};

use reqwest::{Client, ClientBuilder};

use crate::Guard;

/// What every guarded client has. Whoever sends a request asks [`Guard::check_url`] before: an address that is written out is
/// not resolved.
pub fn client(guard: &Guard) -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    // The client takes its cryptography from the process's default. Somebody else may have set one; theirs is fine.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::builder()
        // A redirect is another request, to be checked like the first.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A proxy of the environment would make the connections instead, past the guard.
        .no_proxy()
        .dns_resolver(Arc::new(guard.clone()))
        .user_agent(concat!("servo/", env!("CARGO_PKG_VERSION")))
}
