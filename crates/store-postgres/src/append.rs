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

use servo_model::RunId;
use servo_store::{Append, Appended, Error, Result};
use tokio_postgres::error::SqlState;

use self::judge::World;
use self::writes::Writes;
pub(crate) use self::writes::{EventWrite, NewRun, QueueWrite};
use crate::error::{Failure, Phase};
use crate::pool::Connection;
use crate::store::Core;

/// Appends that the server refuses for contention are tried this often, alone.
const ATTEMPTS_MAX: u32 = 5;

/// Writes the appends and answers each. Never fails as a whole: what happens to the batch is every append's answer.
pub(crate) async fn commit(core: &Core, appends: &[Append]) -> Vec<Result<Appended>> {
    match transact(core, appends).await {
        Ok(answers) => answers,
        Err(Stop::Error(error)) => appends.iter().map(|_| Err(error.clone())).collect(),
        Err(Stop::Refused { .. }) if appends.len() > 1 => {
            let mut answers = Vec::with_capacity(appends.len());
            for append in appends {
                answers.push(alone(core, append).await);
            }
            answers
        }
        Err(Stop::Refused { .. }) => appends.iter().map(|_| Err(contended())).collect(),
    }
}
