//! Ends what a run has started, after it was cancelled or ran out of time: the runs below it, those below them, and those
//! that begin meanwhile.
//!
//! The node that has recorded the end begins at once. The dispatch that was written with it brings whoever has the authority to
//! do it again, after a crash as well; where nothing is left to end, that costs one read. Nothing begins below a run that has
//! ended, so that it is over when one look has found none.

use futures_util::future::join_all;
use servo_machine::{Command, ExecutionCommand};
use servo_model::{RunId, RunState, TenantId};
use servo_store::{DispatchRow, Fence, Scope};

use super::inflight::Registered;
use super::join;
use crate::engine::{Engine, Error, Order, Patience};

/// Ids that one read brings.
const PAGE: u32 = 256;
/// Runs that are ended at the same time, and so by one write of the store.
const AT_ONCE: usize = 32;
/// Who ends them.
const BY: &str = "engine";

pub(crate) async fn run(engine: Engine, row: DispatchRow, fence: Fence, owner: String, _registered: Registered) {
    let round = row.step.as_ref().map(|step| step.logical_attempt);
    let ended = match end_all(&engine, &row.tenant, &row.run_id, round).await {
        Ok(()) => join::deliver(&engine, &row, fence, &owner).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::warn!(request_id = %row.request_id, %error, "what a run has started is not ended yet; it will be tried again");
    }
}

/// The same without waiting for the dispatch's turn.
pub(crate) async fn at_once(engine: Engine, tenant: TenantId, run_id: RunId) {
    if let Err(error) = end_all(&engine, &tenant, &run_id, None).await {
        tracing::debug!(%run_id, %error, "what a run has started is left to its dispatch");
    }
}

/// `round` is the one that was cut short; without it, the one that the run is in.
async fn end_all(engine: &Engine, tenant: &TenantId, run_id: &RunId, mut round: Option<u32>) -> Result<(), Error> {
    if engine.config().is_sabotaged("keep-descendants") {
        return Ok(());
    }
    loop {
        let look = |state: &RunState| (state.root().cloned(), state.round, state.status.is_terminal());
        let (root, now, is_over) = engine.view(&Scope::System, run_id, look).await?;
        // A run that was taken up again keeps what it starts then.
        if !is_over || *round.get_or_insert(now) != now {
            return Ok(());
        }
        let root = root.unwrap_or_else(|| run_id.clone());
        if !end_open(engine, tenant, &root, run_id).await? {
            return Ok(());
        }
    }
}

/// One look at all that is open below the root. True if it has ended any run.
async fn end_open(engine: &Engine, tenant: &TenantId, root: &RunId, ancestor: &RunId) -> Result<bool, Error> {
    let (mut has_ended, mut after) = (false, None);
    loop {
        if engine.shutdown().is_triggered() {
            return Err(Error::ShuttingDown);
        }
        let page = engine.store().open_descendants(tenant, root, after.as_ref(), PAGE).await?;
        for some in page.chunks(AT_ONCE) {
            for ended in join_all(some.iter().map(|run_id| end(engine, run_id, ancestor))).await {
                has_ended |= ended?;
            }
        }
        if page.len() < PAGE as usize {
            return Ok(has_ended);
        }
        after = page.into_iter().next_back();
    }
}

/// True if the run was open and is below the other.
async fn end(engine: &Engine, run_id: &RunId, ancestor: &RunId) -> Result<bool, Error> {
    let command = Command::Execution(Box::new(ExecutionCommand::EndWith { ancestor: ancestor.clone() }));
    let mut order = Order::new(Scope::System, run_id.clone(), command, BY);
    order.patience = Patience::Background;
    match engine.execute(order).await {
        Ok(outcome) => Ok(outcome.recorded > 0),
        // It has ended, is gone, or was set aside.
        Err(Error::Refused(_) | Error::Quarantined(_) | Error::Store(servo_store::Error::NotFound)) => Ok(false),
        Err(error) => Err(error),
    }
}
