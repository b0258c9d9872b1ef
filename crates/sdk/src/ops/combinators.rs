//! All, all settled, race and any over durable futures. Which future came first is recorded, so that a replay, on which all
//! of them may be there at once, decides the same.

use futures_util::future::{join_all, select_all, try_join_all};
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::OperationType;
use servo_replay::{CompletionReason, SubType};

use super::child::{Shape, run_context};
use crate::batch::{BatchItem, BatchResult};
use crate::config::Nesting;
use crate::future::DurableFuture;
use crate::state::Stop;
use crate::{BoxError, DurableContext, DurableError};

const SHAPE: Shape<'static> = Shape { replay_children: false, serdes: None, nesting: Nesting::Nested };

impl DurableContext {
    fn combine<'a, T, B, Fut>(&self, name: &str, body: B) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        B: FnOnce() -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'a,
    {
        let op = self.op((OperationType::Context, SubType::RunInChildContext), Some(name));
        DurableFuture::new(op, |op| async move { run_context(&op, SHAPE, |_, _| body()).await })
    }

    /// All results in order, or the first error.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, StepConfig};
    ///
    /// async fn handler(_: (), ctx: DurableContext) -> Result<Vec<u32>, DurableError> {
    ///     // Not awaited yet: the combinator runs them side by side.
    ///     let slow = ctx.step(|_| Ok(1), StepConfig::named("slow"));
    ///     let quick = ctx.step(|_| Ok(2), StepConfig::named("quick"));
    ///     ctx.all(vec![slow, quick]).await
    /// }
    /// ```
    pub fn all<'a, T, Fut>(&self, futures: Vec<Fut>) -> DurableFuture<'a, Result<Vec<T>, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        Fut: Future<Output = Result<T, DurableError>> + Send + 'a,
    {
        self.combine("all", || async move { Ok(try_join_all(futures).await?) })
    }

    /// Waits for every future, whatever comes out of it.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, StepConfig};
    ///
    /// async fn handler(_: (), ctx: DurableContext) -> Result<usize, DurableError> {
    ///     // Not awaited yet: the combinator runs them side by side.
    ///     let slow = ctx.step(|_| Ok(1), StepConfig::named("slow"));
    ///     let quick = ctx.step(|_| Ok(2), StepConfig::named("quick"));
    ///     let settled = ctx.all_settled::<u32, _>(vec![slow, quick]).await;
    ///     Ok(settled.success_count())
    /// }
    /// ```
    pub fn all_settled<'a, T, Fut>(&self, futures: Vec<Fut>) -> DurableFuture<'a, BatchResult<T>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        Fut: Future<Output = Result<T, DurableError>> + Send + 'a,
    {
        let state = self.state.clone();
        let settled = self.combine("all_settled", || async move {
            let outcomes = join_all(futures).await;
            let items =
                outcomes.into_iter().enumerate().map(|(index, outcome)| BatchItem::of(index, outcome)).collect();
            Ok(BatchResult { items, completion_reason: CompletionReason::AllCompleted })
        });
        settled.then(|settled| async move {
            match settled {
                Ok(batch) => batch,
                // The batch itself could not be recorded. There is no result to go on with.
                Err(error) => {
                    state.terminate(Stop::Fail(error)).await;
                    std::future::pending().await
                }
            }
        })
    }

    /// The outcome of the first future that settles. The others are dropped.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, StepConfig};
    ///
    /// async fn handler(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
    ///     // Not awaited yet: the combinator runs them side by side.
    ///     let slow = ctx.step(|_| Ok(1), StepConfig::named("slow"));
    ///     let quick = ctx.step(|_| Ok(2), StepConfig::named("quick"));
    ///     ctx.race(vec![slow, quick]).await
    /// }
    /// ```
    pub fn race<'a, T, Fut>(&self, futures: Vec<Fut>) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        Fut: Future<Output = Result<T, DurableError>> + Send + 'a,
    {
        self.combine("race", || async move {
            let futures = not_empty("race", futures)?;
            Ok(select_all(futures.into_iter().map(Box::pin)).await.0?)
        })
    }

    /// The result of the first future that succeeds. Fails when all have failed, with all their messages.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, StepConfig};
    ///
    /// async fn handler(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
    ///     // Not awaited yet: the combinator runs them side by side.
    ///     let slow = ctx.step(|_| Ok(1), StepConfig::named("slow"));
    ///     let quick = ctx.step(|_| Ok(2), StepConfig::named("quick"));
    ///     ctx.any(vec![slow, quick]).await
    /// }
    /// ```
    pub fn any<'a, T, Fut>(&self, futures: Vec<Fut>) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        Fut: Future<Output = Result<T, DurableError>> + Send + 'a,
    {
        self.combine("any", || async move {
            let mut left: Vec<_> = not_empty("any", futures)?.into_iter().map(Box::pin).collect();
            let mut reasons = Vec::new();
            while !left.is_empty() {
                let (outcome, _, others) = select_all(left).await;
                match outcome {
                    Ok(value) => return Ok(value),
                    Err(error) => reasons.push(error.message().to_owned()),
                }
                left = others;
            }
            let message = format!("all {} futures failed: {}", reasons.len(), reasons.join("; "));
            Err(DurableError::user("PromiseCombinatorError", message).into())
        })
    }
}

fn not_empty<Fut>(name: &str, futures: Vec<Fut>) -> Result<Vec<Fut>, DurableError> {
    if futures.is_empty() {
        return Err(DurableError::validation(format!("{name} of no futures never settles; give at least one")));
    }
    Ok(futures)
}
