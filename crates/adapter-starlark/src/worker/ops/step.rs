//! Steps: code with an outcome that is recorded, tried again by rule.

use servo_model::invocation::{ErrorCategory, Failure, RetryRule, errors};
use servo_model::operation::{ErrorObject, OperationAction, OperationStatus, OperationType, StepOptions};
use servo_replay::SubType;
use starlark::eval::Evaluator;
use starlark::values::Value;

use crate::worker::op::{Op, error_of, read_result};
use crate::worker::raised::{Raised, caught, raise};
use crate::worker::session::Session;

/// The service waits for no longer than a leap year.
const DELAY_MS_MAX: u64 = 31_622_400_000;

pub(crate) struct StepTerms {
    pub(crate) retry: RetryRule,
    pub(crate) at_most_once: bool,
}

/// Runs `body`, which brings the JSON of its result, unless the outcome is known.
pub(crate) fn run<'v>(
    eval: &mut Evaluator<'v, '_, '_>,
    name: &str,
    terms: &StepTerms,
    body: impl FnOnce(&mut Evaluator<'v, '_, '_>) -> starlark::Result<String>,
) -> starlark::Result<Value<'v>> {
    let session = Session::of(eval)?;
    let op = Op::next(session, (OperationType::Step, SubType::Step), Some(name))?;
    let recorded = op.recorded(session)?;
    let status = recorded.as_ref().map(|operation| operation.status);
    let ended = recorded.as_ref().and_then(|operation| operation.step_details.as_ref());
    let attempt = ended.map_or(0, |details| details.attempt) + 1;
    match (&recorded, status) {
        (Some(operation), Some(OperationStatus::Succeeded)) => {
            return Ok(read_result(operation.outcome().0, eval.heap()));
        }
        // The time of the next attempt has not come.
        (_, Some(OperationStatus::Pending)) => return Err(session.suspend(&op.id)),
        (_, Some(OperationStatus::Started)) if terms.at_most_once => {
            let message =
                format!("attempt {attempt} was interrupted, and a step that runs at most once is not run again");
            let failure = Failure::new(errors::EXECUTION, ErrorCategory::Retryable, message);
            return Err(failed(session, &op, terms, attempt, failure.to_error())?);
        }
        (_, Some(OperationStatus::Started)) => {}
        (_, None | Some(OperationStatus::Ready)) => {
            session.enqueue(op.update(OperationAction::Start))?;
            if terms.at_most_once {
                session.flush()?;
            }
        }
        (Some(operation), Some(_)) => return Err(raise(session, Raised::Fail(error_of(operation)))),
        (None, Some(_)) => {}
    }
    session.enter_step(&op.id, attempt);
    let outcome = body(eval);
    session.leave_step();
    match outcome {
        Ok(text) => {
            // The first run sees what every replay will see.
            let value = read_result(Some(&text), eval.heap());
            let mut update = op.update(OperationAction::Succeed);
            update.payload = Some(text);
            session.enqueue(update)?;
            kept(session, terms)?;
            Ok(value)
        }
        Err(error) => match caught(session, &error) {
            Raised::Fail(object) => Err(failed(session, &op, terms, attempt, object)?),
            other => Err(raise(session, other)),
        },
    }
}

/// Records an outcome. One that must not run twice is worth nothing without it: it would count as interrupted.
fn kept(session: &Session, terms: &StepTerms) -> starlark::Result<()> {
    if terms.at_most_once { session.flush() } else { session.flush_if_automatic() }
}

/// Records the failure of an attempt: another one follows later, or this was the last.
fn failed(
    session: &Session,
    op: &Op,
    terms: &StepTerms,
    attempt: u32,
    error: ErrorObject,
) -> starlark::Result<starlark::Error> {
    if session.keeps_nothing() {
        // The workflow is tried again as a whole, if at all.
        return Ok(raise(session, Raised::Fail(error)));
    }
    let Some(millis) = terms.retry.next_delay_ms(attempt, &Failure::of(&error)) else {
        let mut update = op.update(OperationAction::Fail);
        update.error = Some(error.clone());
        session.enqueue(update)?;
        kept(session, terms)?;
        return Ok(raise(session, Raised::Fail(error)));
    };
    let mut update = op.update(OperationAction::Retry);
    update.error = Some(error);
    update.step_options = Some(StepOptions::after_millis(millis.min(DELAY_MS_MAX)));
    session.enqueue(update)?;
    Ok(session.suspend(&op.id))
}

/// A step that is over as soon as it is asked for: nobody waits for its record, which leaves with the next call.
pub(crate) fn instant(
    session: &Session,
    (sub_type, name): (SubType, &str),
    result: impl FnOnce() -> starlark::Result<String>,
) -> starlark::Result<String> {
    let op = Op::next(session, (OperationType::Step, sub_type), Some(name))?;
    let recorded = op.recorded(session)?;
    if let Some(operation) = recorded.filter(|operation| operation.status == OperationStatus::Succeeded) {
        return Ok(operation.outcome().0.unwrap_or("null").to_owned());
    }
    let text = result()?;
    session.enqueue(op.update(OperationAction::Start))?;
    let mut update = op.update(OperationAction::Succeed);
    update.payload = Some(text.clone());
    session.enqueue(update)?;
    if sub_type == SubType::Emit && !session.is_automatic() {
        // It is the record that others hear of.
        session.flush()?;
    }
    Ok(text)
}
