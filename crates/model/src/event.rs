//! Events: recorded facts, past tense, never changed. An envelope that all share and a body per type.
//!
//! The stored form keeps the envelope in columns and the body as JSON; the public form is one flat JSON object.
//! The 14 canonical types are the published contract (`spec/events/`). Engine types share envelope and table, but
//! consumers of the contract may ignore them.

mod body;
mod codec;
mod durable;
mod key;
mod shape;
mod tolerant;
mod withhold;

use servo_canon::Digest;

use crate::{EventId, RunId, Timestamp};

pub use body::*;
pub use codec::{EventDoc, FORMAT};
pub use durable::*;
pub use key::{idempotency_key, run_request_key};

/// One fact with its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub event_id: EventId,
    pub run_id: RunId,
    /// Strictly increasing per run, with gaps allowed. Assigned by the store, never by a caller.
    pub run_seq: u64,
    pub idempotency_key: Digest,
    /// When the store appended it.
    pub emitted_at: Timestamp,
    pub emitted_by: String,
    /// When it happened, if that was measurably earlier.
    pub occurred_at: Option<Timestamp>,
    pub body: EventBody,
}

impl Event {
    /// The time for durations: when it happened if known, else when it was appended. Never used for ordering.
    pub fn at(&self) -> Timestamp {
        self.occurred_at.unwrap_or(self.emitted_at)
    }
}
