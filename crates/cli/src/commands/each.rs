//! One thing done to many runs. A refusal does not keep the others from being tried.

use servo_client::{Answer, Error};
use servo_model::RunId;

use crate::args::Target;
use crate::commands::ids;
use crate::failure::{Failure, exit};
use crate::input::Chosen;
use crate::output::progress::Progress;
use crate::run::{Session, interruptible};
use crate::view::View;

pub(super) struct Done<T> {
    pub(super) answers: Vec<T>,
    /// The exit code of the first refusal.
    pub(super) first_exit: u8,
}

pub(super) async fn each<T>(
    session: &Session,
    chosen: &Chosen,
    what: &'static str,
    act: impl AsyncFn(&RunId) -> Result<T, Failure>,
) -> Result<Done<T>, Failure> {
    interruptible(async {
        let mut done = Done { answers: Vec::new(), first_exit: exit::OK };
        let mut progress = Progress::new(what, Some(chosen.runs.len() as u64));
        for run in &chosen.runs {
            match act(run).await {
                Ok(answer) => done.answers.push(answer),
                Err(failure) if failure.is_silent() => return Err(failure),
                Err(failure) => {
                    let failure = if chosen.is_single { failure } else { failure.about(run.as_str()) };
                    progress.hide();
                    let code = session.out.failure(&failure);
                    done.first_exit = if done.first_exit == exit::OK { code } else { done.first_exit };
                    // The next one would meet the same.
                    if matches!(code, exit::UNAVAILABLE | exit::AUTH | exit::INTERRUPTED) {
                        break;
                    }
                }
            }
            progress.advance(1);
        }
        Ok(done)
    })
    .await
}

pub(super) fn finish<V: View>(
    session: &Session,
    chosen: &Chosen,
    done: (&V, &[String]),
    first_exit: u8,
) -> Result<u8, Failure> {
    if chosen.runs.is_empty() {
        session.out.note("nothing to do: no ids came in");
    }
    session.out.answers(done.0, done.1, chosen.is_single)?;
    Ok(first_exit)
}

/// Asks for each, and shows all answers as one thing.
pub(super) async fn ask<T, V: View>(
    session: &Session,
    targets: &[Target],
    what: &'static str,
    act: impl AsyncFn(&RunId) -> Result<Answer<T>, Error>,
    view: impl FnOnce(Vec<T>) -> V,
) -> Result<u8, Failure> {
    let chosen = ids::choose(session, targets).await?;
    let done = each(session, &chosen, what, async |run| Ok(act(run).await?)).await?;
    let raws: Vec<_> = done.answers.iter().map(|answer| answer.raw().to_owned()).collect();
    let view = view(done.answers.into_iter().map(Answer::into_value).collect());
    finish(session, &chosen, (&view, &raws), done.first_exit)
}

/// Streams: one run after the other, each under its name when there are several.
pub(super) async fn one_by_one(
    session: &Session,
    target: &Target,
    act: impl AsyncFn(&RunId) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let chosen = ids::choose(session, std::slice::from_ref(target)).await?;
    if let (true, [run]) = (chosen.is_single, chosen.runs.as_slice()) {
        return act(run).await;
    }
    let done = each(session, &chosen, "read", async |run| {
        session.out.note(&format!("==> {run}"));
        act(run).await
    })
    .await?;
    Ok(done.answers.into_iter().chain([done.first_exit]).find(|code| *code != exit::OK).unwrap_or(exit::OK))
}
