//! Idempotency keys. The published formula: SHA-256 over the parts joined by `|`, as 64 hex digits.

use servo_canon::Digest;

use crate::{PlanId, RunId, TenantId};

/// Key of a step event, or of a run event with `step` = `RUN`. For run events that can recur, `logical_attempt` is the
/// occurrence number, so that a second pause is not taken for the first.
pub fn idempotency_key(
    run_id: &RunId,
    step: &str,
    logical_attempt: u32,
    event_type: &str,
    plan_version: &str,
) -> Digest {
    let attempt = logical_attempt.to_string();
    Digest::of_parts(&[run_id.as_str(), step, &attempt, event_type, plan_version], '|')
}

/// Key of a request to start a run: the same request never starts two.
pub fn run_request_key(
    tenant: &TenantId,
    project: &str,
    environment: &str,
    plan: &PlanId,
    plan_version: &str,
    run_request_id: &str,
) -> Digest {
    Digest::of_parts(&[tenant.as_str(), project, environment, plan.as_str(), plan_version, run_request_id], '|')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// ES-032, ES-033: the published vectors.
    #[test]
    fn keys_match_the_vectors() {
        let vectors: Vec<Value> =
            serde_json::from_str(include_str!("../../../../spec/vectors/idempotency_keys.json")).unwrap();
        assert!(!vectors.is_empty());
        for v in vectors {
            let text = |name: &str| v[name].as_str().unwrap();
            let run = RunId::parse(text("runId")).unwrap();
            let attempt = u32::try_from(v["logicalAttemptId"].as_u64().unwrap()).unwrap();
            let key = idempotency_key(&run, text("stepId"), attempt, text("eventType"), text("planVersion"));
            assert_eq!(key.to_string(), text("idempotencyKey"));
        }
    }

    /// ES-072
    #[test]
    fn a_request_key_joins_all_six_parts() {
        let key = run_request_key(
            &TenantId::parse("acme").unwrap(),
            "proj",
            "prod",
            &PlanId::parse("plan").unwrap(),
            "1",
            "req-1",
        );
        assert_eq!(key, Digest::of(b"acme|proj|prod|plan|1|req-1"));
    }
}
