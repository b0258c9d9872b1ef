//! A plan: steps and what each depends on. Parsed once, checked whole, indexed for scheduling.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_canon::Digest;

use crate::artifact::{SecretRef, check_uri};
use crate::ids::{Name, PlanId};
use crate::limits::STEP_ATTEMPTS_MAX;
use crate::{Invalid, StepId, TenantId, integer, locate};

/// A checked plan. Step numbers (`u32`) are positions in `steps` and never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PlanDoc", into = "PlanDoc")]
pub struct Plan {
    pub plan_id: PlanId,
    pub plan_version: String,
    pub schema_version: String,
    /// Which adapter runs the steps.
    pub engine_type: String,
    pub steps: Vec<PlanStep>,
    index: BTreeMap<StepId, u32>,
    dependencies: Vec<Vec<u32>>,
    dependents: Vec<Vec<u32>>,
}

/// One step as the plan defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    pub step_id: StepId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<StepId>,
    /// What the adapter gets; the engine does not look inside.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub with: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u64")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretRef>,
}

/// The planner's own retries of a failed step. Each makes a new logical attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// Attempts in all, the first one included.
    #[serde(deserialize_with = "integer::u32")]
    pub max_attempts: u32,
    #[serde(default, deserialize_with = "integer::u64")]
    pub delay_ms: u64,
}

/// The document form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDoc {
    pub plan_id: PlanId,
    pub plan_version: String,
    pub schema_version: String,
    #[serde(default = "default_engine")]
    pub engine_type: String,
    pub steps: Vec<PlanStep>,
}

fn default_engine() -> String {
    "mock".to_owned()
}

/// Points at a plan and pins its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRef {
    pub uri: String,
    pub sha256: Digest,
    pub schema_version: String,
    pub plan_id: PlanId,
    pub plan_version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerSource {
    Manual,
    Schedule,
    Webhook,
    Api,
}

/// Where a run belongs and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunContext {
    pub tenant_id: TenantId,
    pub project_id: Name,
    pub environment_id: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_source: Option<TriggerSource>,
}

impl PlanRef {
    pub fn check(&self) -> Result<(), Invalid> {
        check_uri(&self.uri).map_err(|e| e.inside("uri"))?;
        check_version("planVersion", &self.plan_version)?;
        check_version("schemaVersion", &self.schema_version)
    }
}

pub fn check_version(field: &str, text: &str) -> Result<(), Invalid> {
    let plain = text.bytes().all(|b| b.is_ascii_graphic() && b != b'|');
    if text.is_empty() || text.len() > 128 || !plain {
        return Err(Invalid::new(field, "has 1 to 128 printable ASCII characters and no `|`"));
    }
    Ok(())
}

/// Whether a text is a plan, and which field is wrong if it is none.
pub fn check_document(text: &str) -> Result<(), Invalid> {
    let doc: PlanDoc = serde_json::from_str(text).map_err(|error| locate::invalid(text, &error))?;
    Plan::try_from(doc).map(drop)
}

impl TryFrom<PlanDoc> for Plan {
    type Error = Invalid;

    fn try_from(doc: PlanDoc) -> Result<Self, Invalid> {
        check_version("planVersion", &doc.plan_version)?;
        check_version("schemaVersion", &doc.schema_version)?;
        check_version("engineType", &doc.engine_type)?;
        if doc.steps.is_empty() {
            return Err(Invalid::new("steps", "a plan has at least one step"));
        }
        let mut index = BTreeMap::new();
        for (number, step) in (0u32..).zip(&doc.steps) {
            step.check().map_err(|e| e.inside(&format!("steps/{number}")))?;
            if index.insert(step.step_id.clone(), number).is_some() {
                let reason = format!("`{}` is the id of an earlier step", step.step_id);
                return Err(Invalid::new(format!("steps/{number}/stepId"), reason));
            }
        }
        let mut dependencies = vec![Vec::new(); doc.steps.len()];
        let mut dependents = vec![Vec::new(); doc.steps.len()];
        for (number, step) in (0u32..).zip(&doc.steps) {
            for (position, dependency) in step.depends_on.iter().enumerate() {
                let field = || format!("steps/{number}/dependsOn/{position}");
                let Some(&on) = index.get(dependency) else {
                    return Err(Invalid::new(field(), format!("`{dependency}` is no step of this plan")));
                };
                if dependencies[number as usize].contains(&on) {
                    return Err(Invalid::new(field(), format!("`{dependency}` is named twice")));
                }
                dependencies[number as usize].push(on);
                dependents[on as usize].push(number);
            }
        }
        let plan = Self {
            plan_id: doc.plan_id,
            plan_version: doc.plan_version,
            schema_version: doc.schema_version,
            engine_type: doc.engine_type,
            steps: doc.steps,
            index,
            dependencies,
            dependents,
        };
        plan.check_acyclic()?;
        Ok(plan)
    }
}

impl From<Plan> for PlanDoc {
    fn from(plan: Plan) -> Self {
        Self {
            plan_id: plan.plan_id,
            plan_version: plan.plan_version,
            schema_version: plan.schema_version,
            engine_type: plan.engine_type,
            steps: plan.steps,
        }
    }
}

