//! Names to addresses that may be connected to. The client connects to what this returns and asks nobody else, so a name
//! that changes its mind between a check and the connection gains nothing.

use std::error::Error as _;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Net;
use crate::address::is_public;

/// What the operator allows beside the public internet.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Names of hosts that may be reached whatever their address is.
    pub hosts: Vec<String>,
    /// Ranges that may be reached although they are denied by default.
    pub nets: Vec<Net>,
}

#[derive(Clone)]
pub struct Guard {
    allowed: Arc<Allowed>,
    names: Arc<dyn Resolve>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// Names the host as it was asked for. Where it is tells about the operator's network, and is in the log.
#[derive(Debug, thiserror::Error)]
#[error("{host} is not part of the public internet; ask the operator to allow it")]
pub struct Denied {
    host: String,
}

impl Denied {
    /// Whether this is why a request failed.
    pub fn of(error: &reqwest::Error) -> Option<&Self> {
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(denied) = inner.downcast_ref() {
                return Some(denied);
            }
            cause = inner.source();
        }
        None
    }
}

impl Guard {
    /// With the names that this machine knows.
    pub fn new(allowed: Allowed) -> Self {
        Self::over(allowed, Arc::new(System))
    }

    /// With names from elsewhere. They are believed no more than the system's.
    pub fn over(allowed: Allowed, names: Arc<dyn Resolve>) -> Self {
        Self { allowed: Arc::new(allowed), names }
    }

    /// Addresses that are written out are not resolved, so they are looked at before a request.
    pub fn check_url(&self, url: &Url) -> Result<(), Denied> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(host, address),
            Err(_) => Ok(()),
        }
    }

    fn is_allowed_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.allowed.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    fn check(&self, host: &str, address: IpAddr) -> Result<(), Denied> {
        let allowed = is_public(address)
            || self.is_allowed_name(host)
            || self.allowed.nets.iter().any(|net| net.contains(address));
        if allowed {
            return Ok(());
        }
        tracing::info!(host, %address, "a request to an address inside was refused");
        Err(Denied { host: host.to_owned() })
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> = guard.names.resolve(name).await?.collect();
            // One address inside is enough to refuse: which one is connected to is left to chance.
            for address in &found {
                guard.check(&host, address.ip())?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// What the system's own resolver says.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
