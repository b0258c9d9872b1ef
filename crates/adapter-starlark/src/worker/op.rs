//! One operation at its call site: its id, what it is, what is recorded about it.

use std::sync::Arc;

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::operation::{ErrorObject, OperationAction, OperationType, OperationUpdate};
use servo_replay::{Identity, Operation, SubType};
use starlark::values::{Heap, Value};

use super::json;
use super::raised::{Raised, limit, raise, wrong};
use super::session::Session;

const NAME_LEN_MAX: usize = 256;
/// What the service records of one operation.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Op {
    pub(crate) id: String,
    identity: Identity,
}

impl Op {
    /// Mints the next id of the current context.
    pub(crate) fn next(
        session: &Session,
        kind: (OperationType, SubType),
        name: Option<&str>,
    ) -> starlark::Result<Self> {
        let what = kind.1.as_str();
        if !session.is_durable() {
            return Err(wrong(format!(
                "{what} works only in workflows: a function runs once and keeps nothing; register it as a workflow"
            )));
        }
        if session.is_in_step() {
            return Err(wrong(format!("{what} does not work inside a step; call it in the workflow itself")));
        }
        let kept = matches!(kind.0, OperationType::Wait | OperationType::Callback | OperationType::ChainedInvoke);
        if session.keeps_nothing() && (kept || kind.1 == SubType::Emit) {
            return Err(wrong(format!(
                "{what} needs a record, and this workflow keeps none; register it with the strategy `automatic` or `manual`"
            )));
        }
        if let Some(name) = name {
            check_name(name)?;
        }
        Ok(Self::at(session, session.mint(), kind, name))
    }

    /// With an id that its place gives it, such as a branch's.
    pub(crate) fn at(
        session: &Session,
        id: String,
        (operation_type, sub_type): (OperationType, SubType),
        name: Option<&str>,
    ) -> Self {
        let parent = session.context_id();
        Self { id, identity: Identity::new(operation_type, sub_type, name, parent.as_deref()) }
    }

    /// What is recorded. A program that has diverged ends here.
    pub(crate) fn recorded(&self, session: &Session) -> starlark::Result<Option<Arc<Operation>>> {
        session.journal(|journal| journal.lookup(&self.id, &self.identity))?.map_err(|divergence| {
            let mut failure = Failure::new(errors::EXECUTION, ErrorCategory::NonRetryable, divergence.to_string());
            failure.details.insert("expected".to_owned(), divergence.expected.to_string().into());
            failure.details.insert("actual".to_owned(), divergence.actual.to_string().into());
            raise(session, Raised::Fatal(failure.to_error()))
        })
    }

    pub(crate) fn update(&self, action: OperationAction) -> OperationUpdate {
        OperationUpdate {
            parent_id: self.identity.parent_id.clone(),
            name: self.identity.name.clone(),
            sub_type: self.identity.sub_type.clone(),
            ..OperationUpdate::new(self.id.clone(), self.identity.operation_type, action)
        }
    }

    pub(crate) fn parent_id(&self) -> Option<&str> {
        self.identity.parent_id.as_deref()
    }
}

fn check_name(name: &str) -> starlark::Result<()> {
    let printable = name.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if printable && (1..=NAME_LEN_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(wrong(format!("{name:?} is no name for an operation; give 1 to {NAME_LEN_MAX} printable ASCII characters")))
}

/// The recorded error of an operation that did not succeed.
pub(crate) fn error_of(operation: &Operation) -> ErrorObject {
    if let Some(error) = operation.outcome().1 {
        return error.clone();
    }
    let name = operation.name.as_deref().unwrap_or(&operation.id);
    let message = format!("{} {name:?} ended as {}", operation.operation_type.as_str(), operation.status.as_str());
    Failure::new(errors::EXECUTION, ErrorCategory::NonRetryable, message).to_error()
}

/// A recorded text as a value. What others recorded need not be JSON; then it is a text.
pub(crate) fn read_result<'v>(text: Option<&str>, heap: &'v Heap) -> Value<'v> {
    match text {
        None | Some("") => Value::new_none(),
        Some(text) => json::read(text, heap).unwrap_or_else(|_| heap.alloc(text)),
    }
}

/// A value as it is recorded.
pub(crate) fn write_payload(session: &Session, what: &str, value: Value<'_>) -> starlark::Result<String> {
    json::write(value, PAYLOAD_BYTES_MAX).map_err(|error| match error {
        json::WriteError::Kind(message) => wrong(format!("{what} cannot be recorded: {message}")),
        json::WriteError::TooLarge => {
            let message = format!("{what} is too large to be recorded");
            raise(session, Raised::Fail(limit("payload_bytes", PAYLOAD_BYTES_MAX as u64, &message).to_error()))
        }
    })
}
