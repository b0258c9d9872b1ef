//! Facts, actions and refusals as one short line each, so that a table can be read. Times are `t+MS` after the start of
//! the world.

use servo_machine::{Action, Decision, Fact, Refusal};
use servo_model::event::{EventBody, SignalType, SkipCause};
use servo_model::{StepId, Timestamp};

/// When every world begins.
pub(crate) const EPOCH_MS: i64 = 1_770_000_000_000;

pub(crate) fn time(at: Timestamp) -> String {
    format!("t{:+}", at.as_millis() - EPOCH_MS)
}

/// What an answer shows: facts, `> action`, `! CODE message`.
pub(crate) fn answer(outcome: &Result<Decision, Refusal>) -> Vec<String> {
    let mut lines = Vec::new();
    match outcome {
        Ok(decision) => {
            lines.extend(decision.facts.iter().map(fact));
            lines.extend(decision.actions.iter().map(action));
            lines.extend(decision.refusal.as_ref().map(refusal));
        }
        Err(error) => lines.push(refusal(error)),
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines
}

pub(crate) fn refusal(refusal: &Refusal) -> String {
    format!("! {} {refusal}", refusal.code().code)
}

fn at(step: &StepId, attempt: u32) -> String {
    format!("{step}#{attempt}")
}

fn engine(step: &StepId, attempt: u32, engine: Option<u32>) -> String {
    format!("{step}#{attempt}/{}", engine.map_or_else(|| "-".to_owned(), |engine| engine.to_string()))
}

/// ` name=value`, or nothing.
fn extra(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(String::new, |value| format!(" {name}={value}"))
}

fn clipped(text: Option<&String>) -> Option<String> {
    text.map(|text| if text.len() > 60 { format!("{} bytes", text.len()) } else { text.clone() })
}

pub(crate) fn fact(fact: &Fact) -> String {
    let mut line = format!("{} {}", fact.body.event_type(), body(&fact.body));
    line.push_str(&extra("occurred", fact.occurred_at.map(time)));
    line
}

fn body(body: &EventBody) -> String {
    use EventBody as B;
    match body {
        B::RunQueued(b) => {
            let plan = if b.plan.is_some() { " plan" } else { "" };
            let approval = if b.approval_required { " approval" } else { "" };
            let (not_before, reason) = (b.not_before.map(time), clipped(b.reason.as_ref()));
            let round = b.logical_attempt_id;
            format!("r{round}{plan}{approval}{}{}", extra("not-before", not_before), extra("reason", reason))
        }
        B::RunApproved(b) => format!("r{}{}", b.logical_attempt_id, extra("by", b.approved_by.as_ref())),
        B::RunStarted(b) => {
            format!("r{} {} {} {}", b.logical_attempt_id, b.engine_type, b.engine_run_ref, time(b.started_at))
        }
        B::StepStarted(b) => engine(&b.step_id, b.logical_attempt_id, b.engine_attempt_id),
        B::StepCompleted(b) => engine(&b.step_id, b.logical_attempt_id, b.engine_attempt_id),
        B::StepFailed(b) => {
            format!("{} {}", engine(&b.step_id, b.logical_attempt_id, b.engine_attempt_id), b.error.code)
        }
        B::StepSkipped(b) => {
            let cause = match b.cause {
                SkipCause::UpstreamFailed => "UPSTREAM_FAILED",
                SkipCause::Operator => "OPERATOR",
                SkipCause::Condition => "CONDITION",
            };
            format!("{} {cause}{}", at(&b.step_id, b.logical_attempt_id), extra("by", b.upstream_step_id.as_ref()))
        }
        B::SignalAccepted(b) => {
            let step = extra("step", b.step_id.as_ref());
            let reason = extra("reason", clipped(b.reason.as_ref()));
            format!("{} {} {}{step}{reason}", b.logical_attempt_id, b.signal_id, signal(b.signal_type))
        }
        B::SignalRejected(b) => {
            let step = extra("step", b.step_id.as_ref());
            format!("{} {} {}{step} {}", b.logical_attempt_id, b.signal_id, signal(b.signal_type), b.code)
        }
        B::RunPaused(b) => {
            let (until, reason) = (b.drain_until.map(time), clipped(b.reason.as_ref()));
            format!("{}{}{}", b.logical_attempt_id, extra("drain", until), extra("reason", reason))
        }
        B::RunResumed(b) => b.logical_attempt_id.to_string(),
        B::RunCompleted(b) => format!("r{}", b.logical_attempt_id),
        B::RunFailed(b) => {
            format!("r{} {}{}", b.logical_attempt_id, b.root_cause.code, extra("step", b.root_cause.step_id.as_ref()))
        }
        B::RunCancelled(b) => {
            let (by, reason) = (b.cancelled_by.as_ref(), clipped(b.reason.as_ref()));
            format!("r{}{}{}", b.logical_attempt_id, extra("by", by), extra("reason", reason))
        }
        B::StepRetryScheduled(b) => {
            format!("{}{}", at(&b.step_id, b.logical_attempt_id), extra("not-before", b.not_before.map(time)))
        }
        B::StepTakenOver(b) => engine(&b.step_id, b.logical_attempt_id, Some(b.engine_attempt_id)),
        B::DrainTimedOut(b) => format!("{} in-flight={}", b.logical_attempt_id, b.in_flight),
        B::TaskOrphaned(b) => engine(&b.step_id, b.logical_attempt_id, b.engine_attempt_id),
        B::ExecutionStarted(_)
        | B::HandlerInvoked(_)
        | B::HandlerReturned(_)
        | B::OperationUpdated(_)
        | B::OperationResolved(_)
        | B::CallbackHeartbeat(_)
        | B::ExecutionEnded(_)
        | B::MessageReceived(_)
        | B::CompensationStarted(_)
        | B::CompensationEnded(_)
        | B::RunDeadLettered(_)
        | B::RunImported(_) => panic!("a plan does not make such an event: {body:?}"),
        B::Runtime(_) | B::Unknown(_) => panic!("the machine does not make such an event: {body:?}"),
    }
}

pub(crate) fn signal(signal: SignalType) -> &'static str {
    match signal {
        SignalType::Pause => "PAUSE",
        SignalType::Resume => "RESUME",
        SignalType::Cancel => "CANCEL",
        SignalType::RetryStep => "RETRY_STEP",
        SignalType::SkipStep => "SKIP_STEP",
        SignalType::Approve => "APPROVE",
        SignalType::RetryRun => "RETRY_RUN",
        SignalType::Message => "MESSAGE",
    }
}

