//! Creating the run of a function.

use servo_model::event::{EventBody, RunQueued};
use servo_model::{RunId, RunStatus, Timestamp};

use super::{StartExecution, settle};
use crate::admit::Admission;
use crate::decision::{Action, Decision};
use crate::start::{approved, started};

/// The engine type that the run's canonical events name.
pub(crate) const ENGINE_TYPE: &str = "function";

pub(crate) fn decide(run_id: &RunId, start: &StartExecution, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    let not_before = match start.admission {
        Admission::Now | Admission::Queue => None,
        Admission::Delay { until } => Some(until),
    };
    decision.fact(EventBody::RunQueued(Box::new(RunQueued {
        status: RunStatus::Pending,
        logical_attempt_id: 1,
        plan_ref: start.plan_ref.clone(),
        context: start.context.clone(),
        plan: None,
        run_request_id: start.run_request_id.clone(),
        request_digest: start.request_digest,
        approval_required: false,
        not_before,
        reason: None,
    })));
    decision.fact(EventBody::ExecutionStarted(start.start.clone()));
    match start.admission {
        Admission::Now => {
            decision.fact(approved(1, None));
            decision.fact(started(run_id, 1, ENGINE_TYPE, &start.plan_ref, &start.context, now));
            decision.act(settle::dispatch(1));
        }
        Admission::Queue => decision.act(Action::Enqueue { not_before: now }),
        Admission::Delay { until } => decision.act(Action::Enqueue { not_before: until }),
    }
    decision
}
