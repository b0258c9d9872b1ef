//! Child contexts: a part of the program with ids of its own, whose result is recorded as one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{OperationAction, OperationStatus, OperationType};
use servo_replay::SubType;
use servo_wire::lambda::ContextOptions;

use crate::config::{ContextConfig, Nesting};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::op::{Op, error_of};
use crate::serdes::ValueSerDes;
use crate::{BoxError, DurableContext, DurableError, panic};

/// A larger result is not recorded: on replay the body runs again over its recorded operations.
const RESULT_BYTES_MAX: usize = 256 * 1024;

impl DurableContext {
    /// Runs `func` in a context of its own and records its result. Once it is done, its operations are not replayed.
    ///
    /// The closure gets the child's [`DurableContext`] by value; inside, work with that one and not with the handler's.
    ///
    /// ```
    /// use servo_sdk::{ContextConfig, DurableContext, DurableError, StepConfig};
    ///
    /// async fn order(id: u64, ctx: DurableContext) -> Result<String, DurableError> {
    ///     let pack = async |child: DurableContext| {
    ///         let weight: u64 = child.step(|_| Ok(id * 2), StepConfig::named("weigh")).await?;
    ///         let label: String = child.step(|_| Ok(format!("{id}: {weight} g")), StepConfig::named("label")).await?;
    ///         Ok(label)
    ///     };
    ///     ctx.run_in_child_context(pack, ContextConfig::named("pack")).await
    /// }
    /// ```
    pub fn run_in_child_context<'a, T, F, R, M>(
        &self,
        func: F,
        config: impl Into<Option<ContextConfig>>,
    ) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(DurableContext) -> R + Send + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Context, SubType::RunInChildContext), config.name.as_deref());
        DurableFuture::new(op, |op| async move {
            let shape = Shape {
                replay_children: config.replay_children,
                ..Shape::new(config.serdes.as_ref(), Nesting::Nested)
            };
            run_context(&op, shape, |ctx, _| async move { func(ctx).into_future().await }).await
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) replay_children: bool,
    pub(super) serdes: Option<&'a ValueSerDes>,
    pub(super) nesting: Nesting,
}

impl<'a> Shape<'a> {
    pub(super) fn new(serdes: Option<&'a ValueSerDes>, nesting: Nesting) -> Self {
        Self { replay_children: false, serdes, nesting }
    }
}

/// A branch of which nothing is recorded but what it does. Its outcome is part of the operation around it.
async fn run_flat<T, B, Fut>(op: &Op, serdes: Option<&ValueSerDes>, body: B) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned,
    B: FnOnce(DurableContext, Option<String>) -> Fut,
    Fut: Future<Output = Result<T, BoxError>>,
{
    let outcome = panic::guard(body(DurableContext::flat(op), None)).await;
    // The same value and error as a replay that reads them from the record.
    let read_back = outcome.and_then(|value| op.read(Some(&op.write(&value, serdes)?), serdes));
    read_back.map_err(|error| DurableError::from_error_object(&error.to_error_object()))
}

/// The common way of all contexts. The body is given the recorded summary when it runs again because its result was too
/// large to keep.
pub(super) async fn run_context<T, B, Fut>(op: &Op, shape: Shape<'_>, body: B) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned,
    B: FnOnce(DurableContext, Option<String>) -> Fut,
    Fut: Future<Output = Result<T, BoxError>>,
{
    run_summarised(op, shape, body, |_| String::new()).await
}

pub(super) async fn run_summarised<T, B, Fut, S>(
    op: &Op,
    shape: Shape<'_>,
    body: B,
    summary: S,
) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned,
    B: FnOnce(DurableContext, Option<String>) -> Fut,
    Fut: Future<Output = Result<T, BoxError>>,
    S: FnOnce(&T) -> String,
{
    if shape.nesting == Nesting::Flat {
        return run_flat(op, shape.serdes, body).await;
    }
    let recorded = op.begin().await?;
    let child = DurableContext::child(op);
    if let Some(operation) = &recorded {
        let details = operation.context_details.as_ref();
        let again = details.is_some_and(|details| details.replay_children == Some(true));
        let result = details.and_then(|details| details.result.as_deref());
        match operation.status {
            OperationStatus::Succeeded if again => {
                let summary = Some(result.unwrap_or_default().to_owned());
                let value = panic::guard(body(child, summary)).await?;
                // What was recorded in parts is read back in parts; the whole went through the serdes on the first run.
                let text = op.write(&value, shape.serdes)?;
                return op.read(Some(&text), shape.serdes);
            }
            OperationStatus::Succeeded => return op.read(result, shape.serdes),
            OperationStatus::Started | OperationStatus::Pending | OperationStatus::Ready => {}
            OperationStatus::Failed
            | OperationStatus::Cancelled
            | OperationStatus::TimedOut
            | OperationStatus::Stopped => return Err(error_of(operation)),
        }
    } else {
        op.send(op.update(OperationAction::Start), false)?;
    }
    op.state.open_context(&op.id, op.identity.parent_id.as_deref());
    let outcome = panic::guard(body(child, None)).await;
    let written = outcome.and_then(|value| {
        let text = op.write(&value, shape.serdes)?;
        // Read back what is recorded, so that the first run sees what every replay will see.
        Ok((op.read(Some(&text), shape.serdes)?, text))
    });
    match written {
        Ok((value, text)) => {
            let mut update = op.update(OperationAction::Succeed);
            if shape.replay_children || text.len() > RESULT_BYTES_MAX {
                update.payload = Some(summary(&value));
                update.context_options = Some(ContextOptions { replay_children: Some(true) });
            } else {
                update.payload = Some(text);
            }
            op.ended(OperationStatus::Succeeded, update.payload.as_deref(), None);
            close(op, update).await?;
            Ok(value)
        }
        Err(error) => {
            let object = error.to_error_object();
            let error = DurableError::from_error_object(&object);
            op.ended(OperationStatus::Failed, None, Some(&object));
            let mut update = op.update(OperationAction::Fail);
            update.error = Some(object);
            close(op, update).await?;
            Err(error)
        }
    }
}

/// From here on nothing may be recorded under the context, whether or not the service has confirmed its end.
async fn close(op: &Op, update: servo_wire::lambda::OperationUpdate) -> Result<(), DurableError> {
    let recording = op.record_outcome(update);
    // Enqueues at once when it is first polled; the context is finished right after.
    let mut recording = std::pin::pin!(recording);
    let mut finished = false;
    std::future::poll_fn(|cx| {
        let polled = recording.as_mut().poll(cx);
        if !finished {
            finished = true;
            op.state.finish_context(&op.id);
        }
        polled
    })
    .await
}
