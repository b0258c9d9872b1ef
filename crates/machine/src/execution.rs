//! Durable executions: a function's handler is invoked, records operations, returns, and is invoked again when something it
//! waits for has happened. One file per command; the rules are those of the published API.

pub(crate) mod callback;
pub(crate) mod chained;
pub(crate) mod checkpoint;
pub(crate) mod compensation;
pub(crate) mod descendants;
pub(crate) mod end;
pub(crate) mod handler;
pub(crate) mod message;
pub(crate) mod reopen;
pub(crate) mod settle;
pub(crate) mod size;
pub(crate) mod start;

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_canon::Digest;
use servo_model::event::{ExecutionStarted, Lineage};
use servo_model::execution::{Ended, Execution};
use servo_model::operation::{ErrorObject, OperationUpdate};
use servo_model::{PlanRef, RunContext, RunId, RunState, RunStatus, Timestamp};

use crate::admit::Admission;
use crate::command::Policy;
use crate::decision::{Decision, Spawn};
use crate::refusal::Refusal;

#[derive(Debug, Clone)]
pub enum ExecutionCommand {
    /// The handler is about to be called.
    Invoke {
        invocation: u32,
        request_id: String,
    },
    /// The node that had called the handler is gone.
    Lose {
        invocation: u32,
    },
    /// The handler has answered, or will not.
    Return {
        invocation: u32,
        answer: Answer,
        used: Used,
    },
    Checkpoint(Checkpoint),
    /// Whoever has a callback answers it.
    Callback {
        operation_id: String,
        answer: CallbackAnswer,
    },
    /// An execution that this one waits for is over.
    ChainedEnded {
        operation_id: String,
        ended: Ended,
    },
    /// The run that was to undo this one is over, or could not be started.
    Compensated {
        run_id: Option<RunId>,
        error: Option<ErrorObject>,
    },
    Stop {
        error: ErrorObject,
        by: String,
    },
    /// A run above this one was cancelled, or ran out of time. It says nothing to a run that is not below that one.
    EndWith {
        ancestor: RunId,
    },
}

/// What an invocation used, where that can be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu_ms: Option<u32>,
    pub memory_mb: Option<u32>,
    /// How long the call waited until somebody took it.
    pub waited_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartExecution {
    pub start: Arc<ExecutionStarted>,
    /// Names function, version and the digest of its registration.
    pub plan_ref: Arc<PlanRef>,
    pub context: Arc<RunContext>,
    pub request_digest: Option<Digest>,
    pub run_request_id: Option<String>,
    pub admission: Admission,
}

impl StartExecution {
    pub fn call_it(&mut self, name: &str) {
        // Nobody shares it before it is recorded, so nothing is copied.
        name.clone_into(&mut Arc::make_mut(&mut self.start).name);
    }

    /// Another run starts it.
    pub fn belong_to(&mut self, lineage: Lineage) {
        Arc::make_mut(&mut self.start).lineage = Some(Box::new(lineage));
    }
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Succeeded(Option<String>),
    Failed(Option<ErrorObject>),
    Pending,
    /// It died, timed out or was refused by its runtime: to be tried again.
    Crashed(ErrorObject),
    /// The same, and its runtime wrote a document about it, which is JSON, for the caller who waits.
    Raised {
        error: ErrorObject,
        document: String,
    },
    /// The call did not get to the function: it did not run, and is called again for as long as the execution may take.
    Unreached(ErrorObject),
    /// It answered something that is no answer: trying again would not help.
    Invalid(String),
    /// There is no such function or handler any more.
    Unreachable(ErrorObject),
}

/// A batch of updates with what the caller has prepared for it.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    pub invocation: u32,
    /// The last checkpoint that the token's owner knows.
    pub number: u32,
    pub client_token: Option<String>,
    pub updates: Vec<OperationUpdate>,
    /// For each callback that is started: its id for the outside.
    pub callback_ids: BTreeMap<String, String>,
    /// For each chained invoke that is started: what it will run, or why not.
    pub targets: BTreeMap<String, Result<Spawn, ErrorObject>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackAnswer {
    Succeed(Option<String>),
    Fail(ErrorObject),
    Heartbeat,
}

pub(crate) fn decide(
    state: &RunState,
    execution: &Execution,
    command: &ExecutionCommand,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    match command {
        ExecutionCommand::Checkpoint(call) => checkpoint::decide(state, execution, call, now),
        ExecutionCommand::Invoke { invocation, request_id } => {
            handler::invoke(state, execution, *invocation, request_id)
        }
        ExecutionCommand::Lose { invocation } => handler::lose(state, execution, *invocation),
        ExecutionCommand::Return { invocation, answer, used } => {
            handler::answered(state, execution, *invocation, (answer, *used), policy, now)
        }
        ExecutionCommand::Callback { operation_id, answer } => {
            callback::decide(state, execution, operation_id, answer, now)
        }
        ExecutionCommand::ChainedEnded { operation_id, ended } => chained::ended(state, execution, operation_id, ended),
        ExecutionCommand::Compensated { run_id, error } => {
            compensation::ended(state, execution, run_id.as_ref(), error.as_ref())
        }
        ExecutionCommand::Stop { error, by } => end::stop(state, execution, error, by),
        ExecutionCommand::EndWith { ancestor } => descendants::end_with(state, execution, ancestor),
    }
}

/// Whether the run is open.
fn open(state: &RunState) -> Result<(), Refusal> {
    match state.status {
        RunStatus::Running | RunStatus::Paused => Ok(()),
        status => Err(Refusal::Closed(status)),
    }
}
