//! What the engine refuses, in the words of this API: its statuses and actions, and what can be done instead.

use servo_entrypoint::{InvocationStatus, RuntimeErrorPayload, errors};
use servo_machine::{Refusal, SignalKind};

/// As the API calls what was asked for.
fn action(kind: &SignalKind) -> &'static str {
    match kind {
        SignalKind::Pause => "suspend",
        SignalKind::Resume => "resume",
        SignalKind::Cancel => "cancel",
        SignalKind::Approve => "approve",
        SignalKind::RetryRun => "retry",
        SignalKind::RetryStep(_) => "retry_step",
        SignalKind::SkipStep(_) => "skip_step",
        SignalKind::Message { .. } => "signal",
    }
}

/// A step's state as the timeline tells it.
fn step_is(status: &str) -> &'static str {
    match status {
        "SUCCEEDED" | "SUCCESS" => "has succeeded",
        "FAILED" => "has failed",
        "PENDING" | "READY" => "waits for its next try",
        "TIMED_OUT" => "has timed out",
        "CANCELLED" | "STOPPED" => "was canceled",
        "SKIPPED" => "was skipped",
        _ => "is running",
    }
}

/// A refusal of what `asked` of an invocation that is in this status.
pub(super) fn refused(refusal: &Refusal, asked: &SignalKind, status: InvocationStatus) -> RuntimeErrorPayload {
    let (name, can_replay) = (action(asked), matches!(status, InvocationStatus::Succeeded | InvocationStatus::Failed));
    let status = status.as_str();
    let instead = if can_replay { "`replay` starts a new one" } else { "start a new one with the same params" };
    match refusal {
        Refusal::NoRun | Refusal::NoExecution => super::no_invocation(),
        Refusal::NoStep(step) => {
            errors::not_found(format!("no step `{step}` in this invocation; its timeline names its steps"))
        }
        Refusal::NotFailed { step_id, status } => {
            let is = step_is(status);
            errors::conflict(match asked {
                SignalKind::SkipStep(_) if matches!(*status, "PENDING" | "READY") => format!(
                    "step `{step_id}` {is}, and its invocation does not go on meanwhile; `resume` it, then skip the step"
                ),
                SignalKind::SkipStep(_) => format!(
                    "step `{step_id}` {is}; a step is skipped when its invocation has failed with it, or while it waits for its next try"
                ),
                _ => format!("step `{step_id}` {is}; only a step that has failed is tried again"),
            })
        }
        Refusal::NeverWaits | Refusal::NotForExecutions => {
            errors::conflict(format!("`{name}` is for workflows, and this is a function"))
        }
        Refusal::SignalLimit(most) => errors::conflict(format!(
            "the invocation has taken {most} signals and control actions, which is the most; {instead}"
        )),
        Refusal::EventLimit(most) => {
            errors::conflict(format!("the invocation's log has {most} events, which is the most; {instead}"))
        }
        Refusal::Denied(reason) => errors::forbidden(reason.clone()),
        Refusal::Invalid(reason) => errors::bad_request(reason.clone()),
        _ if matches!(asked, SignalKind::Message { .. }) => errors::conflict(format!(
            "the invocation is `{status}` and takes no signals any more; send them while it is queued, running or suspended"
        )),
        _ => errors::conflict(format!(
            "`{name}` is not possible while the invocation is `{status}`; read it again to see what it allows"
        )),
    }
}

#[cfg(test)]
mod tests {
    use servo_model::run::{IllegalRunChange, RunChange};
    use servo_model::step::{IllegalStepChange, StepChange, StepStatus};
    use servo_model::{RunStatus, StepId};

    use super::*;

    fn step_id() -> StepId {
        StepId::parse("charge").unwrap()
    }

    /// What the engine says is made of words in capitals that this API does not have.
    #[test]
    fn no_word_of_the_engine_gets_out() {
        let step_id = step_id();
        let illegal = IllegalStepChange { from: StepStatus::Success, change: StepChange::Skipped };
        let refusals = [
            Refusal::Exists,
            Refusal::NoRun,
            Refusal::NoStep(step_id.clone()),
            Refusal::RunState(IllegalRunChange { from: RunStatus::Completed, change: RunChange::Paused }),
            Refusal::StepState { step_id: step_id.clone(), illegal },
            Refusal::Closed(RunStatus::Completed),
            Refusal::Superseded { step_id: step_id.clone(), attempt: 1 },
            Refusal::Orphaned { step_id: step_id.clone() },
            Refusal::NotRunning(RunStatus::Paused),
            Refusal::NotReady { step_id: step_id.clone() },
            Refusal::NeedsApproval,
            Refusal::NoApprovalNeeded,
            Refusal::NotFailed { step_id: step_id.clone(), status: "STARTED" },
            Refusal::EventLimit(1),
            Refusal::SignalLimit(1),
            Refusal::NoExecution,
            Refusal::NotForExecutions,
            Refusal::NeverWaits,
            Refusal::StaleToken,
            Refusal::NoOperation("o".to_owned()),
            Refusal::CallbackClosed,
        ];
        let message = SignalKind::Message { name: "n".to_owned(), payload: None };
        for asked in [SignalKind::Cancel, SignalKind::Pause, SignalKind::SkipStep(step_id), message] {
            for refusal in &refusals {
                let failure = refused(refusal, &asked, InvocationStatus::Succeeded);
                let text = &failure.message;
                let is_engines = |word: &str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
                assert!(!text.split(|c: char| !c.is_alphanumeric()).any(is_engines), "{refusal:?}: {text}");
                assert!(!text.contains(" run ") && !text.contains("attempt"), "{refusal:?}: {text}");
            }
        }
    }

    /// A replay is possible after an end, and not of what was canceled.
    #[test]
    fn a_replay_is_advised_where_it_is_possible() {
        for (status, advised) in
            [(InvocationStatus::Failed, true), (InvocationStatus::Running, false), (InvocationStatus::Canceled, false)]
        {
            for refusal in [Refusal::EventLimit(1), Refusal::SignalLimit(1)] {
                let failure = refused(&refusal, &SignalKind::Cancel, status);
                assert_eq!(failure.message.contains("replay"), advised, "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_skip_says_when_a_step_is_skipped() {
        let running = Refusal::NotFailed { step_id: step_id(), status: "STARTED" };
        let failure = refused(&running, &SignalKind::SkipStep(step_id()), InvocationStatus::Running);
        assert!(failure.message.starts_with("step `charge` is running; a step is skipped when"), "{}", failure.message);
        let waits = Refusal::NotFailed { step_id: step_id(), status: "PENDING" };
        let failure = refused(&waits, &SignalKind::SkipStep(step_id()), InvocationStatus::Suspended);
        assert!(failure.message.ends_with("`resume` it, then skip the step"), "{}", failure.message);
        let failure = refused(&running, &SignalKind::RetryStep(step_id()), InvocationStatus::Failed);
        assert!(failure.message.contains("only a step that has failed is tried again"), "{}", failure.message);
    }
}
