//! What must hold of every execution once the server has healed. Written against the API and the ledger alone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::api;
use super::ledger::Ledger;
use super::worker::{Op, Program};
use crate::crash::check::check_log;
use crate::support::api::Api;

/// Waits for the execution's end, and says what is wrong with it.
pub(super) async fn check(url: &str, arn: &str, program: &Program, ledger: &Ledger, patience: Duration) -> Vec<String> {
    let (http, mut findings) = (api::client(), Vec::new());
    let name = &program.name;
    let end = async {
        loop {
            match api::get(&http, url, arn, "").await {
                Some(execution) if execution["Status"] != "RUNNING" => return execution,
                _ => {
                    let _ = tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await;
                }
            }
        }
    };
    let Ok(execution) = tokio::time::timeout(patience, end).await else {
        return vec![format!("{name}: does not end ({:?})", program.ops)];
    };
    let result: Option<Vec<Option<u64>>> =
        execution["Result"].as_str().and_then(|result| serde_json::from_str(result).ok());
    let told = ledger.outcomes(name, program.ops.len());
    if execution["Status"] != "SUCCEEDED" || result.as_ref() != Some(&told) {
        findings.push(format!("{name}: the handler was told {told:?}, and it ended with {execution}"));
    }
    let history = api::get(&http, url, arn, "/history").await.unwrap_or_default();
    check_history(name, program, history["Events"].as_array().map_or(&[], Vec::as_slice), &mut findings);
    let run_id = arn.rsplit('/').next().unwrap_or_default();
    match Api::new().events(url, run_id).await {
        Some(events) => check_log(run_id, &events, &mut findings),
        None => findings.push(format!("{name}: its events cannot be read")),
    }
    findings
}

fn check_history(name: &str, program: &Program, events: &[Value], findings: &mut Vec<String>) {
    let mut finding = |text: String| findings.push(format!("{name}: {text}"));
    let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
    let mut due: BTreeMap<&str, f64> = BTreeMap::new();
    for (number, event) in (1..).zip(events) {
        let kind = event["EventType"].as_str().unwrap_or_default();
        let id = event["Id"].as_str().unwrap_or_default();
        if event["EventId"] != number {
            finding(format!("event {number} has the number {}", event["EventId"]));
        }
        if ["StepSucceeded", "ContextSucceeded", "WaitSucceeded", "CallbackSucceeded", "ChainedInvokeSucceeded"]
            .contains(&kind)
            && !polls_on(event)
        {
            *ends.entry(id).or_default() += 1;
        }
        if kind == "WaitStarted"
            && let Some(at) = event["WaitStartedDetails"]["ScheduledEndTimestamp"].as_f64()
        {
            due.insert(id, at);
        }
        if kind == "WaitSucceeded" {
            match (due.get(id), event["EventTimestamp"].as_f64()) {
                (Some(due), Some(at)) if at >= *due => {}
                (due, at) => finding(format!("a wait until {due:?} ended at {at:?}")),
            }
        }
        if kind == "ExecutionSucceeded" && number != events.len() {
            finding("something happened after the end".to_owned());
        }
    }
    for (id, count) in &ends {
        if *count != 1 {
            finding(format!("operation {id} has {count} outcomes"));
        }
    }
    let operations: usize = program.ops.iter().map(operations).sum();
    if ends.len() != operations {
        finding(format!("{} operations have an outcome, not {operations}", ends.len()));
    }
}

/// A condition that was looked at and does not hold yet: no outcome.
fn polls_on(event: &Value) -> bool {
    !event["StepSucceededDetails"]["RetryDetails"]["NextAttemptDelaySeconds"].is_null()
}

/// How many operations of the history one of the program's comes to.
fn operations(op: &Op) -> usize {
    match op {
        Op::Step(_) | Op::Wait | Op::Call | Op::Poll | Op::Gate => 1,
        // A context around a callback and its submitter.
        Op::Callback => 3,
        // A context around the items, and for each one a context and its step.
        Op::Map(items) => 1 + 2 * usize::try_from(*items).unwrap_or(0),
    }
}
