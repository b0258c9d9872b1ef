//! What an executed command led to.

use servo_machine::Refusal;
use servo_model::{RunId, RunSnapshot};

#[derive(Debug, Clone)]
pub struct Outcome {
    pub run_id: RunId,
    /// How many events were recorded.
    pub recorded: usize,
    /// Set when what was recorded is a refusal (a rejected signal, an orphaned task).
    pub refusal: Option<Refusal>,
    pub snapshot: RunSnapshot,
}
