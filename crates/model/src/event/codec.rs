//! Between events and JSON: the stored body, and the flat public document.
//!
//! Reading the log is tolerant (`EventBody::decode`), reading documents from outside is not (`Event::from_json`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;

use super::body::{EventBody, UnknownBody};
use super::{Event, shape, tolerant};
use crate::contract::RuntimeEvent;
use crate::limits::{ID_CHARS_MAX, JSON_DEPTH_MAX, LABEL_CHARS_MAX, fits, is_deeper_than};
use crate::{EventId, Invalid, RunId, Timestamp, integer, locate, text};

/// Version of the stored body format. Readers of every released format stay in the code (`tests/golden`).
pub const FORMAT: u32 = 1;

/// The envelope of the public document, in its published order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    event_type: Cow<'a, str>,
    #[serde(deserialize_with = "hyphenated")]
    event_id: EventId,
    run_id: RunId,
    #[serde(deserialize_with = "integer::u64")]
    run_seq: u64,
    idempotency_key: Digest,
    emitted_at: Timestamp,
    #[serde(borrow)]
    emitted_by: Cow<'a, str>,
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

/// The one form of a UUID that the schema has; the library also reads others.
fn hyphenated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventId, D::Error> {
    text::parse(deserializer, "a UUID", |text| {
        let id = EventId::try_parse(text).ok().filter(|_| text.len() == 36);
        id.ok_or_else(|| Invalid::new("", "not a UUID such as 01234567-89ab-cdef-0123-456789abcdef"))
    })
}

fn join<K: Serialize + Ord>(fields: &BTreeMap<K, Box<RawValue>>) -> String {
    serde_json::to_string(fields).expect("names and values that were read from JSON are JSON")
}

/// Raw values are read without recursion, so depth is limited here, before anybody parses them with it.
fn check_depth(text: &str) -> Result<(), Invalid> {
    if is_deeper_than(text, JSON_DEPTH_MAX) {
        return Err(Invalid::new("", format!("is nested more than {JSON_DEPTH_MAX} levels deep")));
    }
    Ok(())
}

fn from_payload<T: DeserializeOwned>(payload: &str) -> Result<T, Invalid> {
    serde_json::from_str(payload).map_err(|error| locate::invalid(payload, &error))
}

macro_rules! typed_codec {
    ($($name:ident),* $(,)?) => {
        impl EventBody {
            pub fn event_type(&self) -> &str {
                self.known_type().unwrap_or_else(|unknown| &unknown.event_type)
            }

            /// The same to keep: no copy where the type is known here.
            pub fn stored_type(&self) -> Cow<'static, str> {
                self.known_type().map_or_else(|unknown| Cow::Owned(unknown.event_type.clone()), Cow::Borrowed)
            }

            fn known_type(&self) -> Result<&'static str, &UnknownBody> {
                match self {
                    $(EventBody::$name(_) => Ok(stringify!($name)),)*
                    EventBody::Runtime(event) => Ok(event.name()),
                    EventBody::Unknown(body) => Err(body),
                }
            }

            /// A type that was read, to keep: no copy where it is known here.
            pub fn interned_type(text: &str) -> Cow<'static, str> {
                match text {
                    $(stringify!($name) => Cow::Borrowed(stringify!($name)),)*
                    other => RuntimeEvent::known_name(other).map_or_else(|| Cow::Owned(other.to_owned()), Cow::Borrowed),
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

            /// A body of a known type exactly as its type has it; other types are kept as they came.
            pub(super) fn decode_strict(event_type: &str, payload: &str) -> Result<Self, Invalid> {
                match event_type {
                    $(stringify!($name) => {
                        let body = from_payload(payload)?;
                        Ok(EventBody::$name(body))
                    })*
                    other if RuntimeEvent::is_name(other) => {
                        let event: RuntimeEvent = from_payload(payload)?;
                        if event.name() != other {
                            return Err(Invalid::new("event", format!("is `{other}` in this event")));
                        }
                        Ok(EventBody::Runtime(event))
                    }
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
    RunQueued,
    RunApproved,
    RunStarted,
    StepStarted,
    StepCompleted,
    StepFailed,
    StepSkipped,
    SignalAccepted,
    SignalRejected,
    RunPaused,
    RunResumed,
    RunCompleted,
    RunFailed,
    RunCancelled,
    StepRetryScheduled,
    StepTakenOver,
    DrainTimedOut,
    TaskOrphaned,
    ExecutionStarted,
    HandlerInvoked,
    HandlerReturned,
    OperationUpdated,
    OperationResolved,
    CallbackHeartbeat,
    ExecutionEnded,
    MessageReceived,
    CompensationStarted,
    CompensationEnded,
    RunDeadLettered,
    RunImported,
);

impl EventBody {
    /// Reads a stored body. Unknown types are kept; unknown fields are ignored; enum values of a newer version are
    /// tolerated (`tolerant`). Any other body that does not fit its type is an error, because acting on half of it
    /// would be a guess.
    pub fn decode(event_type: &str, payload: &str) -> Result<Self, Invalid> {
        Self::decode_strict(event_type, payload).or_else(|error| tolerant::decode(event_type, payload).ok_or(error))
    }
}

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

    /// Reads a public document that comes from outside and checks all that its schema asks for. Values inside the body
    /// are kept as they were written, so that a plan or an unknown type is not changed by being passed on.
    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        check_depth(text)?;
        let mut body: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| Invalid::new("", format!("is not a JSON object: {error}")))?;
        let envelope: BTreeMap<&str, Box<RawValue>> =
            ENVELOPE_FIELDS.iter().filter_map(|name| Some((*name, body.remove(*name)?))).collect();
        let envelope = join(&envelope);
        let envelope: Envelope<'_> =
            serde_json::from_str(&envelope).map_err(|error| locate::invalid(&envelope, &error))?;
        if envelope.run_seq == 0 {
            return Err(Invalid::new("runSeq", "starts at 1"));
        }
        if envelope.event_type.is_empty() || !fits(&envelope.event_type, ID_CHARS_MAX) {
            return Err(Invalid::new("eventType", format!("has 1 to {ID_CHARS_MAX} characters")));
        }
        if envelope.emitted_by.is_empty() || !fits(&envelope.emitted_by, LABEL_CHARS_MAX) {
            return Err(Invalid::new("emittedBy", format!("has 1 to {LABEL_CHARS_MAX} characters")));
        }
        let payload = join(&body);
        let body = EventBody::decode_strict(&envelope.event_type, &payload)?;
        body.check()?;
        if !matches!(body, EventBody::Unknown(_)) {
            shape::check(&payload)?;
        }
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
