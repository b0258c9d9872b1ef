//! What an event says on one line: a word or two, and what is worth a glance. Knows no terminal and no store.
//!
//! Events that only repeat what another line of the same moment says have none: the start and the end of an execution are told
//! by its run's own events, and an approval that nobody was asked for is part of the start.

use std::time::Duration;

use servo_entrypoint::gts::{FUNCTION, WORKFLOW};
use servo_model::Event;
use servo_model::event::{
    EventBody as B, HandlerReturned, HandlerStatus, OperationResolved, OperationUpdated, SignalType,
};
use servo_model::operation::{ErrorObject, OperationAction as A, OperationStatus, OperationType as T};

use super::printer::Colour;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) event: &'static str,
    pub(super) detail: String,
    pub(super) colour: Option<Colour>,
}

/// What a run is called from this event on.
pub(super) fn name(body: &B) -> Option<String> {
    match body {
        B::RunQueued(queued) => Some(queued.plan_ref.plan_id.to_string()),
        B::ExecutionStarted(start) => Some(match &start.entrypoint {
            Some(pin) => short_address(&pin.address).to_owned(),
            None => start.function.clone(),
        }),
        _ => None,
    }
}

/// The own part of an entrypoint's address: `demo.shop.order.v1`.
pub(super) fn short_address(address: &str) -> &str {
    let own = address.strip_prefix(FUNCTION).or_else(|| address.strip_prefix(WORKFLOW)).unwrap_or(address);
    own.trim_end_matches('~')
}

/// The line of an event; `operation` is what the operation that it is about is called.
pub(super) fn of(event: &Event, operation: &str) -> Option<Line> {
    let line = |event, detail: String, colour| Some(Line { event, detail, colour });
    match &event.body {
        B::RunQueued(body) if body.logical_attempt_id > 1 => {
            line("queued again", body.reason.clone().unwrap_or_default(), Some(Colour::Blue))
        }
        B::RunQueued(body) => {
            let later = body.not_before.map(|at| format!(", not before {at}")).unwrap_or_default();
            line("queued", format!("{}{later}", event.run_id), Some(Colour::Blue))
        }
        B::RunApproved(body) => line("approved", format!("by {}", body.approved_by.as_deref()?), Some(Colour::Green)),
        B::RunStarted(_) => line("started", String::new(), Some(Colour::Blue)),
        B::StepStarted(body) => line("step started", step(&body.step_id, body.logical_attempt_id), None),
        B::StepCompleted(body) => {
            line("step succeeded", step(&body.step_id, body.logical_attempt_id), Some(Colour::Green))
        }
        B::StepFailed(body) => {
            let what = step(&body.step_id, body.logical_attempt_id);
            line("step failed", format!("{what}: {}: {}", body.error.code, body.error.message), Some(Colour::Red))
        }
        B::StepSkipped(body) => line("step skipped", format!("{}: {}", body.step_id, body.reason), Some(Colour::Dim)),
        B::StepRetryScheduled(body) => {
            let at = body.not_before.map(|at| format!(" not before {at}")).unwrap_or_default();
            line("step again", format!("{} #{}{at}", body.step_id, body.logical_attempt_id), Some(Colour::Yellow))
        }
        B::StepTakenOver(body) => {
            line("step taken over", format!("{} handed out again", body.step_id), Some(Colour::Yellow))
        }
        // What came with it is told next.
        B::SignalAccepted(body) if body.signal_type == SignalType::Message => None,
        B::SignalAccepted(body) => {
            line("signal accepted", format!("{:?} by {}", body.signal_type, body.decided_by).to_lowercase(), None)
        }
        B::SignalRejected(body) => {
            line("signal rejected", format!("{}: {}", body.code, body.reason), Some(Colour::Red))
        }
        B::RunPaused(body) => line("paused", body.reason.clone().unwrap_or_default(), Some(Colour::Yellow)),
        B::RunResumed(_) => line("resumed", String::new(), Some(Colour::Blue)),
        B::RunCompleted(_) => line("succeeded", String::new(), Some(Colour::Green)),
        B::RunFailed(body) => {
            let cause = &body.root_cause;
            line("failed", format!("{}: {}", short_code(&cause.code), cause.message), Some(Colour::Red))
        }
        B::RunCancelled(body) => line("canceled", body.reason.clone().unwrap_or_default(), Some(Colour::Dim)),
        B::DrainTimedOut(body) => {
            line("drain timed out", format!("{} still in flight", body.in_flight), Some(Colour::Yellow))
        }
        B::TaskOrphaned(body) => line("step orphaned", body.step_id.to_string(), Some(Colour::Yellow)),
        B::HandlerInvoked(body) => line("handler called", format!("#{}", body.invocation), Some(Colour::Dim)),
        B::HandlerReturned(body) => returned(body, event),
        B::OperationUpdated(body) => updated(body, operation),
        B::OperationResolved(body) => resolved(body, operation),
        B::MessageReceived(body) => line("signal received", body.name.clone(), Some(Colour::Blue)),
        B::CompensationStarted(_) => line("undoing", String::new(), Some(Colour::Yellow)),
        B::CompensationEnded(body) => match &body.error {
            None => line(
                "undone",
                body.handler_run_id.as_ref().map(|id| format!("by {id}")).unwrap_or_default(),
                Some(Colour::Yellow),
            ),
            Some(error) => line("not undone", said(Some(error)), Some(Colour::Red)),
        },
        B::RunDeadLettered(body) => line("dead-lettered", body.reason.clone(), Some(Colour::Red)),
        B::RunImported(body) => line("imported", format!("by {}", body.imported_by), Some(Colour::Yellow)),
        B::Unknown(body) => line("event", body.event_type.clone(), None),
        B::ExecutionStarted(_) | B::ExecutionEnded(_) | B::CallbackHeartbeat(_) | B::Runtime(_) => None,
    }
}

