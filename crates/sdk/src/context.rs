//! The context: what a handler does durable things with. Cheap to clone; clones mint ids from the same counter.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use servo_model::operation::OperationType;
use servo_replay::{Ids, SubType, operation_id};

use crate::logger::{Scope, ScopedLogger};
use crate::op::Op;
use crate::state::ExecutionState;
use crate::{DurableError, serdes};

#[derive(Clone)]
pub struct DurableContext {
    pub(crate) state: Arc<ExecutionState>,
    ids: Arc<Ids>,
    /// Under which operation everything here is recorded. Ids follow it, except in a flat branch.
    parent: Option<Arc<str>>,
}

impl fmt::Debug for DurableContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableContext")
            .field("arn", &self.state.arn())
            .field("parent_id", &self.parent)
            .finish_non_exhaustive()
    }
}

impl DurableContext {
    pub(crate) fn root(state: Arc<ExecutionState>) -> Self {
        Self { state, ids: Arc::new(Ids::new(None)), parent: None }
    }

    pub(crate) fn child(op: &Op) -> Self {
        Self { parent: Some(op.id.as_str().into()), ..Self::flat(op) }
    }

    /// A branch that is no operation itself: its place gives the ids, and the operation around it is the parent.
    pub(crate) fn flat(op: &Op) -> Self {
        let ids = Arc::new(Ids::new(Some(op.id.clone())));
        Self { state: op.state.clone(), ids, parent: op.identity.parent_id.as_deref().map(Into::into) }
    }

    /// Called where the user calls, not where the future is polled: ids follow the program's order.
    pub(crate) fn op(&self, kind: (OperationType, SubType), name: Option<&str>) -> Op {
        Op::new(self.state.clone(), self.ids.mint(), self.parent_id(), kind, name)
    }

    /// The operation of a branch, whose place is its index and not the moment it starts.
    pub(crate) fn branch_op(&self, index: usize, kind: (OperationType, SubType), name: Option<&str>) -> Op {
        let id = operation_id(self.ids.parent(), index as u64 + 1);
        Op::new(self.state.clone(), id, self.parent_id(), kind, name)
    }

    pub fn durable_execution_arn(&self) -> &str {
        self.state.arn()
    }

    /// The id of the operation under which the context records; none for the handler's.
    pub fn parent_id(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    pub fn execution_state(&self) -> &ExecutionState {
        &self.state
    }

    /// Whether the next thing here has already happened in an earlier invocation.
    pub fn is_replaying(&self) -> bool {
        self.state.is_replaying(self.parent_id())
    }

    /// A logger that is silent on replay.
    pub fn logger(&self) -> ScopedLogger {
        ScopedLogger { state: self.state.clone(), scope: Scope::Context(self.parent_id().map(str::to_owned)) }
    }

    /// The event with which the execution was started.
    pub fn get_original_input<T: DeserializeOwned>(&self) -> Result<T, DurableError> {
        let context =
            serdes::SerDesContext { operation_id: String::new(), durable_execution_arn: self.state.arn().to_owned() };
        serdes::read_with(self.state.get_original_input(), None, &context).map_err(|error| DurableError::SerDes {
            message: format!("the event does not have the handler's type: {}", error.message()),
        })
    }
}
