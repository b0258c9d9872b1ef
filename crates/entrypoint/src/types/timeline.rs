//! What happened to a run, for people.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;

use super::InvocationStatus;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationTimelineEvent {
    pub at: Timestamp,
    pub event_type: TimelineEventType,
    /// After the event.
    pub status: InvocationStatus,
    pub step_name: Option<String>,
    pub duration_ms: Option<u64>,
    pub message: Option<String>,
    #[serde(default)]
    pub details: Map<String, Value>,
}

macro_rules! event_types {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum TimelineEventType { $($name),* }

        impl TimelineEventType {
            pub const ALL: [TimelineEventType; 16] = [$(TimelineEventType::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(TimelineEventType::$name => $text),* }
            }
        }
    };
}

event_types! {
    Started = "started",
    StepStarted = "step_started",
    StepCompleted = "step_completed",
    StepFailed = "step_failed",
    StepRetried = "step_retried",
    Suspended = "suspended",
    Resumed = "resumed",
    SignalReceived = "signal_received",
    CheckpointCreated = "checkpoint_created",
    CompensationStarted = "compensation_started",
    CompensationCompleted = "compensation_completed",
    CompensationFailed = "compensation_failed",
    Succeeded = "succeeded",
    Failed = "failed",
    Canceled = "canceled",
    DeadLettered = "dead_lettered",
}
