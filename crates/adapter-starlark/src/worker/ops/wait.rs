//! Operations that somebody else completes: time, a signal, an event, another run. The program is left at once; the
//! invocation after the outcome comes back to the same place.

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::operation::{
    CallbackOptions, ChainedInvokeOptions, OperationAction, OperationStatus, OperationType, OperationUpdate,
    WaitOptions,
};
use servo_replay::{Operation, SubType};
use starlark::eval::Evaluator;
use starlark::values::Value;

use super::context;
use crate::worker::op::{Op, error_of, read_result, write_payload};
use crate::worker::raised::{Raised, raise, wrong};
use crate::worker::session::Session;

/// What the service takes: a leap year of waiting, and callbacks for somewhat longer.
const WAIT_SECONDS_MAX: u64 = 31_622_400;
const CALLBACK_SECONDS_MAX: u64 = 99_999_999;
const FUNCTION_LEN_MAX: usize = 256;

pub(crate) fn sleep(session: &Session, seconds: u64, name: Option<&str>) -> starlark::Result<()> {
    if !(1..=WAIT_SECONDS_MAX).contains(&seconds) {
        return Err(wrong(format!("a sleep takes 1 to {WAIT_SECONDS_MAX} seconds, not {seconds}")));
    }
    let op = Op::next(session, (OperationType::Wait, SubType::Wait), name)?;
    let mut update = op.update(OperationAction::Start);
    update.wait_options = Some(WaitOptions { wait_seconds: Some(seconds) });
    outcome(session, &op, update)?;
    Ok(())
}

/// The payload of the signal or event, or none after the timeout.
pub(crate) fn callback<'v>(
    eval: &Evaluator<'v, '_, '_>,
    kind: SubType,
    name: &str,
    timeout_seconds: Option<u64>,
) -> starlark::Result<Value<'v>> {
    let session = Session::of(eval)?;
    if timeout_seconds.is_some_and(|seconds| !(1..=CALLBACK_SECONDS_MAX).contains(&seconds)) {
        return Err(wrong(format!("a timeout has 1 to {CALLBACK_SECONDS_MAX} seconds; leave it out for none")));
    }
    let op = Op::next(session, (OperationType::Callback, kind), Some(name))?;
    let mut update = op.update(OperationAction::Start);
    update.callback_options = Some(CallbackOptions { timeout_seconds, heartbeat_timeout_seconds: None });
    let operation = outcome(session, &op, update)?;
    match operation.status {
        OperationStatus::TimedOut => Ok(Value::new_none()),
        _ => result(session, &operation, eval),
    }
}

/// What another entrypoint returns. With a timeout, whatever comes first decides, once: the call and a timer are a context
/// whose outcome is recorded, so that a result that comes later changes nothing. What was called goes on by itself.
pub(crate) fn invoke<'v>(
    eval: &mut Evaluator<'v, '_, '_>,
    function: &str,
    params: Value<'v>,
    name: Option<&str>,
    timeout_seconds: Option<u64>,
) -> starlark::Result<Value<'v>> {
    let session = Session::of(eval)?;
    if function.is_empty() || function.len() > FUNCTION_LEN_MAX {
        return Err(wrong(format!("the address of what is invoked has 1 to {FUNCTION_LEN_MAX} characters")));
    }
    let Some(seconds) = timeout_seconds else {
        let (op, update) = call(session, function, params, name)?;
        let operation = outcome(session, &op, update)?;
        return result(session, &operation, eval);
    };
    if !(1..=WAIT_SECONDS_MAX).contains(&seconds) {
        return Err(wrong(format!("a timeout has 1 to {WAIT_SECONDS_MAX} seconds; leave it out for none")));
    }
    let both = Op::next(session, (OperationType::Context, SubType::RunInChildContext), name)?;
    let text = context::run(eval, &both, |_| {
        let (op, update) = call(session, function, params, name)?;
        let timer = Op::next(session, (OperationType::Wait, SubType::Wait), Some("timeout"))?;
        let mut waits = timer.update(OperationAction::Start);
        waits.wait_options = Some(WaitOptions { wait_seconds: Some(seconds) });
        let called = begun(session, &op, update)?;
        let waited = begun(session, &timer, waits)?;
        if called.is_none() || waited.is_none() {
            session.flush()?;
        }
        let ended = |op: &Op| -> starlark::Result<Option<std::sync::Arc<Operation>>> {
            let recorded = session.journal(|journal| journal.get(&op.id).cloned())?;
            Ok(recorded.filter(|operation| operation.status.is_terminal()))
        };
        if let Some(operation) = ended(&op)? {
            return match operation.status {
                OperationStatus::Succeeded => Ok(operation.outcome().0.unwrap_or("null").to_owned()),
                _ => Err(raise(session, Raised::Fail(error_of(&operation)))),
            };
        }
        if ended(&timer)?.is_some() {
            let message = format!("`{function}` has not ended within {seconds} seconds");
            let failure = Failure::new(errors::TIMEOUT, ErrorCategory::Timeout, message);
            return Err(raise(session, Raised::Fail(failure.to_error())));
        }
        drop(session.suspend(&timer.id));
        Err(session.suspend(&op.id))
    })?;
    Ok(read_result(Some(&text), eval.heap()))
}

fn call(
    session: &Session,
    function: &str,
    params: Value<'_>,
    name: Option<&str>,
) -> starlark::Result<(Op, OperationUpdate)> {
    let op = Op::next(session, (OperationType::ChainedInvoke, SubType::ChainedInvoke), name)?;
    let mut update = op.update(OperationAction::Start);
    update.payload = Some(write_payload(session, "the parameter of an invoke", params)?);
    let function_name = function.to_owned();
    update.chained_invoke_options = Some(ChainedInvokeOptions { function_name, ..ChainedInvokeOptions::default() });
    Ok((op, update))
}

/// What is recorded of an operation; one of which nothing is begins with the next call.
fn begun(session: &Session, op: &Op, start: OperationUpdate) -> starlark::Result<Option<std::sync::Arc<Operation>>> {
    let recorded = op.recorded(session)?;
    if recorded.is_none() {
        session.enqueue(start)?;
    }
    Ok(recorded)
}

fn result<'v>(session: &Session, operation: &Operation, eval: &Evaluator<'v, '_, '_>) -> starlark::Result<Value<'v>> {
    if operation.status != OperationStatus::Succeeded {
        return Err(raise(session, Raised::Fail(error_of(operation))));
    }
    Ok(read_result(operation.outcome().0, eval.heap()))
}

/// The finished operation, or the end of this evaluation.
fn outcome(session: &Session, op: &Op, start: OperationUpdate) -> starlark::Result<std::sync::Arc<Operation>> {
    let mut recorded = op.recorded(session)?;
    if recorded.is_none() {
        session.enqueue(start)?;
        // It may be over already: the signal was there before. Branches do not ask, so that all of them can start with
        // one call; if one of them is over, the program is walked through once more.
        if !session.is_in_branch() {
            session.flush()?;
            recorded = session.journal(|journal| journal.get(&op.id).cloned())?;
        }
    }
    match recorded {
        Some(operation) if operation.status.is_terminal() => Ok(operation),
        _ => Err(session.suspend(&op.id)),
    }
}
