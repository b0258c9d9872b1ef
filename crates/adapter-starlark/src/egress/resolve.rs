//! Names to addresses that may be connected to. The client connects to what this returns and asks nobody else, so a name
//! that changes its mind between a check and the connection gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::EgressSettings;
use super::address::is_public;

#[derive(Debug, Clone)]
pub(super) struct Guard {
    settings: Arc<EgressSettings>,
}

#[derive(Debug, thiserror::Error)]
#[error("{host} is at {address}, which is not part of the public internet; ask the operator to allow it")]
pub(super) struct Denied {
    host: String,
    address: IpAddr,
}

impl Guard {
    pub(super) fn new(settings: Arc<EgressSettings>) -> Self {
        Self { settings }
    }

    fn is_allowed_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.settings.allow_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), Denied> {
        let allowed = is_public(address)
            || self.is_allowed_name(host)
            || self.settings.allow_nets.iter().any(|net| net.contains(address));
        if allowed { Ok(()) } else { Err(Denied { host: host.to_owned(), address }) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            // One address inside is enough to refuse: which one is connected to is left to chance.
            for address in &found {
                guard.check(host, address.ip())?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
