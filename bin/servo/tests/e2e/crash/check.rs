//! The checker: what must hold of a server after it has healed. Written against the API alone, so that it shares no code
//! with what it checks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::api::{Api, Start};
use crate::support::until;

/// What the clients know: the plan of each request, and the run they were told.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) requests: BTreeMap<String, Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) plan: Value,
    /// The run that was acknowledged, once one was.
    pub(crate) acked: Option<String>,
}

/// Checks everything and says what is wrong. An empty list is a pass.
pub(crate) async fn check(api: &Api, url: &str, ledger: &Ledger) -> Vec<String> {
    let mut findings = Vec::new();
    let mut runs = BTreeMap::new();
    for (request_id, entry) in &ledger.requests {
        // The same request again is the same run: an acknowledged start that was lost shows here.
        let run_id = match api.start(url, request_id, &entry.plan).await {
            Start::Acked { run_id, created } => {
                if created && entry.acked.is_some() {
                    findings.push(format!("{request_id}: acknowledged before, but started again"));
                }
                run_id
            }
            other => {
                findings.push(format!("{request_id}: {other:?} from a healthy server"));
                continue;
            }
        };
        if entry.acked.as_ref().is_some_and(|acked| *acked != run_id) {
            findings.push(format!("{request_id}: acknowledged as {:?}, now {run_id}", entry.acked));
        }
        if runs.insert(run_id.clone(), &entry.plan).is_some() {
            findings.push(format!("{request_id}: shares run {run_id} with another request"));
        }
    }
    // A server that forgot a start has failed. Whether its runs ever end is no longer worth the wait.
    if !findings.is_empty() {
        return findings;
    }
    for (run_id, plan) in runs {
        finish(api, url, &run_id).await;
        match api.events(url, &run_id).await {
            Some(events) => check_run(&run_id, plan, &events, &mut findings),
            None => findings.push(format!("{run_id}: its events cannot be read")),
        }
    }
    findings
}

/// Liveness: after the last fault every run comes to its end.
async fn finish(api: &Api, url: &str, run_id: &str) {
    until(&format!("end of run {run_id}"), async || {
        let (status, snapshot) = api.get(url, &format!("/v1/runs/{run_id}")).await?;
        let ended = matches!(snapshot["status"].as_str(), Some("COMPLETED" | "FAILED" | "CANCELLED"));
        (status == 200 && ended).then_some(())
    })
    .await;
}

/// Whatever a run is, its log has no holes and says nothing twice.
pub(crate) fn check_log(run_id: &str, events: &[Value], findings: &mut Vec<String>) {
    let mut finding = |text: String| findings.push(format!("{run_id}: {text}"));
    let sequences: Vec<u64> = events.iter().filter_map(|event| event["runSeq"].as_u64()).collect();
    if sequences != (1..=events.len() as u64).collect::<Vec<_>>() {
        finding(format!("sequences have holes: {sequences:?}"));
    }
    let keys: BTreeSet<_> = events.iter().filter_map(|event| event["idempotencyKey"].as_str()).collect();
    if keys.len() != events.len() {
        finding("an idempotency key stands twice".to_owned());
    }
}

fn check_run(run_id: &str, plan: &Value, events: &[Value], findings: &mut Vec<String>) {
    check_log(run_id, events, findings);
    let mut finding = |text: String| findings.push(format!("{run_id}: {text}"));
    let mut results: BTreeMap<(String, u64), u32> = BTreeMap::new();
    let mut done: BTreeSet<String> = BTreeSet::new();
    let mut ended = false;
    for event in events {
        let kind = event["eventType"].as_str().unwrap_or_default();
        let step = event["stepId"].as_str().unwrap_or_default().to_owned();
        if ended {
            finding(format!("{kind} after the end"));
        }
        match kind {
            "StepStarted" => {
                let wanted = plan["steps"].as_array().into_iter().flatten().find(|s| s["stepId"] == step.as_str());
                for on in wanted.and_then(|step| step["dependsOn"].as_array()).into_iter().flatten() {
                    if !done.contains(on.as_str().unwrap_or_default()) {
                        finding(format!("{step} started before {on}"));
                    }
                }
            }
            "StepCompleted" | "StepFailed" => {
                let attempt = event["logicalAttemptId"].as_u64().unwrap_or(0);
                *results.entry((step.clone(), attempt)).or_default() += 1;
                if kind == "StepCompleted" && !done.insert(step.clone()) {
                    finding(format!("{step} completed twice"));
                }
            }
            "RunCompleted" | "RunFailed" | "RunCancelled" => ended = true,
            _ => {}
        }
    }
    for ((step, attempt), count) in results {
        if count != 1 {
            finding(format!("attempt {attempt} of {step} has {count} results"));
        }
    }
    let steps = plan["steps"].as_array().map_or(0, Vec::len);
    if done.len() != steps {
        let cause = events.iter().find(|event| event["eventType"] == "RunFailed").map(|event| &event["rootCause"]);
        finding(format!("{} of {steps} steps completed, {cause:?}", done.len()));
    }
}
