//! Time by the store's clock: nothing that waits for a time happens before it.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_model::{RunId, Timestamp};

use super::History;

/// By how much a delay may come out shorter than planned: a decision is made a call or two before it is recorded.
const SLACK_MS: i64 = 5_000;

pub(super) fn check(runs: &BTreeMap<&RunId, History<'_>>, found: &mut Vec<String>) {
    for (run_id, history) in runs {
        let mut due: BTreeMap<(&str, u64), Timestamp> = BTreeMap::new();
        let (mut queued, mut drain) = (None, None);
        let mut failed_at: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for fact in history {
            let at = fact.stored.emitted_at;
            let mut early = |until: Option<Timestamp>, what: &str| {
                if let Some(until) = until.filter(|until| at < *until) {
                    found.push(format!("{run_id} {}: {what} at {at}, before {until}", fact.stored.run_seq));
                }
            };
            match fact.stored.event_type.as_ref() {
                "RunQueued" => queued = time(&fact.body["notBefore"]),
                "RunStarted" => early(queued, "started"),
                "RunPaused" => drain = time(&fact.body["drainUntil"]),
                "DrainTimedOut" => early(drain, "gave up draining"),
                "StepFailed" => drop(failed_at.insert(fact.text("stepId"), at)),
                "StepRetryScheduled" => {
                    let not_before = time(&fact.body["notBefore"]);
                    if let Some(not_before) = not_before {
                        due.insert(fact.attempt(), not_before);
                        let delay = delay_ms(history, fact.text("stepId"));
                        let failed = failed_at.get(fact.text("stepId")).copied().unwrap_or(at);
                        let short = failed.as_millis() + delay - SLACK_MS > not_before.as_millis();
                        let long = failed.as_millis() + delay + SLACK_MS < not_before.as_millis();
                        if short || long {
                            found.push(format!(
                                "{run_id} {}: delay of {delay} ms until {not_before}, failed {failed}",
                                fact.stored.run_seq
                            ));
                        }
                    }
                }
                "StepStarted" => early(due.get(&fact.attempt()).copied(), "started"),
                _ => {}
            }
        }
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(|text| Timestamp::parse(text).ok())
}

/// What the plan says.
fn delay_ms(history: &History<'_>, step: &str) -> i64 {
    let plan = history.iter().find(|fact| fact.is("RunQueued")).map(|fact| &fact.body["plan"]["steps"]);
    let mut steps = plan.and_then(Value::as_array).into_iter().flatten();
    steps
        .find(|planned| planned["stepId"] == step)
        .and_then(|planned| planned["retry"]["delayMs"].as_i64())
        .unwrap_or(0)
}
