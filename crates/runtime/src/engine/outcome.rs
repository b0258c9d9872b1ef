//! What an executed command led to.

use servo_machine::Refusal;
use servo_model::RunId;

/// `T` is what the caller wanted to see of the state: nothing by default, because a command costs what it touches and a whole
/// snapshot costs what the run has done so far.
#[derive(Debug, Clone)]
pub struct Outcome<T = ()> {
    pub run_id: RunId,
    /// How many events were recorded.
    pub recorded: usize,
    /// Set when what was recorded is a refusal (a rejected signal, an orphaned task).
    pub refusal: Option<Refusal>,
    pub view: T,
}

impl Outcome {
    pub(super) fn seen_as<T>(self, view: T) -> Outcome<T> {
        let Outcome { run_id, recorded, refusal, view: () } = self;
        Outcome { run_id, recorded, refusal, view }
    }
}
