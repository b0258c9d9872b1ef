//! Invocations of the handler: called, lost, answered.

use servo_canon::Digest;
use servo_model::event::{EventBody, HandlerInvoked, HandlerReturned, HandlerStatus};
use servo_model::execution::{Execution, HANDLER, Invocation};
use servo_model::invocation::{Checkpointing, EntrypointKind, EntrypointPin, ErrorCategory, Failure};
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{RunState, RunStatus, Timestamp};

use super::settle::{dispatch, step};
use super::{Answer, Used, end, open, size};
use crate::command::Policy;
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;

/// Answers of PENDING with nothing pending that are forgiven: the state may have changed while the handler decided.
const IDLE_ANSWERS_MAX: u32 = 3;
/// The longest pause between two tries of an invocation.
const BACKOFF_MAX_MS: u64 = 60_000;
/// The longest pause between two calls that do not get through. So a run's log has room for an outage as long as the longest
/// execution.
const OUTAGE_PAUSE_MAX_MS: u64 = 300_000;

pub(crate) fn invoke(
    state: &RunState,
    execution: &Execution,
    invocation: u32,
    request_id: &str,
) -> Result<Decision, Refusal> {
    open(state)?;
    if state.status != RunStatus::Running {
        return Err(Refusal::NotRunning(state.status));
    }
    if execution.head.invocation.is_some() || invocation != execution.head.invocations + 1 {
        return Err(Refusal::Superseded { step_id: step(HANDLER), attempt: invocation });
    }
    let mut decision = Decision::default();
    decision.fact(EventBody::HandlerInvoked(HandlerInvoked { invocation, request_id: request_id.to_owned() }));
    decision.act(Action::Notify { step_id: step(HANDLER), attempt: invocation });
    Ok(decision)
}

/// Whatever the lost invocation still records is refused from here on; the next one goes on with the recorded state.
pub(crate) fn lose(state: &RunState, execution: &Execution, invocation: u32) -> Result<Decision, Refusal> {
    open(state)?;
    let running = current(execution, invocation)?;
    let mut decision = Decision::default();
    let error = ErrorObject::new("Runtime.ExitError", "the node that had called the handler was lost");
    decision.fact(returned(execution, running, HandlerStatus::Lost, Some(error), 0));
    decision.act(Action::Abandon {
        step_id: step(HANDLER),
        attempt: invocation,
        reason: "the node that had called the handler was lost".to_owned(),
    });
    if state.status == RunStatus::Running {
        decision.act(dispatch(invocation + 1));
    }
    Ok(decision)
}

