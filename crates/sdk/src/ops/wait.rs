//! Waits: time that passes without a process.

use servo_model::operation::{OperationAction, OperationType};
use servo_replay::SubType;
use servo_wire::lambda::{OperationUpdate, WaitOptions};

use crate::future::DurableFuture;
use crate::op::Op;
use crate::state::{Until, Want};
use crate::{DurableContext, DurableError, Duration};

impl DurableContext {
    /// Suspends the execution for so long. No process is held meanwhile.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, Duration};
    ///
    /// async fn remind(_: (), ctx: DurableContext) -> Result<(), DurableError> {
    ///     ctx.wait(Duration::from_days(7), Some("time to answer")).await?;
    ///     ctx.wait(Duration::from_minutes(5), None).await
    /// }
    /// ```
    pub fn wait(&self, duration: Duration, name: Option<&str>) -> DurableFuture<'static, Result<(), DurableError>> {
        let op = self.op((OperationType::Wait, SubType::Wait), name);
        DurableFuture::new(op, |op| async move { run(&op, duration).await })
    }

    /// Ends a wait early; who awaits it goes on. A wait that is over already stays so.
    pub async fn cancel_wait(&self, operation_id: &str) -> Result<(), DurableError> {
        let recorded = self.state.get(operation_id);
        let parent_id = match &recorded {
            Some(operation) if operation.operation_type != OperationType::Wait => {
                let what = operation.operation_type.as_str();
                return Err(DurableError::validation(format!("operation {operation_id} is a {what}, not a WAIT")));
            }
            Some(operation) if operation.status.is_terminal() => return Ok(()),
            Some(operation) => operation.parent_id.clone(),
            None if self.state.is_queued(operation_id) => self.parent_id().map(str::to_owned),
            None => {
                return Err(DurableError::validation(format!(
                    "no wait {operation_id} has been started; cancel a wait after it was first polled"
                )));
            }
        };
        let update = OperationUpdate {
            parent_id,
            ..OperationUpdate::new(operation_id, OperationType::Wait, OperationAction::Cancel)
        };
        let ticket = self.state.enqueue(update, true)?;
        self.state.wait(Want::Recorded(ticket)).await
    }
}

async fn run(op: &Op, duration: Duration) -> Result<(), DurableError> {
    let seconds = duration.checked_wait()?;
    let recorded = op.begin().await?;
    let finished = match recorded {
        Some(operation) if operation.status.is_terminal() => return Ok(()),
        Some(_) => op.until(Until::Finished).await?,
        None => {
            let mut update = op.update(OperationAction::Start);
            update.wait_options = Some(WaitOptions { wait_seconds: Some(seconds) });
            op.send(update, true)?;
            op.until(Until::Finished).await?
        }
    };
    op.ended(finished.status, None, None);
    Ok(())
}
