//! Tells an execution that one it waits for is over. The dispatch was written with that end, so it is told once and, after a
//! crash, told again.

use servo_machine::{Command, ExecutionCommand};
use servo_model::RunState;
use servo_store::dispatch::DispatchChange;
use servo_store::{Append, DispatchRow, Expected, Fence, Scope, StreamAppend};

use super::inflight::Registered;
use crate::engine::{Engine, Error, Order, Patience};

pub(crate) async fn run(engine: Engine, row: DispatchRow, fence: Fence, owner: String, _registered: Registered) {
    if let Err(error) = join(&engine, &row, fence, &owner).await {
        tracing::warn!(request_id = %row.request_id, %error, "the end of an execution was not passed on; it will be tried again");
    }
}

async fn join(engine: &Engine, row: &DispatchRow, fence: Fence, owner: &str) -> Result<(), Error> {
    let ended = |state: &RunState| {
        let head = &state.execution.as_ref()?.head;
        Some((head.start.parent.clone()?, head.ended.clone()?))
    };
    if let Some((parent, ended)) = engine.view(&Scope::System, &row.run_id, ended).await? {
        let command = ExecutionCommand::ChainedEnded { operation_id: parent.operation_id, ended };
        let command = Command::Execution(Box::new(command));
        let mut order = Order::new(Scope::System, parent.run_id, command, "engine");
        order.patience = Patience::Background;
        match engine.execute(order).await {
            // Over, or gone: nobody waits any more.
            Ok(_)
            | Err(Error::Refused(_) | Error::Quarantined(_))
            | Err(Error::Store(servo_store::Error::NotFound)) => {}
            Err(error) => return Err(error),
        }
    }
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
