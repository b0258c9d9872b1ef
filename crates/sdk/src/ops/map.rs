//! Map: one function over many items, each in a context of its own.

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::OperationType;
use servo_replay::SubType;
use tracing::Instrument as _;

use super::branches::{self, Rules, Summary, Unit};
use super::child::{Shape, run_context, run_summarised};
use crate::batch::{BatchItem, BatchResult};
use crate::config::{ItemBatcher, MapConfig, Nesting};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::op::Op;
use crate::{DurableContext, DurableError, panic};

impl DurableContext {
    /// Runs `func` for every item. Failed items are part of the result; the map itself succeeds.
    ///
    /// `func` gets the item's own [`DurableContext`], the item, and its index from 0, in this order. What it does durably goes
    /// through that context. Leave out `move`: the closure is called once for each item and borrows what it needs.
    ///
    /// The [`BatchResult`] has an item for each input that was started. [`BatchResult::into_results`] gives the results, or
    /// the first error; [`BatchResult::succeeded`] and [`BatchResult::failed`] tell them apart. How many failures end the map
    /// early is told by [`CompletionConfig`](crate::CompletionConfig).
    ///
    /// ```
    /// use servo_sdk::{BatchResult, DurableContext, DurableError, MapConfig, StepConfig};
    ///
    /// async fn sizes(pages: Vec<String>, ctx: DurableContext) -> Result<Vec<usize>, DurableError> {
    ///     let size = async |item_ctx: DurableContext, page: String, index: usize| {
    ///         let letters: usize = item_ctx.step(|_| Ok(page.len()), StepConfig::named(format!("count {index}"))).await?;
    ///         Ok(letters)
    ///     };
    ///     let sizes: BatchResult<usize> = ctx.map(pages, size, MapConfig::named("pages").max_concurrency(4)).await?;
    ///     sizes.into_results()
    /// }
    /// ```
    pub fn map<'a, T, U, F, R, M>(
        &self,
        inputs: Vec<T>,
        func: F,
        config: impl Into<Option<MapConfig>>,
    ) -> DurableFuture<'a, Result<BatchResult<U>, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'a,
        U: Serialize + DeserializeOwned + Send + 'a,
        F: Fn(DurableContext, T, usize) -> R + Send + Sync + 'a,
        R: Outcome<M, U> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Context, SubType::Map), config.name.as_deref());
        DurableFuture::new(op, |op| async move {
            let rules = Rules { max_concurrency: config.max_concurrency, completion: config.completion_config };
            rules.check()?;
            if config.item_batcher.is_some() && config.nesting == Nesting::Flat {
                return Err(DurableError::validation(
                    "a batcher needs contexts for its groups; leave out flat nesting",
                ));
            }
            let groups = group(inputs, config.item_batcher)?;
            let serdes = config.serdes.as_ref();
            let shape = Shape::new(config.item_serdes.as_ref().or(serdes), config.nesting);
            let namer = config.item_namer.as_ref();
            let func = &func;
            let body = |ctx: DurableContext, summary: Option<String>| async move {
                let units = groups.into_iter().enumerate().map(|(index, items)| {
                    let grouped = config.item_batcher.is_some();
                    let name = match (grouped, namer, items.first()) {
                        (true, ..) => format!("map-batch-{index}"),
                        (false, Some(namer), Some((_, item))) => {
                            namer(&serde_json::to_value(item).unwrap_or_default(), index)
                        }
                        (false, ..) => format!("map-item-{index}"),
                    };
                    let op = ctx.branch_op(index, (OperationType::Context, SubType::MapIteration), Some(&name));
                    let indexes = items.iter().map(|(index, _)| *index).collect();
                    let span = op.span();
                    let future = async move {
                        if grouped {
                            run_group(&op, items, func, shape).await
                        } else {
                            run_item(&op, items, func, shape).await
                        }
                    };
                    Unit { indexes, future: future.instrument(span) }
                });
                let units = units.collect();
                Ok(match summary {
                    None => branches::run(units, rules).await,
                    Some(summary) => branches::run_again(units, &summary).await?,
                })
            };
            let shape = Shape::new(serdes, Nesting::Nested);
            run_summarised(&op, shape, body, |batch| Summary::of("MapResult", batch)).await
        })
    }
}

/// Items with their indexes, in the groups that share a context.
fn group<T: Serialize>(inputs: Vec<T>, batcher: Option<ItemBatcher>) -> Result<Vec<Vec<(usize, T)>>, DurableError> {
    let Some(batcher) = batcher else {
        return Ok(inputs.into_iter().enumerate().map(|item| vec![item]).collect());
    };
    if batcher.max_items_per_batch == 0 {
        return Err(DurableError::validation("max_items_per_batch is 0; give at least 1"));
    }
    let mut groups: Vec<Vec<(usize, T)>> = Vec::new();
    let mut bytes = 0;
    for (index, input) in inputs.into_iter().enumerate() {
        let size = serde_json::to_string(&input).map_or(0, |text| text.len());
        bytes += size;
        match groups.last_mut() {
            Some(group) if group.len() < batcher.max_items_per_batch && bytes <= batcher.max_bytes_per_batch => {
                group.push((index, input));
            }
            _ => {
                bytes = size;
                groups.push(vec![(index, input)]);
            }
        }
    }
    Ok(groups)
}

async fn run_item<T, U, F, R, M>(op: &Op, items: Vec<(usize, T)>, func: &F, shape: Shape<'_>) -> Vec<BatchItem<U>>
where
    U: Serialize + DeserializeOwned,
    F: Fn(DurableContext, T, usize) -> R,
    R: Outcome<M, U>,
{
    let mut outcomes = Vec::new();
    for (index, item) in items {
        let outcome = run_context(op, shape, |ctx, _| async move { func(ctx, item, index).into_future().await }).await;
        outcomes.push(BatchItem::of(index, outcome));
    }
    outcomes
}

/// One context for the whole group. The items' failures are part of its result.
async fn run_group<T, U, F, R, M>(op: &Op, items: Vec<(usize, T)>, func: &F, shape: Shape<'_>) -> Vec<BatchItem<U>>
where
    U: Serialize + DeserializeOwned,
    F: Fn(DurableContext, T, usize) -> R,
    R: Outcome<M, U>,
{
    let indexes: Vec<usize> = items.iter().map(|(index, _)| *index).collect();
    let body = |ctx: DurableContext, _| async move {
        let mut outcomes = Vec::new();
        for (index, item) in items {
            let ctx = ctx.clone();
            let outcome = panic::guard(async move { func(ctx, item, index).into_future().await }).await;
            outcomes.push(BatchItem::of(index, outcome));
        }
        Ok(outcomes)
    };
    match run_context(op, shape, body).await {
        Ok(outcomes) => outcomes,
        Err(error) => indexes.into_iter().map(|index| BatchItem::of(index, Err(error.clone()))).collect(),
    }
}
