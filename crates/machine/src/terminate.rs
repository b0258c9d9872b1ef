//! Forced end of a run: like a cancel, from any state that is not terminal, without being a signal.

use servo_model::RunState;
use servo_model::limits::clip;

use crate::cancel;
use crate::decision::Decision;
use crate::refusal::Refusal;

pub(crate) fn decide(state: &RunState, by: &str, reason: &str) -> Result<Decision, Refusal> {
    if state.status.is_terminal() {
        return Err(Refusal::Closed(state.status));
    }
    let mut decision = Decision::default();
    cancel::decide(state, by, Some(clip(reason)), &mut decision)?;
    Ok(decision)
}