fn returned(body: &HandlerReturned, event: &Event) -> Option<Line> {
    let took = took(event.at().since(body.invoked_at));
    let (word, detail, colour) = match body.status {
        HandlerStatus::Succeeded => ("handler returned", took, Colour::Dim),
        HandlerStatus::Pending => ("suspended", format!("handler ran {took}"), Colour::Yellow),
        // The run's own end says why.
        HandlerStatus::Failed if body.error.is_none() => ("handler failed", took, Colour::Red),
        HandlerStatus::Failed => ("handler failed", said(body.error.as_ref()), Colour::Red),
        HandlerStatus::Crashed => ("handler crashed", said(body.error.as_ref()), Colour::Red),
        HandlerStatus::Lost if body.unreached => {
            let pause = Duration::from_millis(body.retry_after_ms);
            let detail = format!("{}; again in {}", said(body.error.as_ref()), self::took(pause));
            ("not reached", detail, Colour::Yellow)
        }
        // Without an error it did answer, and its run was paused.
        HandlerStatus::Lost => {
            let why = body.error.as_ref().and_then(|error| error.error_message.clone());
            ("handler lost", why.unwrap_or_else(|| "the run is paused; called again then".to_owned()), Colour::Yellow)
        }
        HandlerStatus::Retrying => {
            let pause = Duration::from_millis(body.retry_after_ms);
            let detail = format!("{}; again in {}", said(body.error.as_ref()), self::took(pause));
            ("handler failed", detail, Colour::Yellow)
        }
    };
    Some(Line { event: word, detail, colour: Some(colour) })
}

