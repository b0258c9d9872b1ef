//! Limits: the adapter's own closed set, the tenant's defaults for what is left out, and its quotas for what is not.

use serde_json::{Map, Value};
use servo_model::limits::clip;

use super::issue::{Place, join, unknown};
use super::{ISSUES_MAX, Validation, kinds};
use crate::gts;
use crate::schemas::{Properties, fill_defaults, keyword};
use crate::types::ValidationIssue;

const PATH: &str = "$.traits.limits";

/// Checks the limits of a document and fills in what the tenant's policy says.
pub(super) fn check(all: &Validation<'_>, document: &mut Value, issues: &mut Vec<ValidationIssue>) {
    let adapter = document.pointer("/implementation/adapter").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(Value::Object(limits)) = document.pointer_mut("/traits/limits") else { return };
    // The adapter is at fault then, and that is said elsewhere.
    if !all.adapters.contains(&adapter.as_str()) {
        return;
    }
    let derived = gts::limits_of(&adapter).and_then(|id| all.types.get(&id));
    let Some(schema) = derived.or_else(|| all.types.get(gts::LIMITS)) else { return };
    let known = Properties::of(all.types, &schema);
    match all.types.compile(&schema) {
        Ok(validator) => {
            let copy = Value::Object(limits.clone());
            Place { types: all.types, schema: &schema, document: &copy, base: PATH }.collect(&validator, issues);
        }
        Err(fault) => issues.push(ValidationIssue::new(kinds::INVALID_SCHEMA, PATH, fault.message)),
    }
    for name in limits.keys().filter(|name| known.get(name).is_none()).take(ISSUES_MAX) {
        let mut issue = unknown(PATH, name, known.names());
        issue.message = format!("the adapter `{adapter}` has no limit `{}`", clip(name));
        issues.push(issue);
    }
    quotas(all, limits, issues);
    fill(all, &known, limits);
    if let Some(limits) = document.pointer_mut("/traits/limits") {
        fill_defaults(all.types, &schema, limits);
    }
}

/// The tenant's quotas and defaults of the limits that have them.
fn of_policy(all: &Validation<'_>) -> [(&'static str, f64, f64); 3] {
    let (quotas, defaults) = (&all.policy.quotas, &all.policy.defaults);
    [
        ("timeout_seconds", float(quotas.max_execution_duration_seconds), float(defaults.timeout_seconds)),
        ("memory_mb", float(quotas.max_memory_per_execution_mb), float(defaults.memory_mb)),
        ("cpu", decimal(quotas.max_cpu_per_execution), decimal(defaults.cpu)),
    ]
}

fn quotas(all: &Validation<'_>, limits: &Map<String, Value>, issues: &mut Vec<ValidationIssue>) {
    for (name, quota, _) in of_policy(all) {
        if limits.get(name).and_then(Value::as_f64).is_some_and(|value| value > quota) {
            let issue = ValidationIssue::new(kinds::LIMIT_EXCEEDED, join(PATH, name), "more than the tenant's quota");
            issues.push(issue.suggest(format!("use at most {quota}, or have the quota raised")));
        }
    }
}

/// What is left out is the tenant's default, where the adapter knows such a limit; kept inside what adapter and quota allow, so
/// that nobody is refused for a value that they did not choose.
fn fill(all: &Validation<'_>, known: &Properties, limits: &mut Map<String, Value>) {
    for (name, quota, default) in of_policy(all) {
        let Some(schema) = known.get(name).filter(|_| !limits.contains_key(name)) else { continue };
        let bound = |keyword_name: &str| keyword(all.types, schema, keyword_name).and_then(|value| value.as_f64());
        let value = default.min(quota);
        let value = value.min(bound("maximum").unwrap_or(value)).max(bound("minimum").unwrap_or(value));
        let is_whole = keyword(all.types, schema, "type").is_some_and(|kind| kind == "integer");
        limits.insert(name.to_owned(), if is_whole { whole(value) } else { value.into() });
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits above 2^53 are refused")]
fn float(number: u64) -> f64 {
    number as f64
}

/// The decimal that the small number was written as.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
fn whole(number: f64) -> Value {
    Value::from(number as u64)
}