pub(crate) fn answered(
    state: &RunState,
    execution: &Execution,
    invocation: u32,
    (answer, used): (&Answer, Used),
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    open(state)?;
    let running = current(execution, invocation)?;
    let unfit = match answer {
        Answer::Succeeded(result) => size::too_large(&execution.head.start, result.as_deref()).map(Answer::Invalid),
        Answer::Unreached(error) if counts(execution) => Some(Answer::Crashed(error.clone())),
        _ => None,
    };
    let answer = unfit.as_ref().unwrap_or(answer);
    let mut decision = Decision::default();
    decision.act(Action::Deliver { step_id: step(HANDLER), attempt: invocation });
    let mut over = |status: HandlerStatus, error: Option<ErrorObject>, retry_after_ms: u64| {
        let mut fact = returned(execution, running, status, error, retry_after_ms);
        if let EventBody::HandlerReturned(body) = &mut fact {
            (body.cpu_ms, body.memory_mb) = (used.cpu_ms, used.memory_mb);
            body.waited_ms = used.waited_ms;
            body.unreached = matches!(answer, Answer::Unreached(_));
        }
        decision.fact(fact);
    };
    if state.status == RunStatus::Paused
        && !matches!(answer, Answer::Pending | Answer::Crashed(_) | Answer::Raised { .. } | Answer::Unreached(_))
    {
        // A paused run does not end. All that the answer rests on is recorded, so the handler gives it again.
        over(HandlerStatus::Lost, None, 0);
        return Ok(decision);
    }
    let fail = |decision: &mut Decision, error: Option<ErrorObject>| {
        end::end(state, execution, ExecutionStatus::Failed, None, error, decision);
    };
    if let (Answer::Failed(Some(error)) | Answer::Crashed(error) | Answer::Raised { error, .. }, Some(pin)) =
        (answer, &execution.head.start.entrypoint)
    {
        match verdict(pin, execution, error, !matches!(answer, Answer::Failed(_))) {
            Verdict::Again { wait_ms } => {
                over(HandlerStatus::Retrying, Some(error.clone()), wait_ms);
                if wait_ms == 0 && state.status == RunStatus::Running {
                    decision.act(dispatch(invocation + 1));
                }
                return Ok(decision);
            }
            Verdict::Over => {
                over(HandlerStatus::Failed, Some(error.clone()), 0);
                fail(&mut decision, Some(error.clone()));
                return Ok(decision);
            }
            Verdict::AsEver => {}
        }
    }
    match answer {
        Answer::Succeeded(result) => {
            over(HandlerStatus::Succeeded, None, 0);
            end::end(state, execution, ExecutionStatus::Succeeded, result.clone(), None, &mut decision);
        }
        Answer::Failed(error) => {
            over(HandlerStatus::Failed, None, 0);
            fail(&mut decision, error.clone());
        }
        Answer::Invalid(message) => {
            let error = ErrorObject::new("InvalidParameterValueException", message);
            over(HandlerStatus::Failed, Some(error.clone()), 0);
            fail(&mut decision, Some(error));
        }
        Answer::Unreachable(error) => {
            over(HandlerStatus::Failed, Some(error.clone()), 0);
            fail(&mut decision, Some(error.clone()));
        }
        Answer::Crashed(error) | Answer::Raised { error, .. } => {
            let failures = execution.head.failures + 1;
            let last = failures >= policy.invocation_failures_max || !execution.head.start.durable;
            let wait = if last { 0 } else { backoff_ms(failures, policy.invocation_backoff_ms) };
            over(HandlerStatus::Crashed, Some(error.clone()), wait);
            if last {
                fail(&mut decision, Some(error.clone()));
                if let Answer::Raised { document, .. } = answer {
                    tell(execution, document, &mut decision);
                }
            } else if wait == 0 && state.status == RunStatus::Running {
                decision.act(dispatch(invocation + 1));
            }
        }
        Answer::Unreached(error) => {
            over(HandlerStatus::Lost, Some(error.clone()), outage_pause_ms(state, execution, running, policy, now));
        }
        Answer::Pending => pending(state, execution, running, invocation, &mut decision, now),
    }
    Ok(decision)
}

/// The document of a failure goes where the result of a success would: to a caller who waits for a plain function. It is kept because
/// another node may be the one to answer.
fn tell(execution: &Execution, document: &str, decision: &mut Decision) {
    let start = &execution.head.start;
    let is_told = start.synchronous && !start.durable && start.parent.is_none() && start.entrypoint.is_none();
    if !is_told || size::too_large(start, Some(document)).is_some() {
        return;
    }
    for fact in &mut decision.facts {
        if let EventBody::ExecutionEnded(body) = &mut fact.body {
            body.document = Some(document.to_owned());
        }
    }
}

enum Verdict {
    Again {
        wait_ms: u64,
    },
    Over,
    /// As any handler's.
    AsEver,
}

/// A function is one attempt as a whole, tried again by its policy, and so is a workflow that records nothing. Another workflow's
/// steps are tried again one by one, and any workflow itself when the process that ran it was lost, but not when it was ended
/// by a limit.
fn verdict(pin: &EntrypointPin, execution: &Execution, error: &ErrorObject, lost: bool) -> Verdict {
    let failure = Failure::of(error);
    let by_policy = || match pin.retry.next_delay_ms(execution.head.failures + 1, &failure) {
        Some(wait_ms) => Verdict::Again { wait_ms },
        None => Verdict::Over,
    };
    match (pin.kind, failure.category) {
        (EntrypointKind::Function, _) => by_policy(),
        (EntrypointKind::Workflow, ErrorCategory::Timeout | ErrorCategory::ResourceLimit) => Verdict::Over,
        (EntrypointKind::Workflow, _) if pin.checkpointing == Checkpointing::Disabled && !lost => by_policy(),
        (EntrypointKind::Workflow, _) => Verdict::AsEver,
    }
}

