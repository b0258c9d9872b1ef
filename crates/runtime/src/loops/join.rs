//! Tells an execution that one it waits for is over. The dispatch was written with that end, so it is told once and, after a
//! crash, told again.

use servo_machine::{Command, ExecutionCommand};
use servo_model::operation::ExecutionStatus;
use servo_model::{RunId, RunState};
use servo_store::dispatch::DispatchChange;
use servo_store::{Append, DispatchRow, Expected, Fence, Scope, StreamAppend};

use super::inflight::Registered;
use crate::engine::{Engine, Error, Order, Patience};

pub(crate) async fn run(engine: Engine, row: DispatchRow, fence: Fence, owner: String, _registered: Registered) {
    if let Err(error) = join(&engine, &row, fence, &owner).await {
        tracing::warn!(request_id = %row.request_id, %error, "the end of an execution was not passed on; it will be tried again");
    }
}

/// Who waits for this run, and what to tell it.
fn told(state: &RunState) -> Option<(RunId, ExecutionCommand)> {
    let head = &state.execution.as_ref()?.head;
    let ended = head.ended.clone()?;
    if let Some(parent) = head.start.parent.clone() {
        return Some((parent.run_id, ExecutionCommand::ChainedEnded { operation_id: parent.operation_id, ended }));
    }
    let compensates = state.entrypoint()?.compensates.clone()?;
    let error = match ended.status {
        ExecutionStatus::Succeeded | ExecutionStatus::Running => None,
        ExecutionStatus::Failed | ExecutionStatus::TimedOut | ExecutionStatus::Stopped => {
            Some(ended.error.unwrap_or_default())
        }
    };
    let command = ExecutionCommand::Compensated { run_id: Some(state.run_id.clone()), error };
    Some((compensates.run_id, command))
}

async fn join(engine: &Engine, row: &DispatchRow, fence: Fence, owner: &str) -> Result<(), Error> {
    if let Some((waiting, command)) = engine.view(&Scope::System, &row.run_id, told).await? {
        let command = Command::Execution(Box::new(command));
        // Of its own tenant: whose run is named there may come out of a file.
        let mut order = Order::new(Scope::Tenant(row.tenant.clone()), waiting, command, "engine");
        order.patience = Patience::Background;
        match engine.execute(order).await {
            // Over, or gone: nobody waits any more.
            Ok(_)
            | Err(Error::Refused(_) | Error::Quarantined(_))
            | Err(Error::Store(servo_store::Error::NotFound)) => {}
            Err(error) => return Err(error),
        }
    }
    deliver(engine, row, fence, owner).await
}

/// The dispatch has done what it was for.
pub(super) async fn deliver(engine: &Engine, row: &DispatchRow, fence: Fence, owner: &str) -> Result<(), Error> {
    let request_id = row.request_id.clone();
    let mut stream = StreamAppend::new(row.run_id.clone(), row.tenant.clone(), Expected::Any);
    if row.state == servo_model::contract::DispatchState::Pending {
        let (channel, epoch) = (owner.to_owned(), fence.epoch);
        stream.dispatches.push(DispatchChange::Notify { request_id: request_id.clone(), channel, epoch });
    }
    stream.dispatches.push(DispatchChange::Deliver { request_id });
    engine.store().append(Append { fence: Some(fence), streams: vec![stream], ..Append::default() }).await?;
    Ok(())
}
