//! What a decision consists of.

use servo_model::alert::AlertCode;
use servo_model::event::EventBody;
use servo_model::{RunId, StepId, Timestamp};

use crate::execution::StartExecution;
use crate::refusal::Refusal;

/// Facts to record and actions to perform, in order. With a `refusal`, the facts record that something was refused.
#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    pub facts: Vec<Fact>,
    pub actions: Vec<Action>,
    pub refusal: Option<Refusal>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub body: EventBody,
    /// When it happened, if that was before now.
    pub occurred_at: Option<Timestamp>,
}

/// A side effect. Those that must not be lost become rows in the transaction that records the facts; the last two are
/// performed after it and repeated by whoever needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Wait in the run queue.
    Enqueue { not_before: Timestamp },
    /// Leave the run queue.
    Dequeue,
    /// Hand out an attempt.
    Dispatch { step_id: StepId, attempt: u32 },
    /// Take back an attempt that was not handed out yet.
    Withdraw { step_id: StepId, attempt: u32 },
    /// The attempt was handed out.
    Notify { step_id: StepId, attempt: u32 },
    /// The attempt is handed out again.
    Adopt { step_id: StepId, attempt: u32 },
    /// The attempt reported success.
    Deliver { step_id: StepId, attempt: u32 },
    /// The attempt failed, or its result is not wanted any more.
    Abandon { step_id: StepId, attempt: u32, reason: String },
    /// Start the execution that an operation of this one waits for.
    Spawn(Spawn),
    /// Tell running code to stop.
    CancelInFlight,
    /// Tell an operator.
    Alert { code: AlertCode, message: String },
}

/// An execution that another one starts and waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    pub run_id: RunId,
    pub start: Box<StartExecution>,
}

impl Decision {
    pub(crate) fn fact(&mut self, body: EventBody) {
        self.facts.push(Fact { body, occurred_at: None });
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }
}
