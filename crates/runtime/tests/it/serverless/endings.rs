//! What is recorded behind the end of a run.

use std::time::Duration;

use serde_json::json;
use servo_entrypoint::InvocationStatus as S;
use servo_model::{RunId, RunState, RunStatus};

use super::compensation::{handler, order};
use super::support::Bed;
use crate::executions::handler::Answer;

/// The statuses that the log leads through, and the types of the events behind the first end.
fn lived(bed: &Bed, id: &str) -> (Vec<RunStatus>, Vec<String>) {
    let mut state = RunState::new(RunId::parse(id).unwrap());
    let (mut statuses, mut behind) = (Vec::new(), Vec::new());
    for event in bed.world.events(&state.run_id) {
        if state.status.is_terminal() {
            behind.push(event.body.event_type().to_owned());
        }
        state = state.apply(&event).0;
        if statuses.last() != Some(&state.status) {
            statuses.push(state.status);
        }
    }
    (statuses, behind)
}

/// ES-021: facts of an undoing and of a dead letter come behind the end, and the run stays what it was.
#[test]
fn facts_behind_the_end_change_no_status() {
    let bed = Bed::with(101, |platform| platform.dead_letter_grace = Duration::from_secs(600));
    let ended = |id: &str| {
        let (statuses, behind) = lived(&bed, id);
        assert_eq!(statuses.last(), Some(&RunStatus::Failed));
        assert_eq!(statuses.iter().filter(|status| status.is_terminal()).count(), 1, "{statuses:?}");
        behind
    };
    let (undo, _) = handler(&bed, "undo", true);
    let undone = bed.start(&order(&bed, "undone", &undo), json!({})).unwrap().record.invocation_id;
    bed.until(&undone, S::Compensated);
    assert_eq!(ended(&undone), ["CompensationStarted", "CompensationEnded"]);

    let (cannot, _) = handler(&bed, "cannot", false);
    let stuck = bed.start(&order(&bed, "stuck", &cannot), json!({})).unwrap().record.invocation_id;
    bed.until(&stuck, S::DeadLettered);
    assert_eq!(ended(&stuck), ["CompensationStarted", "CompensationEnded", "RunDeadLettered"]);

    let fails = || async move {
        let answer: Answer = Ok(json!({"Status": "FAILED", "Error": {"ErrorMessage": "no"}}).to_string());
        answer
    };
    let address = bed.workflow("given_up", move |_| fails());
    let given_up = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&given_up, S::Failed);
    bed.world.pass(Duration::from_secs(660));
    assert_eq!(bed.get(&given_up).status, S::DeadLettered);
    assert_eq!(ended(&given_up), ["RunDeadLettered"]);
}
