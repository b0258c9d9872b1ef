//! The log by itself: sequences, keys, one result per attempt, causes before effects, and rows that agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_model::RunId;

use super::{Evidence, Fact, History};

pub(super) fn check(evidence: &Evidence, runs: &BTreeMap<&RunId, History<'_>>, found: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    for pair in evidence.log.windows(2) {
        if pair[0].position >= pair[1].position || pair[0].emitted_at > pair[1].emitted_at {
            found.push(format!("the log is out of order at {}", pair[1].position));
        }
    }
    for stored in &evidence.log {
        if !ids.insert(stored.event_id) {
            found.push(format!("event id {} stands twice", stored.event_id));
        }
    }
    for (run_id, history) in runs {
        sequence(run_id, history, found);
        attempts(run_id, history, found);
        causes(run_id, history, found);
        let status = lifecycle(run_id, history, found);
        let row = evidence.rows.iter().find(|row| row.run_id == **run_id);
        match row {
            Some(row) if row.status.as_str() == status => {}
            Some(row) => found.push(format!("{run_id}: the row says {}, the log {status}", row.status.as_str())),
            None => found.push(format!("{run_id}: events without a row")),
        }
        if let Some(row) = row
            && history.iter().any(|fact| fact.stored.tenant != row.tenant)
        {
            found.push(format!("{run_id}: events of another tenant"));
        }
    }
}

fn sequence(run_id: &RunId, history: &History<'_>, found: &mut Vec<String>) {
    let mut keys = BTreeSet::new();
    for (expected, fact) in (1..).zip(history) {
        if fact.stored.run_seq != expected {
            found.push(format!("{run_id}: sequence {} where {expected} was due", fact.stored.run_seq));
        }
        if !keys.insert(fact.stored.idempotency_key) {
            found.push(format!("{run_id}: key of event {} stands twice", fact.stored.run_seq));
        }
    }
}

/// At most one start and one end per attempt, the start first, and hand-overs with growing numbers.
fn attempts(run_id: &RunId, history: &History<'_>, found: &mut Vec<String>) {
    let mut started: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for fact in history {
        let (step, attempt) = fact.attempt();
        let at = fact.stored.run_seq;
        match fact.stored.event_type.as_ref() {
            "StepStarted" => {
                let again = started.insert((step, attempt), 1).is_some();
                if again || ended.contains(&(step, attempt)) {
                    found.push(format!("{run_id} {at}: {step}/{attempt} starts again"));
                }
            }
            "StepTakenOver" => {
                let engine = fact.number("engineAttemptId");
                let before = started.insert((step, attempt), engine);
                if before.is_none_or(|before| before >= engine) || ended.contains(&(step, attempt)) {
                    found.push(format!("{run_id} {at}: {step}/{attempt} is taken over out of turn"));
                }
            }
            "StepCompleted" | "StepFailed" => {
                if started.get(&(step, attempt)) != Some(&fact.number("engineAttemptId")) {
                    found.push(format!(
                        "{run_id} {at}: {step}/{attempt} ends by a hand-over that is not the current one"
                    ));
                }
                if !ended.insert((step, attempt)) {
                    found.push(format!("{run_id} {at}: {step}/{attempt} has two results"));
                }
            }
            "StepSkipped" => {
                let again = !ended.insert((step, attempt));
                if again || started.contains_key(&(step, attempt)) {
                    found.push(format!("{run_id} {at}: {step}/{attempt} is skipped after it began"));
                }
            }
            _ => {}
        }
    }
    // A run ends by itself only when everything that began has ended.
    if history.last().is_some_and(|fact| fact.is("RunCompleted") || fact.is("RunFailed")) {
        for (step, attempt) in started.keys().filter(|started| !ended.contains(*started)) {
            found.push(format!("{run_id}: {step}/{attempt} began and never ended"));
        }
    }
}

/// A step starts after everything it depends on, and not in a run that is not running.
fn causes(run_id: &RunId, history: &History<'_>, found: &mut Vec<String>) {
    let mut depends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let plan = history.iter().find(|fact| fact.is("RunQueued")).map(|fact| &fact.body["plan"]["steps"]);
    for step in plan.and_then(Value::as_array).into_iter().flatten() {
        let on = step["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        depends.insert(step["stepId"].as_str().unwrap_or_default(), on);
    }
    let mut satisfied = BTreeSet::new();
    let mut running = false;
    for fact in history {
        let step = fact.text("stepId");
        let upstream = fact.text("cause") == "upstream_failed" || fact.text("cause") == "UPSTREAM_FAILED";
        match fact.stored.event_type.as_ref() {
            "RunStarted" | "RunResumed" => running = true,
            "RunPaused" | "RunCompleted" | "RunFailed" | "RunCancelled" => running = false,
            "StepCompleted" => drop(satisfied.insert(step)),
            "StepSkipped" if !upstream => drop(satisfied.insert(step)),
            "StepRetryScheduled" => drop(satisfied.remove(step)),
            "StepStarted" => {
                let missing = depends.get(step).into_iter().flatten().find(|on| !satisfied.contains(**on));
                if let Some(on) = missing {
                    found.push(format!("{run_id} {}: {step} starts before {on} is done", fact.stored.run_seq));
                }
                if !running {
                    found.push(format!("{run_id} {}: {step} starts in a run that does not run", fact.stored.run_seq));
                }
            }
            _ => {}
        }
    }
}

/// The status by the run's own events; nothing happens after an end but a retry of a failed run.
fn lifecycle(run_id: &RunId, history: &History<'_>, found: &mut Vec<String>) -> &'static str {
    let mut status = "";
    for fact in history {
        let closed = matches!(status, "COMPLETED" | "CANCELLED" | "FAILED");
        let reopens = status == "FAILED" && (fact.is("RunQueued") || opens_again(fact));
        if closed && !reopens {
            found.push(format!("{run_id} {}: {} after the end", fact.stored.run_seq, fact.stored.event_type));
        }
        status = match fact.stored.event_type.as_ref() {
            "RunQueued" => "PENDING",
            "RunApproved" => "APPROVED",
            "RunStarted" | "RunResumed" => "RUNNING",
            "RunPaused" => "PAUSED",
            "RunCompleted" => "COMPLETED",
            "RunFailed" => "FAILED",
            "RunCancelled" => "CANCELLED",
            _ => status,
        };
    }
    status
}

fn opens_again(fact: &Fact<'_>) -> bool {
    fact.is("SignalAccepted") && matches!(fact.text("signalType"), "RETRY_RUN" | "RETRY_STEP")
}
