//! Time passes: the drain timeout of a pause. Delayed attempts are woken by `decide` after every command.

use servo_model::alert::AlertCode;
use servo_model::event::{DrainTimedOut, EventBody};
use servo_model::{RunState, Timestamp};

use crate::decision::{Action, Decision};

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
    decision
}
