//! One transaction for the appends of many callers: lock and load what they touch, judge each by the rules of
//! `LogStore`, write what passed, commit.
//!
//! Most appends say at which sequence they expect their runs. These are tried first, in one exchange (`expected`); what is
//! described here is the way of the others, and of those for which not everything was as expected.
//!
//! A caller whose append is refused gets its error from the judgement and leaves nothing in the transaction, so it
//! spoils nobody else's. Two exchanges with the server make a batch: the first locks and loads, the second writes and
//! commits. What the locks do not cover (an id that row security hides from us) shows as a refused statement; then the
//! batch is undone and its appends are tried one by one.

mod expected;
mod judge;
mod load;
mod writes;

use std::collections::VecDeque;
use std::time::Instant;

use servo_store::{Append, Appended, DispatchChange, Error, Expected, Result};

use self::writes::Writes;
pub(crate) use self::writes::{EventWrite, NewRun, QueueWrite};
use crate::error::{Failure, Phase};
use crate::pipeline::{Failed, Pipeline};
use crate::store::Core;

/// An append that others get in the way of is tried this often.
const ATTEMPTS_MAX: u32 = 5;

/// When so many single appends of a refused batch have waited for nothing, the others need not try.
const IN_VAIN_MAX: u32 = 3;

/// Why a transaction did not come to its end.
enum Stop {
    /// For everybody in it.
    Error(Error),
    /// The server refused a statement: somebody's in the batch, and everything is undone.
    Refused(Failure),
    /// This process came back to its transaction too late, and the server had ended it: everything is undone.
    LeftAlone,
    /// There was nothing to put together.
    Apart,
}

/// Writes the appends and answers each. Never fails as a whole: what happens to the batch is every append's answer.
pub(crate) async fn commit(core: &Core, appends: &[Append]) -> Vec<Result<Appended>> {
    let tried = Box::pin(expected::commit(core, appends)).await;
    let open = appends.iter().zip(&tried.answers).filter(|(_, answer)| answer.is_none());
    let rest: Vec<&Append> = open.map(|(append, _)| append).collect();
    let mut judged = judge_all(core, &rest, !tried.waited_in_vain).await.into_iter();
    let answers = tried.answers.into_iter();
    answers.map(|answer| answer.or_else(|| judged.next()).unwrap_or(Err(Error::Closed))).collect()
}

/// The same on what is in the database.
async fn judge_all(core: &Core, appends: &[&Append], at_once: bool) -> Vec<Result<Appended>> {
    let together: Vec<_> = appends.iter().copied().filter(|append| at_once && !crosses_tenants(append)).collect();
    let mut batch =
        if together.len() > 1 { Box::pin(transact(core, &together, Ending::Kept)).await } else { Err(Stop::Apart) };
    let mut answers = Vec::with_capacity(appends.len());
    let mut in_vain = 0;
    for append in appends {
        answers.push(match &mut batch {
            Ok(answers) if !crosses_tenants(append) => answers.pop_front().unwrap_or(Err(Error::Closed)),
            Err(Stop::Error(error)) if !crosses_tenants(append) => Err(error.clone()),
            _ if in_vain >= IN_VAIN_MAX => Err(unavailable("the database cannot do this now")),
            _ => Box::pin(alone(core, append)).await,
        });
        in_vain += u32::from(matches!(answers.last(), Some(Err(Error::Unavailable { .. }))));
    }
    answers
}

/// Nothing was written.
fn unavailable(detail: &str) -> Error {
    Error::Unavailable { detail: detail.to_owned(), maybe_written: false }
}

/// The operator's word on a dispatch rides on the system stream, whoever's dispatch it is.
fn crosses_tenants(append: &Append) -> bool {
    let system = append.streams.iter().filter(|stream| stream.run_id.is_system());
    let mut changes = system.flat_map(|stream| &stream.dispatches);
    changes.any(|change| !matches!(change, DispatchChange::Queue { .. }))
}