/// The handler waits for something. If that has happened meanwhile, or nothing ever will, this says so.
fn pending(
    state: &RunState,
    execution: &Execution,
    running: &Invocation,
    invocation: u32,
    decision: &mut Decision,
    now: Timestamp,
) {
    let due = execution.due(now).next().is_some();
    let idle = !execution.has_pending() && !execution.has_unseen();
    if idle && execution.head.idle_answers + 1 >= IDLE_ANSWERS_MAX {
        let message = "Cannot return PENDING status with no pending operations.";
        let error = ErrorObject::new("InvalidParameterValueException", message);
        decision.fact(returned(execution, running, HandlerStatus::Failed, Some(error.clone()), 0));
        end::end(state, execution, ExecutionStatus::Failed, None, Some(error), decision);
        return;
    }
    decision.fact(returned(execution, running, HandlerStatus::Pending, None, 0));
    // What is due is resolved, and then dispatched, by `settle`.
    if state.status == RunStatus::Running && !due && (idle || execution.has_unseen()) {
        decision.act(dispatch(invocation + 1));
    }
}

fn current(execution: &Execution, invocation: u32) -> Result<&Invocation, Refusal> {
    let running = execution.head.invocation.as_ref().filter(|_| execution.head.invocations == invocation);
    running.ok_or_else(|| Refusal::Superseded { step_id: step(HANDLER), attempt: invocation })
}

pub(super) fn returned(
    execution: &Execution,
    running: &Invocation,
    status: HandlerStatus,
    error: Option<ErrorObject>,
    retry_after_ms: u64,
) -> EventBody {
    EventBody::HandlerReturned(HandlerReturned {
        invocation: execution.head.invocations,
        request_id: running.request_id.clone(),
        invoked_at: running.invoked_at,
        status,
        error,
        retry_after_ms,
        cpu_ms: None,
        memory_mb: None,
        unreached: false,
        waited_ms: 0,
        cut_off: false,
        checkpoint: None,
    })
}

/// What the invocation recorded shows that it was reached after all. And whoever waits for the answer of a plain function is told
/// at once: they can call again themselves.
fn counts(execution: &Execution) -> bool {
    let start = &execution.head.start;
    execution.head.checkpoint.number > 0 || (!start.durable && start.synchronous)
}

/// At most a tenth of the time for which the function was out of reach: to its callers no outage lasts much longer than it did.
/// How much of that differs between runs, so that those that were refused together do not come back together.
fn outage_pause_ms(
    state: &RunState,
    execution: &Execution,
    running: &Invocation,
    policy: &Policy,
    now: Timestamp,
) -> u64 {
    let since = execution.head.unreached.as_ref().map_or(running.invoked_at, |unreached| unreached.since);
    let lasted_ms = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
    let longest = (lasted_ms / 10).max(policy.invocation_backoff_ms).clamp(1, OUTAGE_PAUSE_MAX_MS);
    // At the longest pause they have come apart, and the log has room for a year of pauses only if these stay long.
    let shortest = if longest == OUTAGE_PAUSE_MAX_MS { longest / 100 * 85 } else { longest / 2 };
    let spread = (longest - shortest) * u64::from(chance(state, execution)) / u64::from(u32::MAX);
    (shortest + spread).max(policy.invocation_backoff_ms.min(longest))
}

/// A number that differs between runs and invocations, and is the same whenever it is asked for.
fn chance(state: &RunState, execution: &Execution) -> u32 {
    let invocation = execution.head.invocations.to_string();
    let digest = Digest::of_parts(&[state.run_id.as_str(), &invocation], '\n');
    let [a, b, c, d, ..] = *digest.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The first try again comes at once; then twice as long each time.
fn backoff_ms(failures: u32, base_ms: u64) -> u64 {
    match failures {
        0 | 1 => 0,
        more => base_ms.saturating_mul(1 << (more - 2).min(16)).min(BACKOFF_MAX_MS),
    }
}