fn updated(body: &OperationUpdated, name: &str) -> Option<Line> {
    let line = |event, detail: String, colour| Some(Line { event, detail, colour });
    let name = name.to_owned();
    match (body.operation_type, body.action) {
        (T::Step, A::Start) => line("step started", name, None),
        (T::Step, A::Succeed) => line("step succeeded", name, Some(Colour::Green)),
        (T::Step, A::Fail) => line("step failed", format!("{name}: {}", said(body.error.as_ref())), Some(Colour::Red)),
        (T::Step, A::Retry) => {
            let pause = took(Duration::from_secs(body.seconds.unwrap_or_default()));
            let detail = format!("{name}: {}; again in {pause}", said(body.error.as_ref()));
            line("step failed", detail, Some(Colour::Yellow))
        }
        (T::Wait, A::Start) => {
            let time = took(Duration::from_secs(body.seconds.unwrap_or_default()));
            line("wait", join(&name, &time), Some(Colour::Yellow))
        }
        (T::Callback, A::Start) => line("waits for", name, Some(Colour::Yellow)),
        (T::ChainedInvoke, A::Start) => {
            let what = body.chained.as_ref().map(|chained| short_address(&chained.function).to_owned());
            line("calls", join(&name, &what.unwrap_or_default()), None)
        }
        (T::Context, A::Fail) => {
            line("part failed", format!("{name}: {}", said(body.error.as_ref())), Some(Colour::Red))
        }
        // Parts of a workflow are told by what happens in them, and an end of a wait by what ended it.
        _ => None,
    }
}

fn resolved(body: &OperationResolved, name: &str) -> Option<Line> {
    let (event, colour) = match body.status {
        OperationStatus::Succeeded => ("goes on", Colour::Green),
        OperationStatus::Ready => ("tries again", Colour::Blue),
        OperationStatus::TimedOut => ("timed out", Colour::Red),
        OperationStatus::Failed => ("answer: failed", Colour::Red),
        OperationStatus::Cancelled | OperationStatus::Stopped => ("ended", Colour::Dim),
        OperationStatus::Started | OperationStatus::Pending => return None,
    };
    let detail = match &body.error {
        Some(error) => join(name, &said(Some(error))),
        None => name.to_owned(),
    };
    Some(Line { event, detail, colour: Some(colour) })
}

fn step(id: &servo_model::StepId, attempt: u32) -> String {
    if attempt > 1 { format!("{id} #{attempt}") } else { id.to_string() }
}

fn join(one: &str, other: &str) -> String {
    if one.is_empty() || other.is_empty() { format!("{one}{other}") } else { format!("{one}: {other}") }
}

/// Published errors have long ids; the word before the version says which one it is.
fn short_code(code: &str) -> &str {
    let Some(id) = code.strip_prefix("gts.") else { return code };
    let own = id.trim_end_matches('~').rsplit('~').next().unwrap_or(id);
    own.rsplit_once(".v").and_then(|(names, _)| names.rsplit('.').next()).unwrap_or(code)
}

fn said(error: Option<&ErrorObject>) -> String {
    let Some(error) = error else { return "no reason given".to_owned() };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    join(short_code(&text(&error.error_type)), &text(&error.error_message))
}

/// `12 ms`, `1.2 s`, `3 min`, `2 h`, `1 d`.
pub(super) fn took(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => {
            let tenths = time.subsec_millis() / 100;
            if tenths == 0 { format!("{seconds} s") } else { format!("{seconds}.{tenths} s") }
        }
        60..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_by_its_own_part() {
        assert_eq!(short_address(&format!("{WORKFLOW}demo.shop.order.v1~")), "demo.shop.order.v1");
        assert_eq!(short_address("orders"), "orders");
    }

    #[test]
    fn an_error_is_shown_by_its_own_word() {
        let published = "gts.x.core.serverless.err.v1~x.core.serverless.err.validation.v1~";
        assert_eq!((short_code(published), short_code("card_declined")), ("validation", "card_declined"));
    }

    #[test]
    fn lengths_are_short() {
        let cases = [
            (7, "7 ms"),
            (1_000, "1 s"),
            (1_250, "1.2 s"),
            (180_000, "3 min"),
            (86_400_000, "24 h"),
            (259_200_000, "3 d"),
        ];
        for (millis, expected) in cases {
            assert_eq!(took(Duration::from_millis(millis)), expected);
        }
    }
}
