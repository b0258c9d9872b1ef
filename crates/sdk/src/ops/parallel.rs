//! Parallel: several functions side by side, each in a context of its own.

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::OperationType;
use servo_replay::SubType;
use tracing::Instrument as _;

use super::branches::{self, Rules, Summary, Unit};
use super::child::{Shape, run_context, run_summarised};
use crate::batch::{BatchItem, BatchResult};
use crate::config::{Nesting, ParallelConfig};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::{BoxError, DurableContext, DurableError};

/// A branch whose type is forgotten, so that different closures fit into one list.
pub type Branch<'a, T> = Box<dyn FnOnce(DurableContext) -> BoxFuture<'a, Result<T, BoxError>> + Send + 'a>;

/// Boxes a closure as a [`Branch`].
pub fn branch<'a, T, F, R, M>(func: F) -> Branch<'a, T>
where
    T: 'a,
    F: FnOnce(DurableContext) -> R + Send + 'a,
    R: Outcome<M, T> + 'a,
    R::Future: Send + 'a,
    M: 'a,
{
    Box::new(move |ctx| {
        Box::pin(async move {
            // Called when the branch is first polled, so that its panic is the branch's.
            let future = func(ctx).into_future();
            future.await
        })
    })
}

impl DurableContext {
    /// Runs all branches, each with a [`DurableContext`] of its own. Failed branches are part of the result; the operation itself
    /// succeeds. Use [`branch`] for closures of different types: any two closures written down apart are.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, ParallelConfig, StepConfig, branch};
    ///
    /// async fn quote(item: String, ctx: DurableContext) -> Result<u32, DurableError> {
    ///     let near = branch(async |ctx: DurableContext| {
    ///         let price: u32 = ctx.step(|_| Ok(item.len() as u32), StepConfig::named("ask near")).await?;
    ///         Ok(price)
    ///     });
    ///     let far = branch(|_: DurableContext| Ok(12));
    ///     let asked = ctx.parallel(vec![near, far], ParallelConfig::named("quotes").branch_names(["near", "far"])).await?;
    ///     // In the branches' order; those that failed are left out here.
    ///     let prices = asked.succeeded().into_iter().filter_map(|branch| branch.result);
    ///     prices.min().ok_or_else(|| DurableError::user("NoPrice", "nobody sells it"))
    /// }
    /// ```
    pub fn parallel<'a, T, F, R, M>(
        &self,
        functions: Vec<F>,
        config: impl Into<Option<ParallelConfig>>,
    ) -> DurableFuture<'a, Result<BatchResult<T>, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(DurableContext) -> R + Send + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Context, SubType::Parallel), config.name.as_deref());
        DurableFuture::new(op, |op| async move {
            let rules = Rules { max_concurrency: config.max_concurrency, completion: config.completion_config };
            rules.check()?;
            let shape = Shape::new(config.serdes.as_ref(), Nesting::Nested);
            let item_serdes = config.item_serdes.as_ref().or(config.serdes.as_ref());
            let (item_shape, names) = (Shape::new(item_serdes, config.nesting), &config.branch_names);
            let body = |ctx: DurableContext, summary: Option<String>| async move {
                let units = functions.into_iter().enumerate().map(|(index, func)| {
                    let name = names.get(index).cloned().unwrap_or_else(|| format!("parallel-branch-{index}"));
                    let op = ctx.branch_op(index, (OperationType::Context, SubType::ParallelBranch), Some(&name));
                    let span = op.span();
                    let future = async move {
                        let body = |ctx, _| async move { func(ctx).into_future().await };
                        vec![BatchItem::of(index, run_context(&op, item_shape, body).await)]
                    };
                    Unit { indexes: vec![index], future: future.instrument(span) }
                });
                let units = units.collect();
                Ok(match summary {
                    None => branches::run(units, rules).await,
                    Some(summary) => branches::run_again(units, &summary).await?,
                })
            };
            run_summarised(&op, shape, body, |batch| Summary::of("ParallelResult", batch)).await
        })
    }
}
