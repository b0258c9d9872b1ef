//! Requests. The child has no sockets: the parent makes them, behind the egress guard.

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::limits::clip;

use crate::protocol::{FromChild, HttpHead, ToChild};
use crate::worker::op::PAYLOAD_BYTES_MAX;
use crate::worker::raised::{Raised, limit, raise};
use crate::worker::session::Session;

/// The response as JSON. Every status is a response; no response is a failure.
pub(crate) fn request(session: &Session, head: HttpHead, body: &[u8]) -> starlark::Result<String> {
    let (answer, body) = {
        let mut link = session.link.borrow_mut();
        link.send(&FromChild::Http(Box::new(head)), body);
        link.receive()
    };
    match answer {
        ToChild::Http { status, headers } => {
            let headers: serde_json::Map<String, serde_json::Value> =
                headers.into_iter().map(|(name, value)| (name, value.into())).collect();
            let body = String::from_utf8_lossy(&body);
            let text = serde_json::json!({ "status": status, "headers": headers, "body": body }).to_string();
            if text.len() > PAYLOAD_BYTES_MAX {
                let failure = limit("payload_bytes", PAYLOAD_BYTES_MAX as u64, "the response is too large");
                return Err(raise(session, Raised::Fail(failure.to_error())));
            }
            Ok(text)
        }
        ToChild::HttpFailed { message, retryable } => {
            let category = if retryable { ErrorCategory::Retryable } else { ErrorCategory::NonRetryable };
            let failure = Failure::new(errors::EXECUTION, category, clip(&message));
            Err(raise(session, Raised::Fail(failure.to_error())))
        }
        other => crate::worker::broken(&format!("expected a response, got {other:?}")),
    }
}