async fn alone(core: &Core, append: &Append) -> Result<Appended> {
    let began = Instant::now();
    let mut attempt = 0;
    while attempt < ATTEMPTS_MAX {
        attempt += 1;
        match transact(core, &[append], Ending::Kept).await {
            Ok(mut answers) => return answers.pop_front().unwrap_or(Err(Error::Closed)),
            Err(Stop::Error(error)) => return Err(error),
            // Waiting is no attempt.
            Err(Stop::Refused(failure)) if failure.is_lock_timeout() && began.elapsed() < core.pools.lock_patience => {
                attempt -= 1;
            }
            Err(Stop::Refused(failure)) if !failure.is_contention() => return Err(failure.into_error(Phase::Open)),
            // Whoever was in the way has finished and can be seen now. If not, row security hides it.
            Err(Stop::Refused(failure)) if attempt > 1 => {
                if let Some(hidden) = hidden(append, &failure) {
                    return Err(hidden);
                }
            }
            Err(Stop::Refused(_) | Stop::LeftAlone | Stop::Apart) => {}
        }
    }
    Err(unavailable("others change the same rows"))
}

/// The error for an id that exists with another tenant. An append that starts several runs may name the wrong one of
/// them, which tells its writer no less: ids are chosen anew.
fn hidden(append: &Append, failure: &Failure) -> Option<Error> {
    let new = || append.streams.iter().filter(|stream| stream.expected == Expected::New);
    let dispatches = || append.streams.iter().flat_map(|stream| &stream.dispatches).map(DispatchChange::request_id);
    match failure.constraint()? {
        "runs_pkey" => new().next().map(|stream| Error::RunExists { run_id: stream.run_id.clone() }),
        "dispatches_pkey" => dispatches().next().map(|id| Error::DispatchNotFound { request_id: id.to_owned() }),
        _ => None,
    }
}

/// What would be answered, with nothing written. Only a broken variant asks for it.
pub(crate) async fn rehearse(core: &Core, append: &Append) -> Result<Appended> {
    match transact(core, &[append], Ending::Undone).await {
        Ok(mut answers) => answers.pop_front().unwrap_or(Err(Error::Closed)),
        Err(Stop::Error(error)) => Err(error),
        Err(_) => Err(unavailable("others change the same rows")),
    }
}

/// How a transaction ends that could be committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Kept,
    Undone,
}

async fn transact(
    core: &Core,
    appends: &[&Append],
    ending: Ending,
) -> std::result::Result<VecDeque<Result<Appended>>, Stop> {
    let pools = &core.pools;
    let pool = if appends.iter().any(|append| crosses_tenants(append)) { &pools.engine } else { &pools.append };
    let connection = pools.borrow(pool).await.map_err(Stop::Error)?;
    let mut pipeline = Pipeline::new();
    let read = load::ask(core, appends, &mut pipeline);
    crashpoint!("postgres.append.before_begin");
    let mut world = match connection.send(pipeline).await {
        Ok(answers) => read(answers).map_err(Stop::Error)?,
        Err(Failed { failure, .. }) if failure.is_refusal() => {
            connection.roll_back().await;
            return Err(Stop::Refused(failure));
        }
        Err(failed) => return Err(Stop::Error(failed.failure.into_error(Phase::Open))),
    };
    let mut writes = Writes::default();
    let answers: VecDeque<_> = appends.iter().map(|append| world.judge(append, &mut writes)).collect();
    if writes.is_empty() || ending == Ending::Undone {
        connection.roll_back().await;
        return Ok(answers);
    }
    let mut pipeline = Pipeline::new();
    writes.send(&mut pipeline, world.now, core.seals).map_err(Stop::Error)?;
    let commit = pipeline.plain("COMMIT");
    crashpoint!("postgres.append.before_commit");
    match connection.send(pipeline).await {
        Ok(_) => {
            crashpoint!("postgres.append.after_commit");
            connection.release();
            Ok(answers)
        }
        Err(Failed { step, failure, .. }) if failure.is_refusal() && step < commit => {
            connection.roll_back().await;
            Err(Stop::Refused(failure))
        }
        Err(Failed { failure, .. }) if failure.was_left_alone() || matches!(failure, Failure::Gone) => {
            Err(Stop::LeftAlone)
        }
        Err(failed) => Err(Stop::Error(failed.into_error(commit))),
    }
}