pub(crate) fn action(action: &Action) -> String {
    match action {
        Action::Enqueue { not_before } => format!("> enqueue {}", time(*not_before)),
        Action::Dequeue => "> dequeue".to_owned(),
        Action::Dispatch { step_id, attempt } => format!("> dispatch {}", at(step_id, *attempt)),
        Action::Withdraw { step_id, attempt } => format!("> withdraw {}", at(step_id, *attempt)),
        Action::Notify { step_id, attempt } => format!("> notify {}", at(step_id, *attempt)),
        Action::Adopt { step_id, attempt } => format!("> adopt {}", at(step_id, *attempt)),
        Action::Deliver { step_id, attempt } => format!("> deliver {}", at(step_id, *attempt)),
        Action::Abandon { step_id, attempt, reason } => format!("> abandon {} {reason}", at(step_id, *attempt)),
        Action::Spawn(spawn) => format!("> spawn {}", spawn.run_id),
        Action::CancelInFlight => "> cancel in flight".to_owned(),
        Action::Alert { code, message } => format!("> alert {} {message}", code.as_str()),
    }
}

/// The name of a refusal, for counting which were met.
pub(crate) fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Exists => "Exists",
        Refusal::NoRun => "NoRun",
        Refusal::NoStep(_) => "NoStep",
        Refusal::RunState(_) => "RunState",
        Refusal::StepState { .. } => "StepState",
        Refusal::Closed(_) => "Closed",
        Refusal::Superseded { .. } => "Superseded",
        Refusal::Orphaned { .. } => "Orphaned",
        Refusal::NotRunning(_) => "NotRunning",
        Refusal::NotReady { .. } => "NotReady",
        Refusal::NeedsApproval => "NeedsApproval",
        Refusal::NoApprovalNeeded => "NoApprovalNeeded",
        Refusal::NotFailed { .. } => "NotFailed",
        Refusal::Denied(_) => "Denied",
        Refusal::EventLimit(_) => "EventLimit",
        Refusal::SignalLimit(_) => "SignalLimit",
        Refusal::NoExecution => "NoExecution",
        Refusal::NotForExecutions => "NotForExecutions",
        Refusal::NeverWaits => "NeverWaits",
        Refusal::StaleToken => "StaleToken",
        Refusal::Invalid(_) => "Invalid",
        Refusal::NoOperation(_) => "NoOperation",
        Refusal::CallbackClosed => "CallbackClosed",
    }
}
