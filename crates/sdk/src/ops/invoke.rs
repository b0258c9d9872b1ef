//! Invoking another function durably.

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{OperationAction, OperationStatus, OperationType};
use servo_replay::SubType;
use servo_wire::lambda::ChainedInvokeOptions;

use crate::config::InvokeConfig;
use crate::future::DurableFuture;
use crate::op::{Op, check_size, error_of};
use crate::state::Until;
use crate::{DurableContext, DurableError};

impl DurableContext {
    /// Runs another function and returns its result or its error. The execution is suspended meanwhile.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, InvokeConfig};
    ///
    /// async fn outer(number: u32, ctx: DurableContext) -> Result<u32, DurableError> {
    ///     // The payload is written as JSON, and the result read as the type that is asked for.
    ///     let doubled: u32 = ctx.invoke("double", number, InvokeConfig::named("twice")).await?;
    ///     ctx.invoke("double", doubled, None).await
    /// }
    /// ```
    pub fn invoke<'a, P, R>(
        &self,
        function_name: &str,
        payload: P,
        config: impl Into<Option<InvokeConfig<P, R>>>,
    ) -> DurableFuture<'a, Result<R, DurableError>>
    where
        P: Serialize + Send + Sync + 'a,
        R: DeserializeOwned + 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::ChainedInvoke, SubType::ChainedInvoke), config.name.as_deref());
        let function_name = function_name.to_owned();
        DurableFuture::new(op, |op| async move { run(&op, function_name, payload, &config).await })
    }
}

async fn run<P, R>(op: &Op, function_name: String, payload: P, config: &InvokeConfig<P, R>) -> Result<R, DurableError>
where
    P: Serialize,
    R: DeserializeOwned,
{
    let recorded = op.begin().await?;
    let context = op.serdes_context();
    let operation = match recorded {
        Some(operation) if operation.status.is_terminal() => operation,
        Some(_) => op.until(Until::Finished).await?,
        None => {
            if function_name.is_empty() || function_name.len() > 256 {
                return Err(DurableError::validation("a function's name has 1 to 256 characters"));
            }
            let payload = match &config.serdes_payload {
                Some(serdes) => serdes.serialize(&payload, &context)?,
                None => op.write(&payload, None)?,
            };
            check_size("the payload", &payload)?;
            let mut update = op.update(OperationAction::Start);
            update.payload = Some(payload);
            let tenant_id = config.tenant_id.clone();
            update.chained_invoke_options = Some(ChainedInvokeOptions { function_name, tenant_id, trace_id: None });
            op.send(update, true)?;
            let operation = op.until(Until::Finished).await?;
            let (result, error) = operation.outcome();
            op.ended(operation.status, result, error);
            operation
        }
    };
    if operation.status != OperationStatus::Succeeded {
        return Err(error_of(&operation));
    }
    let result = operation.outcome().0;
    match &config.serdes_result {
        Some(serdes) => Ok(serdes.deserialize(result.unwrap_or_default(), &context)?),
        None => op.read(result, None),
    }
}
