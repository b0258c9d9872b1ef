//! Time passes: the drain timeout of a pause, the end of a failed run's rest, the longest suspension. Delayed attempts are woken by `decide` after every command.

use servo_model::alert::AlertCode;
use servo_model::event::{DrainTimedOut, EventBody};
use servo_model::{RunState, RunStatus, Timestamp};

use crate::decision::{Action, Decision};
use crate::execution::compensation::dead_lettered;
use crate::execution::settle::suspended_too_long;

pub(crate) fn decide(state: &RunState, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if state.is_draining() && state.drain_until.is_some_and(|until| until <= now) {
        let in_flight = state.in_flight;
        decision.fact(EventBody::DrainTimedOut(DrainTimedOut { logical_attempt_id: state.pauses, in_flight }));
        decision.act(Action::Alert {
            code: AlertCode::PauseDrainTimeout,
            message: format!("{in_flight} steps were still in flight at the drain timeout"),
        });
    }
    if state.dead_letter_at().is_some_and(|at| at <= now) {
        decision.fact(dead_lettered(state, "nobody retried it in time"));
    }
    if let Some(execution) = state.execution.as_deref().filter(|_| state.status == RunStatus::Paused) {
        suspended_too_long(state, execution, &mut decision, now);
    }
    decision
}
