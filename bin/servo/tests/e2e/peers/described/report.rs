//! What a campaign did, by the lines that schemathesis writes about every request and every check of its answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// Of a hundred operations so many must have been carried out at least once. With fewer, most of what was sent was refused at the door.
const REACHED_PERCENT: usize = 95;
/// The HTTP library's answer to heads that are longer than it reads, before there is a request. No operation answers so.
const HEAD_TOO_LARGE: u64 = 431;

#[derive(Debug, Default)]
pub(super) struct Report {
    phases: BTreeMap<String, usize>,
    statuses: BTreeMap<u64, usize>,
    checks: BTreeMap<String, usize>,
    /// Operations, and whether one of their answers said that it was done.
    reached: BTreeMap<String, bool>,
    failures: BTreeSet<String>,
}

impl Report {
    pub(super) fn of(text: &str, operations: &[String]) -> Self {
        let reached = operations.iter().map(|name| (name.clone(), false)).collect();
        let mut report = Self { reached, ..Self::default() };
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).expect("a line of the report is JSON");
            if let Some(scenario) = event.get("ScenarioFinished") {
                report.scenario(scenario);
            }
            if let Some(error) = event.get("NonFatalError").or_else(|| event.get("FatalError")) {
                report.failures.insert(format!("the tester: {error}"));
            }
        }
        report
    }

    fn scenario(&mut self, scenario: &Value) {
        let phase = scenario["phase"].as_str().expect("a phase");
        let recorder = &scenario["recorder"];
        let none = serde_json::Map::new();
        let interactions = recorder["interactions"].as_object().unwrap_or(&none);
        *self.phases.entry(phase.to_owned()).or_default() += interactions.len();
        let status_of = |id: &str| interactions.get(id).and_then(|sent| sent["response"]["status_code"].as_u64());
        for (id, sent) in interactions {
            let asked = &recorder["cases"][id]["value"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{} {}", text(&asked["method"]), text(&asked["path"]));
            let Some(status) = status_of(id) else {
                self.failures.insert(format!("{name}: no answer to {}", sent["request"]["uri"]));
                continue;
            };
            *self.statuses.entry(status).or_default() += 1;
            if (200..300).contains(&status)
                && let Some(reached) = self.reached.get_mut(&name)
            {
                *reached = true;
            }
            if status >= 500 {
                self.failures.insert(format!("{name}: {status}"));
            }
        }
        for (id, checks) in recorder["checks"].as_object().unwrap_or(&none) {
            for check in checks.as_array().expect("a list") {
                let name = check["name"].as_str().expect("a name");
                *self.checks.entry(name.to_owned()).or_default() += 1;
                let failure = &check["failure_info"]["failure"];
                if check["status"] == "failure" && !is_known(name, failure, status_of(id)) {
                    self.failures.insert(format!("{name}: {}: {}", failure["operation"], failure["message"]));
                }
            }
        }
    }

    fn sent(&self) -> usize {
        self.phases.values().sum()
    }

    /// Answers that were looked at so.
    pub(super) fn checked(&self, check: &str) -> usize {
        self.checks.get(check).copied().unwrap_or(0)
    }

    /// Everything that a campaign must not find, and what makes it worth nothing.
    pub(super) fn complaints(&self, requests: usize) -> Vec<String> {
        let mut all: Vec<String> = self.failures.iter().cloned().collect();
        if self.sent() < requests {
            all.push(format!("only {} requests were sent, not {requests}", self.sent()));
        }
        for phase in super::PHASES.split(',') {
            if self.phases.get(phase).is_none_or(|sent| *sent == 0) {
                all.push(format!("nothing was sent in the phase {phase}"));
            }
        }
        let missed: Vec<&String> =
            self.reached.iter().filter(|(_, reached)| !**reached).map(|(name, _)| name).collect();
        if missed.len() * 100 > self.reached.len() * (100 - REACHED_PERCENT) {
            all.push(format!(
                "{} of {} operations were never carried out: {missed:?}",
                missed.len(),
                self.reached.len()
            ));
        }
        all
    }
}

/// What the tester takes for a failure and is none.
fn is_known(check: &str, failure: &Value, status: Option<u64>) -> bool {
    let message = failure["message"].as_str().unwrap_or_default();
    match check {
        "status_code_conformance" | "negative_data_rejection" if status == Some(HEAD_TOO_LARGE) => true,
        // A header that helps to find a request again, or where a stream was, is left aside when it makes no sense: the request is not
        // worse for it. Headers are also texts, whatever they look like.
        "negative_data_rejection" => {
            let (_, wrong) = message.split_once("Invalid component").unwrap_or_default();
            let others = ["in body", "in query", "in path", "- body", "- query", "- path", "Authorization"];
            let helps = ["X-Correlation-Id", "Last-Event-ID"].iter().any(|name| wrong.contains(name));
            helps && !others.iter().any(|other| wrong.contains(other))
        }
        _ => false,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = self.reached.values().filter(|reached| **reached).count();
        writeln!(f, "{} requests {:?}, answers {:?}", self.sent(), self.phases, self.statuses)?;
        writeln!(f, "{reached} of {} operations carried out; checks {:?}", self.reached.len(), self.checks)
    }
}
