//! One event on one line: time, sequence, type, step, detail. Works on the document, so that types of a newer server are
//! shown too.

use std::collections::HashMap;

use serde_json::Value;
use servo_model::Timestamp;
use servo_wire::v1::EventPage;

use super::{Style, View};
use crate::output::style::{Color, clean, count};

/// The parts of an event's line.
#[derive(Debug)]
pub(crate) struct EventLine {
    pub(crate) event_id: String,
    run_seq: u64,
    at: Option<Timestamp>,
    event_type: String,
    step: String,
    detail: String,
    /// Of an event about an operation: which one, and what it is called if the event says so.
    operation: Option<(String, Option<String>)>,
}

/// What the operations of a run are called. Only the event with which one begins says so.
#[derive(Debug, Default)]
pub(crate) struct OperationNames(HashMap<String, String>);

impl OperationNames {
    /// The same line with the name of its operation.
    pub(crate) fn name(&mut self, mut line: EventLine) -> EventLine {
        if let Some((id, named)) = &line.operation {
            if let Some(name) = named {
                self.0.insert(id.clone(), name.clone());
            }
            if let Some(name) = self.0.get(id) {
                line.step.clone_from(name);
            }
        }
        line
    }
}

impl EventLine {
    pub(crate) fn of(document: &str) -> Self {
        let event: Value = serde_json::from_str(document).unwrap_or_default();
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let time = |field: &str| Timestamp::parse(event[field].as_str()?).ok();
        let step = match (event["stepId"].as_str(), event["logicalAttemptId"].as_u64()) {
            (Some(step), Some(attempt)) if attempt > 1 => format!("{step} #{attempt}"),
            (Some(step), _) => step.to_owned(),
            (None, _) => String::new(),
        };
        Self {
            event_id: text("eventId"),
            run_seq: event["runSeq"].as_u64().unwrap_or_default(),
            at: time("occurredAt").or_else(|| time("emittedAt")),
            event_type: text("eventType"),
            step,
            detail: detail(&event),
            operation: event["operationId"].as_str().map(|id| (id.to_owned(), name_of(&event))),
        }
    }

    pub(crate) fn text(&self, style: &Style) -> String {
        let time = self.at.map(|at| style.log_time(at)).unwrap_or_default();
        let color = match self.event_type.as_str() {
            "RunCompleted" | "StepCompleted" => Color::Green,
            "RunFailed" | "StepFailed" | "SignalRejected" => Color::Red,
            "RunPaused" | "StepRetryScheduled" | "DrainTimedOut" | "TaskOrphaned" => Color::Yellow,
            _ => Color::Blue,
        };
        let padding = " ".repeat(18_usize.saturating_sub(self.event_type.chars().count()));
        let name = style.paint().apply(color, &clean(&self.event_type));
        let rest = [clean(&self.step), clean(&self.detail)].into_iter().filter(|part| !part.is_empty());
        let rest = rest.collect::<Vec<_>>().join("  ");
        format!("{time}  {:>4}  {name}{padding}  {rest}", self.run_seq).trim_end().to_owned()
    }
}

/// By its own name, or by what it is.
fn name_of(event: &Value) -> Option<String> {
    let said = |field: &str| event[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    said("name").or_else(|| said("subType").filter(|_| event["action"] == "START" || event["begins"] == true))
}

/// What is worth a glance, whatever the type: why, by whom, until when.
fn detail(event: &Value) -> String {
    let mut parts = Vec::new();
    let said = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(plan) = event["planRef"]["planId"].as_str()
        && event["eventType"] == "RunQueued"
    {
        parts.push(format!("{plan}@{}", event["planRef"]["planVersion"].as_str().unwrap_or_default()));
    }
    parts.extend(said(&event["engineType"]));
    parts.extend(said(&event["signalType"]));
    if event["operationId"].is_string() {
        // What kind of operation, and what becomes of it.
        let word = |field: &str| event[field].as_str().map(|word| word.to_lowercase().replace('_', " "));
        let became = word("action").or_else(|| word("status"));
        parts.push([word("type"), became].into_iter().flatten().collect::<Vec<_>>().join(" "));
        parts.extend(said(&event["error"]["ErrorMessage"]).or_else(|| said(&event["error"]["errorMessage"])));
    }
    for field in ["error", "rootCause"] {
        if let Some(code) = event[field]["code"].as_str() {
            let step = event[field]["stepId"].as_str().map(|step| format!(" in {step}")).unwrap_or_default();
            parts.push(format!("{code}{step}: {}", event[field]["message"].as_str().unwrap_or_default()));
        }
    }
    parts.extend(said(&event["code"]));
    parts.extend(said(&event["reason"]));
    for (field, word) in [("decidedBy", "by"), ("approvedBy", "by"), ("cancelledBy", "by"), ("notBefore", "not before")]
    {
        parts.extend(event[field].as_str().map(|value| format!("{word} {value}")));
    }
    if let Some(artifacts) = event["artifacts"].as_array().filter(|artifacts| !artifacts.is_empty()) {
        parts.push(count(artifacts.len() as u64, "artifact"));
    }
    if let Some(tasks) = event["inFlight"].as_u64() {
        parts.push(format!("{tasks} in flight"));
    }
    parts.join(", ")
}

impl View for EventPage {
    const ITEMS: Option<&'static str> = Some("events");

    fn table(&self, style: &Style) -> String {
        let mut names = OperationNames::default();
        self.events.iter().map(|event| names.name(EventLine::of(event.get())).text(style) + "\n").collect()
    }

    fn ids(&self) -> Vec<String> {
        self.events.iter().map(|event| EventLine::of(event.get()).event_id).collect()
    }
}
