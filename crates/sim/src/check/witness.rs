//! The log against witnesses outside it: clients, adapters, the bus.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::RunId;

use super::{Evidence, History};
use crate::campaign::Told;

pub(super) fn check(evidence: &Evidence, runs: &BTreeMap<&RunId, History<'_>>, found: &mut Vec<String>) {
    clients(evidence, runs, found);
    adapters(evidence, runs, found);
    bus(evidence, found);
}

/// What a client was told is so: its run exists, its request started one run, its signal is recorded once.
fn clients(evidence: &Evidence, runs: &BTreeMap<&RunId, History<'_>>, found: &mut Vec<String>) {
    let mut requests: BTreeMap<&str, &RunId> = BTreeMap::new();
    for told in &evidence.told {
        match told {
            Told::Started { run_id, request_id } => {
                if !runs.contains_key(run_id) {
                    found.push(format!("{run_id} was acknowledged and is not there"));
                }
                if let Some(id) = request_id
                    && *requests.entry(id).or_insert(run_id) != run_id
                {
                    found.push(format!("{id} started {run_id} and another"));
                }
            }
            Told::Signalled { run_id, signal_id } => {
                let recorded = runs.get(run_id).into_iter().flatten().filter(|fact| fact.text("signalId") == signal_id);
                if recorded.count() == 0 {
                    found.push(format!("{signal_id} to {run_id} was acknowledged and is not there"));
                }
            }
            Told::Failed => {}
        }
    }
    let mut by_request: BTreeMap<String, BTreeSet<&RunId>> = BTreeMap::new();
    for (run_id, history) in runs {
        let mut signals = BTreeSet::new();
        for fact in history {
            if fact.is("RunQueued") && !fact.text("runRequestId").is_empty() {
                let id = format!("{} {}", fact.stored.tenant, fact.text("runRequestId"));
                by_request.entry(id).or_default().insert(run_id);
            }
            if (fact.is("SignalAccepted") || fact.is("SignalRejected")) && !signals.insert(fact.text("signalId")) {
                found.push(format!("{run_id}: {} is recorded twice", fact.text("signalId")));
            }
        }
    }
    for (id, started) in by_request.iter().filter(|(_, started)| started.len() > 1) {
        found.push(format!("{id} started {} runs", started.len()));
    }
}

/// A result was made by somebody: the adapter was called for that very hand-over.
fn adapters(evidence: &Evidence, runs: &BTreeMap<&RunId, History<'_>>, found: &mut Vec<String>) {
    let called: BTreeSet<_> = evidence
        .executions
        .iter()
        .map(|e| (&e.run_id, e.step_id.as_str(), u64::from(e.logical_attempt), u64::from(e.engine_attempt)))
        .collect();
    for (run_id, history) in runs {
        for fact in history.iter().filter(|fact| fact.is("StepCompleted")) {
            let (step, attempt) = fact.attempt();
            if !called.contains(&(*run_id, step, attempt, fact.number("engineAttemptId"))) {
                found.push(format!(
                    "{run_id} {}: {step}/{attempt} succeeded and was never executed",
                    fact.stored.run_seq
                ));
            }
        }
    }
}

/// Everything recorded was delivered, and in order, where nothing was refused.
fn bus(evidence: &Evidence, found: &mut Vec<String>) {
    let delivered: BTreeSet<_> = evidence.delivered.iter().map(|delivery| delivery.event_id).collect();
    for stored in evidence.log.iter().filter(|stored| !stored.run_id.is_system()) {
        if !delivered.contains(&stored.event_id) {
            found.push(format!("{} {} was never delivered", stored.run_id, stored.run_seq));
        }
    }
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<&RunId, u64> = BTreeMap::new();
    for delivery in &evidence.delivered {
        // A repetition says nothing about order: consumers know it by its id.
        if !seen.insert(delivery.event_id) || evidence.refused.contains(&delivery.run_id) {
            continue;
        }
        if let Some(before) = last.insert(&delivery.run_id, delivery.run_seq)
            && before >= delivery.run_seq
        {
            found.push(format!("{}: {} was delivered after {before}", delivery.run_id, delivery.run_seq));
        }
    }
}
