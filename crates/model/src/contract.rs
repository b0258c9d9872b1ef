//! The runtime contract: commands, events and snapshot of authority, dispatch backlog, replay and readiness.
//!
//! The JSON is published and must round-trip to the letter, so times stay as the text they came in.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{ID_CHARS_MAX, TEXT_CHARS_MAX, fits};
use crate::{Invalid, Timestamp};

/// A request to the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", deny_unknown_fields)]
pub enum RuntimeCommand {
    AcquireAuthority { owner: String, lease_id: String, leased_until: String },
    RenewAuthority { owner: String, lease_id: String, leased_until: String },
    QueueDispatch { request_id: String, target: String },
    MarkNotified { request_id: String, channel: String },
    MarkDelivered { request_id: String },
    MarkFailed { request_id: String, reason: String },
    RequestReplay { cursor: String },
    CaptureSnapshot,
}

/// Commands and their fields, all of them strings.
pub const COMMANDS: [(&str, &[&str]); 8] = [
    ("AcquireAuthority", &["owner", "lease_id", "leased_until"]),
    ("RenewAuthority", &["owner", "lease_id", "leased_until"]),
    ("QueueDispatch", &["request_id", "target"]),
    ("MarkNotified", &["request_id", "channel"]),
    ("MarkDelivered", &["request_id"]),
    ("MarkFailed", &["request_id", "reason"]),
    ("RequestReplay", &["cursor"]),
    ("CaptureSnapshot", &[]),
];

/// Events and their fields, all of them strings.
pub const EVENTS: [(&str, &[&str]); 14] = [
    ("AuthorityAcquired", &["owner", "lease_id", "leased_until"]),
    ("AuthorityRenewed", &["owner", "lease_id", "leased_until"]),
    ("DispatchQueued", &["request_id", "target"]),
    ("DispatchNotified", &["request_id", "channel"]),
    ("DispatchDelivered", &["request_id"]),
    ("DispatchFailed", &["request_id", "reason"]),
    ("ReplayRequested", &["cursor"]),
    ("SnapshotCaptured", &[]),
    ("run.heartbeat", &["owner", "phase"]),
    ("run.blocked_on_user", &["owner", "reason"]),
    ("run.blocked_on_system", &["owner", "reason"]),
    ("worker.assigned", &["worker", "task_id"]),
    ("worker.stalled", &["worker", "reason"]),
    ("worker.recovered", &["worker", "recovery"]),
];

/// What the runtime did or saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum RuntimeEvent {
    AuthorityAcquired {
        owner: String,
        lease_id: String,
        leased_until: String,
    },
    AuthorityRenewed {
        owner: String,
        lease_id: String,
        leased_until: String,
    },
    DispatchQueued {
        request_id: String,
        target: String,
    },
    DispatchNotified {
        request_id: String,
        channel: String,
    },
    DispatchDelivered {
        request_id: String,
    },
    DispatchFailed {
        request_id: String,
        reason: String,
    },
    ReplayRequested {
        cursor: String,
    },
    SnapshotCaptured,
    #[serde(rename = "run.heartbeat")]
    RunHeartbeat {
        owner: String,
        phase: String,
    },
    #[serde(rename = "run.blocked_on_user")]
    RunBlockedOnUser {
        owner: String,
        reason: String,
    },
    #[serde(rename = "run.blocked_on_system")]
    RunBlockedOnSystem {
        owner: String,
        reason: String,
    },
    #[serde(rename = "worker.assigned")]
    WorkerAssigned {
        worker: String,
        task_id: String,
    },
    #[serde(rename = "worker.stalled")]
    WorkerStalled {
        worker: String,
        reason: String,
    },
    #[serde(rename = "worker.recovered")]
    WorkerRecovered {
        worker: String,
        recovery: String,
    },
}

impl RuntimeEvent {
    pub fn name(&self) -> &'static str {
        match self {
            Self::AuthorityAcquired { .. } => "AuthorityAcquired",
            Self::AuthorityRenewed { .. } => "AuthorityRenewed",
            Self::DispatchQueued { .. } => "DispatchQueued",
            Self::DispatchNotified { .. } => "DispatchNotified",
            Self::DispatchDelivered { .. } => "DispatchDelivered",
            Self::DispatchFailed { .. } => "DispatchFailed",
            Self::ReplayRequested { .. } => "ReplayRequested",
            Self::SnapshotCaptured => "SnapshotCaptured",
            Self::RunHeartbeat { .. } => "run.heartbeat",
            Self::RunBlockedOnUser { .. } => "run.blocked_on_user",
            Self::RunBlockedOnSystem { .. } => "run.blocked_on_system",
            Self::WorkerAssigned { .. } => "worker.assigned",
            Self::WorkerStalled { .. } => "worker.stalled",
            Self::WorkerRecovered { .. } => "worker.recovered",
        }
    }

    pub fn is_name(text: &str) -> bool {
        Self::known_name(text).is_some()
    }

    pub(crate) fn known_name(text: &str) -> Option<&'static str> {
        EVENTS.iter().map(|(name, _)| *name).find(|name| *name == text)
    }
}

