//! One run in full: header, what it waits for, why it failed, its steps with every attempt, its artifacts.

use std::time::Duration;

use servo_model::snapshot::BlockedBy;
use servo_model::{ArtifactRef, RunSnapshot, StepSnapshot, Timestamp};

use super::{Style, View, operations};
use crate::output::style::{clean, count, size, status_color, took};
use crate::output::table::{Cell, fields, table};

impl View for RunSnapshot {
    fn table(&self, style: &Style) -> String {
        let mut text = header(self, style);
        if !self.steps.is_empty() {
            let rows: Vec<_> = self.steps.iter().map(|step| step_row(step, style)).collect();
            text.push('\n');
            text.push_str(&table(style.paint(), &["STEP", "ATTEMPT", "STATUS", "STARTED", "TOOK", "DETAIL"], &rows));
        }
        let operations = operations::of_run(&self.operations, self.operations_total, style);
        if !operations.is_empty() {
            text.push('\n');
            text.push_str(&operations);
        }
        if !self.artifacts.is_empty() {
            let rows: Vec<_> = self.artifacts.iter().map(|artifact| artifact_row(artifact, style)).collect();
            text.push('\n');
            text.push_str(&table(style.paint(), &["ARTIFACT", "SIZE", "EXPIRES", "URI"], &rows));
        }
        text
    }

    fn ids(&self) -> Vec<String> {
        vec![self.run_id.to_string()]
    }

    fn is_final(&self) -> bool {
        self.status.is_terminal()
    }
}

fn header(run: &RunSnapshot, style: &Style) -> String {
    let word = run.status.as_str();
    let mut status = style.paint().apply(status_color(word), word);
    if run.substatus.is_some() {
        status.push_str(", draining");
    }
    if run.failed_steps > 0 {
        status.push_str(&format!(", {}", count(run.failed_steps.into(), "failed step")));
    }
    let ended = run.completed_at.map(|at| match run.total_duration_ms {
        Some(millis) => format!("{}, took {}", style.time(at), took(Duration::from_millis(millis))),
        None => style.time(at),
    });
    let root_cause = run.root_cause.as_ref().map(|cause| match &cause.step_id {
        Some(step) => clean(&format!("{} in {step}: {}", cause.code, cause.message)),
        None => clean(&format!("{}: {}", cause.code, cause.message)),
    });
    let waits: Vec<_> = run.blocked_by.iter().map(|blocked| waits_for(blocked, style)).collect();
    let engine = run.engine_type.as_ref().map(|engine| match &run.engine_run_ref {
        Some(reference) => clean(&format!("{engine}, {reference}")),
        None => clean(engine),
    });
    fields(&[
        ("Run", Some(run.run_id.to_string())),
        ("Status", Some(status)),
        ("Message", run.message.as_deref().map(clean)),
        ("Waits for", (!waits.is_empty()).then(|| waits.join("; "))),
        ("Root cause", root_cause),
        ("Engine", engine),
        ("Queued", run.queued_at.map(|at| style.time(at))),
        ("Started", run.started_at.map(|at| style.time(at))),
        ("Ended", ended),
        ("Imported", super::imported(run.imported_by.as_deref(), run.imported_at, style)),
        ("Last event", Some(run.last_event_seq.to_string())),
    ])
}

/// Since when and until when something is waited for.
pub(super) fn until(mut text: String, (since, until): (Option<Timestamp>, Option<Timestamp>), style: &Style) -> String {
    if let Some(at) = since {
        text.push_str(&format!(", since {}", style.time(at)));
    }
    if let Some(at) = until {
        let end = style.time(at);
        match end.strip_prefix("in ") {
            Some(rest) => text.push_str(&format!(", until {rest} from now")),
            None => text.push_str(&format!(", until {end}")),
        }
    }
    text
}

/// A cause of waiting in words.
pub(super) fn cause(word: &str) -> &str {
    match word {
        "approval" => "an approval (`servo runs approve`)",
        "callback" => "a callback",
        "capacity" | "slot" => "a free place",
        "delay" => "its time",
        "draining" => "steps in flight",
        "event" => "an event",
        "handler" => "its handler",
        "invocation" => "another run",
        "pause" => "a resume (`servo runs resume`)",
        "retry" => "a retry",
        "signal" => "a signal",
        "timer" => "a wait",
        "worker" => "a worker",
        "queue" => "its turn",
        "operator" => "a resume",
        "compensation" => "the run that undoes it",
        other => other,
    }
}

fn waits_for(blocked: &BlockedBy, style: &Style) -> String {
    let mut text = clean(cause(&blocked.cause));
    if let Some(step) = &blocked.step_id {
        text.push_str(&format!(" of {step}"));
    }
    if let Some(name) = &blocked.name {
        text.push_str(&format!(" `{}`", clean(name)));
    }
    if let Some(reason) = &blocked.reason {
        text.push_str(&format!(" ({})", clean(reason)));
    }
    until(text, (blocked.since, blocked.earliest_at), style)
}

fn step_row(step: &StepSnapshot, style: &Style) -> Vec<Cell> {
    let attempt = match step.engine_attempt_id {
        // Handed out more than once.
        Some(engine) if engine > 1 => format!("{}.{engine}", step.logical_attempt_id),
        _ => step.logical_attempt_id.to_string(),
    };
    let artifacts = (!step.artifacts.is_empty()).then(|| count(step.artifacts.len() as u64, "artifact"));
    let detail = match (&step.error, &step.skip_reason) {
        (Some(error), _) => Some(format!("{}: {}", error.code, error.message)),
        (None, Some(reason)) => Some(reason.clone()),
        (None, None) => artifacts,
    };
    vec![
        Cell::new(step.step_id.as_str()),
        Cell::new(&attempt),
        Cell::status(step.status.as_str()),
        Cell::from(step.started_at.map(|at| style.time(at))),
        Cell::from(step.started_at.zip(step.completed_at).map(|(start, end)| took(end.since(start)))),
        Cell::from(detail),
    ]
}

fn artifact_row(artifact: &ArtifactRef, style: &Style) -> Vec<Cell> {
    vec![
        Cell::new(&artifact.kind),
        Cell::from(artifact.size_bytes.map(size)),
        Cell::from(artifact.expires_at.map(|at| style.time(at))),
        Cell::whole(&artifact.uri),
    ]
}
