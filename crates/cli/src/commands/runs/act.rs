//! Acting on runs: signals, forced ends, deletions. One refusal does not keep the others from being tried.

use servo_client::Answer;
use servo_model::event::SignalType;
use servo_model::{RunId, SignalId, StepId};
use servo_wire::v1::SignalRequest;

use crate::args::{DeleteArgs, Note, Target, TerminateArgs};
use crate::failure::{Failure, exit};
use crate::input::{self, Chosen};
use crate::run::{Session, interruptible};
use crate::view::{RunRefs, SignalledRuns, View};

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
    let chosen = input::choose(targets)?;
    let done = each(session, &chosen, async |run| Ok(session.client.signal(run, &request).await?)).await?;
    let raws: Vec<_> = done.answers.iter().map(|answer| answer.raw().to_owned()).collect();
    let view = SignalledRuns(done.answers.into_iter().map(Answer::into_value).collect());
    finish(session, &chosen, (&view, &raws), done.first_exit)
}

pub(super) async fn terminate(session: &Session, args: &TerminateArgs) -> Result<u8, Failure> {
    let chosen = input::choose(&args.targets.runs)?;
    input::confirm("Terminate", &chosen, args.yes)?;
    let done = each(session, &chosen, async |run| Ok(session.client.terminate_run(run, &args.reason).await?)).await?;
    let raws: Vec<_> = done.answers.iter().map(|answer| answer.raw().to_owned()).collect();
    let runs = done.answers.into_iter().map(|answer| answer.into_value().run_id).collect();
    finish(session, &chosen, (&RunRefs { done: "terminated", runs }, &raws), done.first_exit)
}

pub(super) async fn delete(session: &Session, args: &DeleteArgs) -> Result<u8, Failure> {
    let chosen = input::choose(&args.targets.runs)?;
    input::confirm("Delete", &chosen, args.yes)?;
    let done = each(session, &chosen, async |run| {
        session.client.delete_run(run).await?;
        Ok(run.clone())
    })
    .await?;
    // The server has nothing to say about a run that is gone; this is the shape that it uses for the others.
    let raws: Vec<_> = done.answers.iter().map(RunRefs::json).collect();
    finish(session, &chosen, (&RunRefs { done: "deleted", runs: done.answers }, &raws), done.first_exit)
}

struct Done<T> {
    answers: Vec<T>,
    /// The exit code of the first refusal.
    first_exit: u8,
}

async fn each<T>(
    session: &Session,
    chosen: &Chosen,
    act: impl AsyncFn(&RunId) -> Result<T, Failure>,
) -> Result<Done<T>, Failure> {
    interruptible(async {
        let mut done = Done { answers: Vec::new(), first_exit: exit::OK };
        for run in &chosen.runs {
            match act(run).await {
                Ok(answer) => done.answers.push(answer),
                Err(failure) => {
                    let failure = if chosen.is_single { failure } else { failure.about(run.as_str()) };
                    let code = session.out.failure(&failure);
                    done.first_exit = if done.first_exit == exit::OK { code } else { done.first_exit };
                    // The next one would meet the same.
                    if matches!(code, exit::UNAVAILABLE | exit::AUTH) {
                        break;
                    }
                }
            }
        }
        Ok(done)
    })
    .await
}

fn finish<V: View>(session: &Session, chosen: &Chosen, done: (&V, &[String]), first_exit: u8) -> Result<u8, Failure> {
    if chosen.runs.is_empty() {
        session.out.note("no runs were named");
    }
    session.out.answers(done.0, done.1, chosen.is_single)?;
    Ok(first_exit)
}

pub(crate) fn new_signal_id() -> Result<SignalId, Failure> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|error| Failure::new(exit::ERROR, format!("no randomness: {error}")))?;
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    SignalId::parse(&format!("sig_{hex}")).map_err(|invalid| Failure::new(exit::ERROR, invalid.to_string()))
}