impl RuntimeCommand {
    /// Reads a command and names the field that is wrong. Written by hand because all fields are strings and a derived
    /// parser would not say which one is of the wrong type.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let fields: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Invalid::new("", format!("the command is not a JSON object: {error}")))?;
        let name = match fields.get("command") {
            Some(Value::String(name)) => name.as_str(),
            Some(_) => return Err(Invalid::new("command", "is a string")),
            None => return Err(Invalid::new("command", "is missing")),
        };
        let Some((_, wanted)) = COMMANDS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COMMANDS.iter().map(|(known, _)| *known).collect();
            return Err(Invalid::new("command", format!("no such command; there are {}", known.join(", "))));
        };
        for field in *wanted {
            match fields.get(*field) {
                Some(Value::String(text)) => check_field(field, text)?,
                Some(_) => return Err(Invalid::new(*field, "is a string")),
                None => return Err(Invalid::new(*field, "is missing")),
            }
        }
        if let Some(extra) = fields.keys().find(|key| *key != "command" && !wanted.contains(&key.as_str())) {
            return Err(Invalid::new(extra.clone(), format!("{name} has no such field")));
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| Invalid::new("", error.to_string()))
    }
}

fn chars_max(field: &str) -> usize {
    if field == "reason" { TEXT_CHARS_MAX } else { ID_CHARS_MAX * 4 }
}

fn check_field(field: &str, text: &str) -> Result<(), Invalid> {
    let max = chars_max(field);
    if text.is_empty() || !fits(text, max) {
        return Err(Invalid::new(field, format!("has 1 to {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(field, "has no control characters"));
    }
    if field == "leased_until" {
        Timestamp::parse(text).map_err(|e| e.inside(field))?;
    }
    Ok(())
}

/// How the runtime stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeSnapshot {
    pub schema_version: u32,
    pub authority: AuthorityView,
    pub backlog: Backlog,
    pub replay: ReplayView,
    pub readiness: Readiness,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityView {
    pub owner: Option<String>,
    pub lease_id: Option<String>,
    pub leased_until: Option<String>,
    pub stale: bool,
    pub stale_reason: Option<String>,
}

/// Dispatches by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    pub pending: u64,
    pub notified: u64,
    pub delivered: u64,
    pub failed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayView {
    pub cursor: Option<String>,
    pub pending_events: u64,
    pub last_replayed_event_id: Option<String>,
    pub deferred_leader_notification: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    pub ready: bool,
    pub reasons: Vec<String>,
}

pub const SNAPSHOT_SCHEMA_VERSION: u32 = 1;

/// The states of a dispatch. Pending, then notified, then delivered or failed, and no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DispatchState {
    Pending,
    Notified,
    Delivered,
    Failed,
}

impl DispatchState {
    pub const ALL: [DispatchState; 4] =
        [DispatchState::Pending, DispatchState::Notified, DispatchState::Delivered, DispatchState::Failed];

    pub fn can_become(self, next: DispatchState) -> bool {
        use DispatchState as D;
        match self {
            D::Pending => next == D::Notified,
            D::Notified => next == D::Delivered || next == D::Failed,
            D::Delivered | D::Failed => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Notified => "notified",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The times that `Timestamp::parse` reads, but for days that do not exist, which `format` names.
const TIME_PATTERN: &str = "^(?!1970-01-01T[^Z]*$)(?!9999-12-31T[^Z]*$)(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])\
    -(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?\
    (Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

/// The contract as JSON Schema: commands, events and the snapshot.
pub fn json_schema() -> Value {
    use serde_json::json;
    let tagged = |tag: &str, rows: &[(&str, &[&str])], closed: bool| -> Value {
        let variants: Vec<Value> = rows
            .iter()
            .map(|(name, fields)| {
                let mut properties = Map::new();
                properties.insert(tag.to_owned(), json!({"const": name}));
                for field in *fields {
                    let schema = match *field {
                        "leased_until" => json!({"type": "string", "format": "date-time", "pattern": TIME_PATTERN}),
                        // What comes in is checked; what we say is described.
                        _ if closed => json!({"type": "string", "minLength": 1, "maxLength": chars_max(field),
                                              "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"}),
                        _ => json!({"type": "string"}),
                    };
                    properties.insert((*field).to_owned(), schema);
                }
                let mut required = vec![tag];
                required.extend(fields.iter().copied());
                json!({"title": name, "type": "object", "properties": properties, "required": required,
                       "additionalProperties": !closed})
            })
            .collect();
        json!({"oneOf": variants})
    };
    let text = json!({"type": ["string", "null"]});
    let count = json!({"type": "integer", "minimum": 0});
    let section = |fields: Value| {
        let required: Vec<_> = fields.as_object().map(|f| f.keys().cloned().collect()).unwrap_or_default();
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:servo:runtime-contract:1",
        "title": "Servo runtime contract",
        "$defs": {
            "command": tagged("command", &COMMANDS, true),
            "event": tagged("event", &EVENTS, false),
            "snapshot": section(json!({
                "schema_version": {"const": SNAPSHOT_SCHEMA_VERSION},
                "authority": section(json!({"owner": text, "lease_id": text, "leased_until": text,
                    "stale": {"type": "boolean"}, "stale_reason": text})),
                "backlog": section(json!({"pending": count, "notified": count, "delivered": count, "failed": count})),
                "replay": section(json!({"cursor": text, "pending_events": count, "last_replayed_event_id": text,
                    "deferred_leader_notification": {"type": "boolean"}})),
                "readiness": section(json!({"ready": {"type": "boolean"},
                    "reasons": {"type": "array", "items": {"type": "string"}}})),
            })),
        },
        "oneOf": [{"$ref": "#/$defs/command"}, {"$ref": "#/$defs/event"}, {"$ref": "#/$defs/snapshot"}],
    })
}
