//! Creating a run.

use std::sync::Arc;

use servo_model::event::{EventBody, RunApproved, RunQueued, RunStarted};
use servo_model::plan::Plan;
use servo_model::{PlanRef, RunContext, RunId, RunStatus, Timestamp};

use crate::admit::Admission;
use crate::command::StartRun;
use crate::decision::{Action, Decision};

pub(crate) fn decide(run_id: &RunId, start: &StartRun, now: Timestamp) -> Decision {
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
        plan: Some(start.plan.clone()),
        run_request_id: start.run_request_id.clone(),
        request_digest: start.request_digest,
        approval_required: start.approval_required,
        not_before,
        reason: None,
    })));
    if start.approval_required {
        return decision;
    }
    match start.admission {
        Admission::Now => {
            // Without a gate the run is queued, approved and started in one append.
            decision.fact(approved(1, None));
            if let Ok(plan) = serde_json::from_str::<Plan>(start.plan.get()) {
                decision.fact(started(run_id, 1, &plan.engine_type, &start.plan_ref, &start.context, now));
                for step in plan.steps.iter().filter(|step| step.depends_on.is_empty()) {
                    decision.act(Action::Dispatch { step_id: step.step_id.clone(), attempt: 1 });
                }
            }
        }
        Admission::Queue => decision.act(Action::Enqueue { not_before: now }),
        Admission::Delay { until } => decision.act(Action::Enqueue { not_before: until }),
    }
    decision
}

pub(crate) fn approved(round: u32, by: Option<&str>) -> EventBody {
    EventBody::RunApproved(RunApproved {
        status: RunStatus::Approved,
        logical_attempt_id: round,
        approved_by: by.map(str::to_owned),
    })
}

/// Engines in this process have no reference of their own: theirs is the run's id under the engine's name.
pub(crate) fn started(
    run_id: &RunId,
    round: u32,
    engine_type: &str,
    plan_ref: &Arc<PlanRef>,
    context: &Arc<RunContext>,
    now: Timestamp,
) -> EventBody {
    EventBody::RunStarted(Box::new(RunStarted {
        status: RunStatus::Running,
        logical_attempt_id: round,
        engine_run_ref: format!("{engine_type}:{run_id}"),
        engine_type: engine_type.to_owned(),
        plan_ref: plan_ref.clone(),
        context: context.clone(),
        started_at: now,
    }))
}
