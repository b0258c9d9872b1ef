//! Between events and JSON: the stored body, and the flat public document.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use servo_canon::Digest;

use super::body::{EventBody, UnknownBody};
use super::Event;
use crate::contract::RuntimeEvent;
use crate::{EventId, Invalid, RunId, Timestamp};

/// Version of the stored body format. Readers of every released format stay in the code (`tests/golden`).
pub const FORMAT: u32 = 1;

/// The envelope of the public document, in its published order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    event_type: std::borrow::Cow<'a, str>,
    event_id: EventId,
    run_id: RunId,
    run_seq: u64,
    idempotency_key: Digest,
    emitted_at: Timestamp,
    #[serde(borrow)]
    emitted_by: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurred_at: Option<Timestamp>,
}

const ENVELOPE_FIELDS: [&str; 8] =
    ["eventType", "eventId", "runId", "runSeq", "idempotencyKey", "emittedAt", "emittedBy", "occurredAt"];

/// An event as stored: the body still encoded. Lists and streams pass it on without parsing.
#[derive(Debug, Clone, Copy)]
pub struct EventDoc<'a> {
    pub event_type: &'a str,
    pub event_id: EventId,
    pub run_id: &'a RunId,
    pub run_seq: u64,
    pub idempotency_key: Digest,
    pub emitted_at: Timestamp,
    pub emitted_by: &'a str,
    pub occurred_at: Option<Timestamp>,
    /// A JSON object.
    pub payload: &'a str,
}

impl EventDoc<'_> {
    /// The flat public document. The body's object is spliced behind the envelope's fields.
    pub fn to_json(&self) -> String {
        let envelope = Envelope {
            event_type: self.event_type.into(),
            event_id: self.event_id,
            run_id: self.run_id.clone(),
            run_seq: self.run_seq,
            idempotency_key: self.idempotency_key,
            emitted_at: self.emitted_at,
            emitted_by: self.emitted_by.into(),
            occurred_at: self.occurred_at,
        };
        let mut json = serde_json::to_string(&envelope).expect("an envelope of strings and numbers serialises");
        let body = self.payload.trim().strip_prefix('{').unwrap_or("}");
        json.pop();
        if body.trim_start() != "}" {
            json.push(',');
        }
        json.push_str(body);
        json
    }
}

fn from_payload<T: DeserializeOwned>(payload: &str) -> Result<T, Invalid> {
    serde_json::from_str(payload).map_err(|error| Invalid::new(field_of(&error.to_string()), error.to_string()))
}

/// serde_json names a missing or unknown field between backticks; a wrong type has only a position.
fn field_of(message: &str) -> String {
    let mut parts = message.split('`');
    match (parts.next(), parts.next()) {
        (Some(before), Some(name)) if before.ends_with("field ") => name.to_owned(),
        _ => String::new(),
    }
}

macro_rules! typed_codec {
    ($($name:ident $(($boxed:ident))?),* $(,)?) => {
        impl EventBody {
            pub fn event_type(&self) -> &str {
                match self {
                    $(EventBody::$name(_) => stringify!($name),)*
                    EventBody::Runtime(event) => event.name(),
                    EventBody::Unknown(body) => &body.event_type,
                }
            }

            /// The stored body.
            pub fn encode(&self) -> String {
                let encoded = match self {
                    $(EventBody::$name(body) => serde_json::to_string(body),)*
                    EventBody::Runtime(event) => serde_json::to_string(event),
                    EventBody::Unknown(body) => return body.payload.get().to_owned(),
                };
                encoded.expect("event bodies hold only strings, numbers and lists")
            }

            /// Reads a stored body. Unknown types are kept; unknown fields are ignored; a known type with a body that
            /// does not fit is an error, because acting on half of it would be a guess.
            pub fn decode(event_type: &str, payload: &str) -> Result<Self, Invalid> {
                match event_type {
                    $(stringify!($name) => {
                        let body = from_payload(payload)?;
                        Ok(EventBody::$name(body))
                    })*
                    other if RuntimeEvent::is_name(other) => Ok(EventBody::Runtime(from_payload(payload)?)),
                    other => {
                        let payload: Box<RawValue> = from_payload(payload)?;
                        if !payload.get().trim_start().starts_with('{') {
                            return Err(Invalid::new("", "an event body is a JSON object"));
                        }
                        Ok(EventBody::Unknown(UnknownBody { event_type: other.to_owned(), payload }))
                    }
                }
            }
        }
    };
}

typed_codec!(
    RunQueued, RunApproved, RunStarted, StepStarted, StepCompleted, StepFailed, StepSkipped, SignalAccepted,
    SignalRejected, RunPaused, RunResumed, RunCompleted, RunFailed, RunCancelled, StepRetryScheduled, StepTakenOver,
    DrainTimedOut, TaskOrphaned,
);

impl Event {
    pub fn to_json(&self) -> String {
        EventDoc {
            event_type: self.body.event_type(),
            event_id: self.event_id,
            run_id: &self.run_id,
            run_seq: self.run_seq,
            idempotency_key: self.idempotency_key,
            emitted_at: self.emitted_at,
            emitted_by: &self.emitted_by,
            occurred_at: self.occurred_at,
            payload: &self.body.encode(),
        }
        .to_json()
    }

    /// Reads a public document that comes from outside and checks all that its schema asks for.
    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        let fields: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Invalid::new("", format!("is not a JSON object: {error}")))?;
        let mut envelope = Map::new();
        let mut body = Map::new();
        for (name, value) in fields {
            let part = if ENVELOPE_FIELDS.contains(&name.as_str()) { &mut envelope } else { &mut body };
            part.insert(name, value);
        }
        for name in ["eventType", "emittedBy", "eventId", "runId", "idempotencyKey", "emittedAt"] {
            match envelope.get(name) {
                Some(Value::String(_)) => {}
                Some(_) => return Err(Invalid::new(name, "is a string")),
                None => return Err(Invalid::new(name, "is missing")),
            }
        }
        let text = Value::Object(envelope).to_string();
        let envelope: Envelope<'_> = serde_json::from_str(&text)
            .map_err(|error| Invalid::new(field_of(&error.to_string()), error.to_string()))?;
        if envelope.run_seq == 0 {
            return Err(Invalid::new("runSeq", "starts at 1"));
        }
        if envelope.event_type.is_empty() || envelope.event_type.len() > 128 {
            return Err(Invalid::new("eventType", "has 1 to 128 bytes"));
        }
        if envelope.emitted_by.is_empty() || envelope.emitted_by.len() > 256 {
            return Err(Invalid::new("emittedBy", "has 1 to 256 bytes"));
        }
        let body = EventBody::decode(&envelope.event_type, &Value::Object(body).to_string())?;
        body.check()?;
        Ok(Self {
            event_id: envelope.event_id,
            run_id: envelope.run_id,
            run_seq: envelope.run_seq,
            idempotency_key: envelope.idempotency_key,
            emitted_at: envelope.emitted_at,
            emitted_by: envelope.emitted_by.into_owned(),
            occurred_at: envelope.occurred_at,
            body,
        })
    }
}