impl PlanStep {
    fn check(&self) -> Result<(), Invalid> {
        if let Some(retry) = &self.retry
            && !(1..=STEP_ATTEMPTS_MAX).contains(&retry.max_attempts)
        {
            return Err(Invalid::new("retry/maxAttempts", format!("is 1 to {STEP_ATTEMPTS_MAX}")));
        }
        if self.timeout_ms == Some(0) {
            return Err(Invalid::new("timeoutMs", "is at least 1"));
        }
        Ok(())
    }
}

impl Plan {
    pub fn number(&self, step: &StepId) -> Option<u32> {
        self.index.get(step).copied()
    }

    pub fn step(&self, number: u32) -> &PlanStep {
        &self.steps[number as usize]
    }

    pub fn dependencies(&self, number: u32) -> &[u32] {
        &self.dependencies[number as usize]
    }

    pub fn dependents(&self, number: u32) -> &[u32] {
        &self.dependents[number as usize]
    }

    /// Removes steps without open dependencies until none is left; what remains is on a cycle or behind one.
    fn check_acyclic(&self) -> Result<(), Invalid> {
        let mut open: Vec<usize> = self.dependencies.iter().map(Vec::len).collect();
        let mut free: Vec<u32> = (0u32..).zip(&open).filter(|(_, n)| **n == 0).map(|(i, _)| i).collect();
        let mut removed = 0;
        while let Some(step) = free.pop() {
            removed += 1;
            for &next in self.dependents(step) {
                open[next as usize] -= 1;
                if open[next as usize] == 0 {
                    free.push(next);
                }
            }
        }
        if removed == self.steps.len() {
            return Ok(());
        }
        let number = open.iter().position(|n| *n > 0).unwrap_or(0);
        let step = &self.steps[number].step_id;
        Err(Invalid::new(format!("steps/{number}/dependsOn"), format!("`{step}` is part of a cycle or behind one")))
    }
}

const PLAN_FIELDS: &[&str] = &["planId", "planVersion", "schemaVersion", "engineType", "steps"];
const STEP_FIELDS: &[&str] = &["stepId", "dependsOn", "with", "retry", "timeoutMs", "secrets"];
const RETRY_FIELDS: &[&str] = &["maxAttempts", "delayMs"];

/// Refuses fields that a plan does not have. Used where plans come in: a misspelt `dependOn` must not be dropped
/// silently. Stored plans are read without it, so that older readers accept newer plans.
pub fn check_known_fields(document: &Value) -> Result<(), Invalid> {
    let unknown = |value: &Value, known: &[&str], path: &str| match value {
        Value::Object(fields) => match fields.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let field = if path.is_empty() { key.clone() } else { format!("{path}/{key}") };
                Err(Invalid::new(field, format!("no such field; there are {}", known.join(", "))))
            }
            None => Ok(()),
        },
        _ => Err(Invalid::new(path, "is an object")),
    };
    unknown(document, PLAN_FIELDS, "")?;
    if let Some(Value::Array(steps)) = document.get("steps") {
        for (number, step) in steps.iter().enumerate() {
            unknown(step, STEP_FIELDS, &format!("steps/{number}"))?;
            if let Some(retry) = step.get("retry").filter(|retry| !retry.is_null()) {
                unknown(retry, RETRY_FIELDS, &format!("steps/{number}/retry"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(steps: &Value) -> Result<Plan, String> {
        let doc = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
        serde_json::from_value(doc).map_err(|e| e.to_string())
    }

    #[test]
    fn plans_with_holes_are_refused_and_name_the_field() {
        let cases = [
            (json!([]), "steps: a plan has at least one step"),
            (json!([{"stepId": "a"}, {"stepId": "a"}]), "steps/1/stepId"),
            (json!([{"stepId": "a", "dependsOn": ["b"]}]), "steps/0/dependsOn/0"),
            (json!([{"stepId": "a", "dependsOn": ["a"]}]), "cycle"),
            (json!([{"stepId": "a", "dependsOn": ["b"]}, {"stepId": "b", "dependsOn": ["a"]}]), "cycle"),
            (json!([{"stepId": "a", "retry": {"maxAttempts": 0}}]), "retry/maxAttempts"),
            (json!([{"stepId": "a", "secrets": [{"name": "k", "value": "hunter2"}]}]), "value"),
        ];
        for (steps, needle) in cases {
            let error = parse(&steps).unwrap_err();
            assert!(error.contains(needle), "{steps} gave {error}");
        }
    }

    #[test]
    fn a_diamond_is_indexed_both_ways() {
        let plan = parse(&json!([
            {"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}, {"stepId": "c", "dependsOn": ["a"]},
            {"stepId": "d", "dependsOn": ["b", "c"]},
        ]))
        .unwrap();
        assert_eq!(plan.dependents(0), [1, 2]);
        assert_eq!(plan.dependencies(3), [1, 2]);
    }

    #[test]
    fn misspelt_fields_are_refused_at_the_edge() {
        let doc = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": [{"stepId": "a", "dependOn": []}]});
        assert_eq!(check_known_fields(&doc).unwrap_err().field, "steps/0/dependOn");
        let doc = json!({"planId": "p", "steps": [{"stepId": "a", "retry": {"maxAttempts": 2, "delay": 5}}]});
        assert_eq!(check_known_fields(&doc).unwrap_err().field, "steps/0/retry/delay");
    }
}
