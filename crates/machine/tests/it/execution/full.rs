//! R23: a run that really has as many events as it may have by default. Every event is decided and folded; none is made up.

use servo_machine::{
    Answer, Command, Decision, ExecutionCommand, Policy, Refusal, Run, Signal, SignalKind, Used, decide,
};
use servo_model::event::{EventBody, idempotency_key};
use servo_model::limits::{EVENTS_RESERVED, Limits};
use servo_model::{Event, EventId, RunId, RunState, RunStatus, SignalId, Timestamp};

use super::world::start;

const MAX: u64 = 250_000;

/// A world without a log: [`super::world::World`] folds all of it again with every decision.
#[derive(Clone)]
struct Long {
    state: RunState,
    now: Timestamp,
}

impl Long {
    fn new() -> Self {
        let mut long = Self {
            state: RunState::new(RunId::parse("inv_1").unwrap()),
            now: Timestamp::from_millis(1_800_000_000_000),
        };
        let start = Command::StartExecution(Box::new(start(true)));
        long.record(decide(Run::New(&long.state.run_id), &start, &Policy::default(), long.now).unwrap());
        // One event more, so that a handler is being called when there are as many as may be.
        let rejected = long.decide(&signal(SignalKind::RetryRun)).unwrap();
        long.record(rejected);
        long
    }

    /// With exactly so many events: invocations that are lost, and made again.
    fn with(events: u64) -> Self {
        let mut long = Self::new();
        while long.state.last_event_seq < events {
            let decision = long.decide(&long.next()).unwrap();
            assert_eq!((decision.facts.len(), &decision.refusal), (1, &None));
            long.record(decision);
        }
        assert_eq!(long.state.last_event_seq, events);
        long
    }

    fn record(&mut self, decision: Decision) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for fact in decision.facts {
            let (step, number) = fact.body.key_parts();
            let event = Event {
                event_id: EventId::from_u128(u128::from(self.state.last_event_seq)),
                run_id: self.state.run_id.clone(),
                run_seq: self.state.last_event_seq + 1,
                idempotency_key: idempotency_key(&self.state.run_id, step, number, fact.body.event_type(), "1"),
                emitted_at: self.now,
                emitted_by: "test".to_owned(),
                occurred_at: Some(self.now),
                body: fact.body,
            };
            kinds.push(kind(&event.body));
            self.state.advance(&event);
        }
        kinds
    }

    fn decide(&self, command: &Command) -> Result<Decision, Refusal> {
        decide(Run::Known(&self.state), command, &Policy::default(), self.now)
    }

    fn next(&self) -> Command {
        let head = &self.state.execution.as_deref().unwrap().head;
        let invocation = head.invocations;
        Command::Execution(Box::new(match head.invocation {
            Some(_) => ExecutionCommand::Lose { invocation },
            None => ExecutionCommand::Invoke { invocation: invocation + 1, request_id: format!("r{invocation}") },
        }))
    }

    fn answer(&self, answer: Answer) -> Command {
        let invocation = self.state.execution.as_deref().unwrap().head.invocations;
        Command::Execution(Box::new(ExecutionCommand::Return { invocation, answer, used: Used::default() }))
    }
}

fn signal(kind: SignalKind) -> Command {
    let signal_id = SignalId::parse(&format!("s-{kind:?}")).unwrap();
    Command::Signal(Signal { signal_id, kind, by: "ops".to_owned(), reason: None, denied: None })
}

fn kind(body: &EventBody) -> &'static str {
    match body {
        EventBody::HandlerInvoked(_) => "invoked",
        EventBody::HandlerReturned(_) => "returned",
        EventBody::ExecutionEnded(_) => "ended",
        EventBody::RunCompleted(_) => "completed",
        EventBody::RunFailed(_) => "failed",
        EventBody::RunCancelled(_) => "cancelled",
        EventBody::SignalAccepted(_) => "signal",
        _ => "other",
    }
}

#[test]
fn a_run_ends_at_the_default_limit_of_events() {
    assert_eq!((Limits::default().events_per_run_max, Policy::default().events_per_run_max), (MAX, MAX));
    let last = MAX - EVENTS_RESERVED;
    let mut long = Long::with(last - 1);
    // The last one that is not kept for its end.
    let decision = long.decide(&long.next()).unwrap();
    assert_eq!((decision.facts.len(), &decision.refusal), (1, &None), "one less");
    long.record(decision);
    assert_eq!((long.state.last_event_seq, long.state.status), (last, RunStatus::Running), "at the limit");
    assert!(long.state.execution.as_deref().unwrap().head.invocation.is_some(), "a handler is being called");

    // One more ends it and says why, and what ends it by itself still can.
    let ends = |command: &Command, refusal: Option<Refusal>, status: RunStatus, kinds: &[&str]| {
        let mut long = long.clone();
        let decision = long.decide(command).unwrap();
        assert_eq!(decision.refusal, refusal);
        assert_eq!(long.record(decision), kinds);
        assert_eq!(long.state.status, status);
        assert!((last + 1..=MAX).contains(&long.state.last_event_seq));
    };
    let full = Some(Refusal::EventLimit(MAX));
    ends(&long.next(), full.clone(), RunStatus::Failed, &["returned", "ended", "failed"]);
    ends(&long.answer(Answer::Pending), full, RunStatus::Failed, &["returned", "ended", "failed"]);
    let done = long.answer(Answer::Succeeded(None));
    ends(&done, None, RunStatus::Completed, &["returned", "ended", "completed"]);
    let cancel = signal(SignalKind::Cancel);
    ends(&cancel, None, RunStatus::Cancelled, &["signal", "returned", "ended", "cancelled"]);
    let terminate = Command::Terminate { by: "ops".to_owned(), reason: "why".to_owned() };
    ends(&terminate, None, RunStatus::Cancelled, &["returned", "ended", "cancelled"]);

    // What neither ends it nor is part of it is refused.
    let pause = signal(SignalKind::Pause);
    assert_eq!(long.decide(&pause).unwrap_err(), Refusal::EventLimit(MAX));
}
