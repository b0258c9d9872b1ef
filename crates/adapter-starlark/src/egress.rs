//! Where requests of user code may go, and making them.
//!
//! Addresses inside the operator's network are denied unless the operator allows them: loopback, private, link-local and
//! shared ranges, the metadata services of clouds. The check is on the addresses that are connected to, not on names: a name
//! is resolved once, and every redirect is checked like a first request.

mod address;
mod client;
mod resolve;

use std::time::Duration;

pub use address::Net;
pub(crate) use client::Egress;

#[derive(Debug, Clone)]
pub struct EgressSettings {
    /// Names of hosts that may be reached whatever their address is.
    pub allow_hosts: Vec<String>,
    /// Ranges that may be reached although they are denied by default.
    pub allow_nets: Vec<Net>,
    pub request_bytes_max: usize,
    pub response_bytes_max: usize,
    /// The longest, and what a request has that asks for nothing.
    pub timeout_max: Duration,
    pub timeout_default: Duration,
    pub redirects_max: usize,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self {
            allow_hosts: Vec::new(),
            allow_nets: Vec::new(),
            request_bytes_max: 1024 * 1024,
            response_bytes_max: 1024 * 1024,
            timeout_max: Duration::from_secs(60),
            timeout_default: Duration::from_secs(30),
            redirects_max: 5,
        }
    }
}

/// A request that brought no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoResponse {
    pub(crate) message: String,
    /// Another try may go better.
    pub(crate) retryable: bool,
}

impl NoResponse {
    fn denied(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: false }
    }

    fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: true }
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}
