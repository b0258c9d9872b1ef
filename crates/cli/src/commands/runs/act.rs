//! Acting on runs: signals, forced ends, deletions. One refusal does not keep the others from being tried.

use servo_model::event::SignalType;
use servo_model::{SignalId, StepId};
use servo_wire::v1::SignalRequest;

use crate::args::{DeleteArgs, Note, Target, TerminateArgs};
use crate::commands::each::{ask, each, finish};
use crate::commands::ids;
use crate::failure::{Failure, exit};
use crate::input;
use crate::run::Session;
use crate::view::{RunRefs, SignalledRuns};

pub(super) struct Signal {
    pub(super) kind: SignalType,
    pub(super) step: Option<StepId>,
    pub(super) note: Note,
}

pub(super) async fn signal(session: &Session, targets: &[Target], signal: &Signal) -> Result<u8, Failure> {
    let needs_step = matches!(signal.kind, SignalType::RetryStep | SignalType::SkipStep);
    match &signal.step {
        None if needs_step => return Err(Failure::usage("this signal is about a step").hint("name it with --step")),
        Some(_) if !needs_step => {
            return Err(Failure::usage("this signal is about the run, not a step").hint("leave --step out"));
        }
        _ => {}
    }
    let request = SignalRequest {
        signal_id: match &signal.note.signal_id {
            Some(id) => id.clone(),
            None => new_signal_id()?,
        },
        signal_type: signal.kind,
        step_id: signal.step.clone(),
        reason: signal.note.reason.clone(),
    };
    let what = match signal.kind {
        SignalType::Pause => "pause",
        SignalType::Resume => "resume",
        SignalType::Cancel => "cancel",
        SignalType::Approve => "approve",
        SignalType::RetryRun | SignalType::RetryStep => "retry",
        SignalType::SkipStep => "skip",
        SignalType::Message => "signal",
    };
    ask(session, targets, what, async |run| session.client.signal(run, &request).await, SignalledRuns).await
}

pub(super) async fn terminate(session: &Session, args: &TerminateArgs) -> Result<u8, Failure> {
    let chosen = ids::choose(session, &args.targets.runs).await?;
    input::confirm("Terminate", &chosen, args.yes)?;
    let done =
        each(session, &chosen, "terminate", async |run| Ok(session.client.terminate_run(run, &args.reason).await?))
            .await?;
    let raws: Vec<_> = done.answers.iter().map(|answer| answer.raw().to_owned()).collect();
    let runs = done.answers.into_iter().map(|answer| answer.into_value().run_id).collect();
    finish(session, &chosen, (&RunRefs { done: "terminated", runs }, &raws), done.first_exit)
}

pub(super) async fn delete(session: &Session, args: &DeleteArgs) -> Result<u8, Failure> {
    let chosen = ids::choose(session, &args.targets.runs).await?;
    input::confirm("Delete", &chosen, args.yes)?;
    let done = each(session, &chosen, "delete", async |run| {
        session.client.delete_run(run).await?;
        Ok(run.clone())
    })
    .await?;
    // The server has nothing to say about a run that is gone; this is the shape that it uses for the others.
    let raws: Vec<_> = done.answers.iter().map(RunRefs::json).collect();
    finish(session, &chosen, (&RunRefs { done: "deleted", runs: done.answers }, &raws), done.first_exit)
}

pub(crate) fn new_signal_id() -> Result<SignalId, Failure> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|error| Failure::new(exit::ERROR, format!("no randomness: {error}")))?;
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    SignalId::parse(&format!("sig_{hex}")).map_err(|invalid| Failure::new(exit::ERROR, invalid.to_string()))
}
