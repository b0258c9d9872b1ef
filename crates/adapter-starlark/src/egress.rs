//! Requests of user code. Where they may go is decided by the egress guard; every redirect is checked like a first request.

mod client;

use std::time::Duration;

pub(crate) use client::Egress;
pub use servo_egress::Net;

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
