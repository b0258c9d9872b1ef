//! Contexts: a part of the program with ids of its own, whose result is recorded as one.

use servo_model::operation::{ContextOptions, OperationAction, OperationStatus};
use starlark::eval::Evaluator;

use crate::worker::op::{Op, error_of};
use crate::worker::raised::{Raised, caught, raise};
use crate::worker::session::Session;

/// A larger result is not recorded: on replay the body runs again over its recorded operations.
const RESULT_BYTES_MAX: usize = 256 * 1024;

/// Runs `body`, which brings the JSON of its result, unless the outcome is known.
pub(crate) fn run<'v>(
    eval: &mut Evaluator<'v, '_, '_>,
    op: &Op,
    body: impl FnOnce(&mut Evaluator<'v, '_, '_>) -> starlark::Result<String>,
) -> starlark::Result<String> {
    let session = Session::of(eval)?;
    if let Some(operation) = op.recorded(session)? {
        let details = operation.context_details.as_ref();
        let again = details.is_some_and(|details| details.replay_children == Some(true));
        match operation.status {
            OperationStatus::Succeeded if again => {
                session.enter_context(&op.id);
                let outcome = body(eval);
                session.leave();
                return outcome;
            }
            OperationStatus::Succeeded => return Ok(operation.outcome().0.unwrap_or("null").to_owned()),
            OperationStatus::Started | OperationStatus::Pending | OperationStatus::Ready => {}
            OperationStatus::Failed
            | OperationStatus::Cancelled
            | OperationStatus::TimedOut
            | OperationStatus::Stopped => return Err(raise(session, Raised::Fail(error_of(&operation)))),
        }
    } else {
        session.enqueue(op.update(OperationAction::Start))?;
    }
    session.journal(|journal| journal.open_context(&op.id, op.parent_id()))?;
    session.enter_context(&op.id);
    let outcome = body(eval);
    session.leave();
    match outcome {
        Ok(text) => {
            let mut update = op.update(OperationAction::Succeed);
            if text.len() > RESULT_BYTES_MAX {
                update.payload = Some(String::new());
                update.context_options = Some(ContextOptions { replay_children: Some(true) });
            } else {
                update.payload = Some(text.clone());
            }
            close(session, op, update)?;
            Ok(text)
        }
        Err(error) => match caught(session, &error) {
            Raised::Fail(object) => {
                let mut update = op.update(OperationAction::Fail);
                update.error = Some(object.clone());
                close(session, op, update)?;
                Err(raise(session, Raised::Fail(object)))
            }
            other => Err(raise(session, other)),
        },
    }
}

/// Nobody waits for the record: should it be lost, the body runs again over its recorded operations.
fn close(session: &Session, op: &Op, update: servo_model::operation::OperationUpdate) -> starlark::Result<()> {
    session.journal(|journal| journal.finish_context(&op.id))?;
    session.enqueue(update)
}
