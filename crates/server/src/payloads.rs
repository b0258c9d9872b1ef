//! Whether a caller may read inputs, results and the details of errors: one rule, for every route that has them.

use servo_model::{Permission, SecurityContext};
use servo_store::StoredEvent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payloads {
    Shown,
    Hidden,
}

impl Payloads {
    pub(crate) fn of(ctx: &SecurityContext) -> Self {
        if ctx.may(Permission::PayloadsRead) { Payloads::Shown } else { Payloads::Hidden }
    }

    /// The public document of an event. One that cannot be read has, for those without the right, only its envelope.
    pub(crate) fn event(self, event: &StoredEvent) -> String {
        if self == Payloads::Shown {
            return event.doc().to_json();
        }
        let body = event.decode().map(|event| event.body.without_payloads().encode());
        let mut doc = event.doc();
        // Says that something is missing, so that nobody takes it for empty.
        let body = match body.as_deref() {
            Ok("{}") | Err(_) => r#"{"payloadsHidden":true}"#.to_owned(),
            Ok(body) => body.replacen('{', r#"{"payloadsHidden":true,"#, 1),
        };
        doc.payload = &body;
        doc.to_json()
    }
}
