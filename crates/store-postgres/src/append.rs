//! One transaction for the appends of many callers: lock and load what they touch, judge each by the rules of
//! `LogStore`, write what passed, commit.
//!
//! A caller whose append is refused gets its error from the judgement and leaves nothing in the transaction, so it
//! spoils nobody else's. Two exchanges with the server make a batch: the first locks and loads, the second writes and
//! commits. What the locks do not cover (an id that row security hides from us) shows as a refused statement; then the
//! batch is undone and its appends are tried one by one.

mod judge;
mod load;
mod writes;

use servo_store::{Append, Appended, Error, Result};

use self::writes::Writes;
pub(crate) use self::writes::{EventWrite, NewRun, QueueWrite};
use crate::error::{Failure, Phase};
use crate::pipeline::{Failed, Pipeline};
use crate::pool::Connection;
use crate::store::Core;

/// An append that others get in the way of is tried this often.
const ATTEMPTS_MAX: u32 = 5;

/// Why a transaction did not come to its end.
enum Stop {
    /// For everybody in it.
    Error(Error),
    /// The server refused a statement: somebody's in the batch, and everything is undone.
    Refused(Failure),
}

/// Writes the appends and answers each. Never fails as a whole: what happens to the batch is every append's answer.
pub(crate) async fn commit(core: &Core, appends: &[Append]) -> Vec<Result<Appended>> {
    if appends.len() > 1 {
        match transact(core, appends).await {
            Ok(answers) => return answers,
            Err(Stop::Error(error)) => return appends.iter().map(|_| Err(error.clone())).collect(),
            Err(Stop::Refused(_)) => {}
        }
    }
    let mut answers = Vec::with_capacity(appends.len());
    for append in appends {
        answers.push(alone(core, append).await);
    }
    answers
}

async fn alone(core: &Core, append: &Append) -> Result<Appended> {
    for attempt in 1..=ATTEMPTS_MAX {
        match transact(core, std::slice::from_ref(append)).await {
            Ok(mut answers) => return answers.swap_remove(0),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Refused(failure)) if !failure.is_contention() => return Err(failure.into_error(Phase::Open)),
            // Whoever was in the way has finished and can be seen now. If not, row security hides it.
            Err(Stop::Refused(failure)) if attempt > 1 => {
                if let Some(hidden) = hidden(append, &failure) {
                    return Err(hidden);
                }
            }
            Err(Stop::Refused(_)) => {}
        }
    }
    Err(Error::Unavailable { detail: "others change the same rows".to_owned(), maybe_written: false })
}

/// The error for an id that exists with another tenant. An append that starts several runs may name the wrong one of
/// them, which tells its writer no less: ids are chosen anew.
fn hidden(append: &Append, failure: &Failure) -> Option<Error> {
    let new = || append.streams.iter().filter(|stream| stream.expected == servo_store::Expected::New);
    let dispatches = || append.streams.iter().flat_map(|stream| &stream.dispatches).map(judge::request_id);
    match failure.constraint()? {
        "runs_pkey" => new().next().map(|stream| Error::RunExists { run_id: stream.run_id.clone() }),
        "dispatches_pkey" => dispatches().next().map(|id| Error::DispatchNotFound { request_id: id.to_owned() }),
        _ => None,
    }
}

async fn transact(core: &Core, appends: &[Append]) -> std::result::Result<Vec<Result<Appended>>, Stop> {
    let connection = core.pools.borrow(&core.pools.append).await.map_err(Stop::Error)?;
    let mut pipeline = Pipeline::new();
    let read = load::ask(core, appends, &mut pipeline);
    let loaded = match connection.send(pipeline).await {
        Ok(answers) => read(answers).map_err(Stop::Error)?,
        Err(failed) => return Err(refused_or(connection, failed, usize::MAX).await),
    };
    let mut world = loaded;
    let mut writes = Writes::default();
    let answers: Vec<_> = appends.iter().map(|append| world.judge(append, &mut writes)).collect();
    if writes.is_empty() {
        connection.roll_back().await;
        return Ok(answers);
    }
    let mut pipeline = Pipeline::new();
    writes.send(&mut pipeline, world.now).map_err(Stop::Error)?;
    let commit = pipeline.plain("COMMIT");
    match connection.send(pipeline).await {
        Ok(_) => {
            connection.release();
            Ok(answers)
        }
        Err(failed) => Err(refused_or(connection, failed, commit).await),
    }
}

/// A refusal undoes the transaction and leaves the connection usable; anything else costs the connection.
async fn refused_or(connection: Connection, failed: Failed, commit: usize) -> Stop {
    if failed.failure.is_refusal() && failed.step < commit {
        connection.roll_back().await;
        return Stop::Refused(failed.failure);
    }
    Stop::Error(failed.into_error(commit))
}
