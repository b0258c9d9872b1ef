//! Branches that run side by side until the completion rule is content. Shared by map and parallel.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use servo_replay::{Completion, CompletionConfig, CompletionReason, Progress};

use crate::DurableError;
use crate::batch::{BatchItem, BatchItemStatus, BatchResult};

/// What is recorded in place of a result that is too large: enough to find the same items again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) total_count: usize,
    pub(super) completion_reason: CompletionReason,
    pub(super) completed_indexes: Vec<usize>,
    pub(super) started_indexes: Vec<usize>,
}

impl Summary {
    pub(super) fn of<T>(kind: &str, batch: &BatchResult<T>) -> String {
        let indexes = |finished: bool| {
            let items = batch.items.iter();
            items.filter(|item| (item.status != BatchItemStatus::Started) == finished).map(|item| item.index).collect()
        };
        let summary = Self {
            kind: kind.to_owned(),
            total_count: batch.items.len(),
            completion_reason: batch.completion_reason,
            completed_indexes: indexes(true),
            started_indexes: indexes(false),
        };
        serde_json::to_string(&summary).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) max_concurrency: Option<usize>,
    pub(super) completion: CompletionConfig,
}

impl Rules {
    /// Checked before anything is recorded.
    pub(super) fn check(&self) -> Result<(), DurableError> {
        if self.max_concurrency == Some(0) {
            return Err(DurableError::validation("max_concurrency is 0; give at least 1, or none for no limit"));
        }
        self.completion.problem().map_or(Ok(()), |problem| Err(DurableError::validation(problem)))
    }
}

/// A unit is what runs in one context: one item, or a group of them. `indexes` are the items it will bring.
pub(super) struct Unit<Fut> {
    pub(super) indexes: Vec<usize>,
    pub(super) future: Fut,
}

/// Starts units in order, as many at once as the rules allow. A unit that waits keeps its place. Units that are still under
/// way at the end are dropped.
pub(super) async fn run<T, Fut>(units: Vec<Unit<Fut>>, rules: Rules) -> BatchResult<T>
where
    Fut: Future<Output = Vec<BatchItem<T>>>,
{
    let total = units.iter().map(|unit| unit.indexes.len()).sum();
    let mut progress = Progress { total, succeeded: 0, failed: 0 };
    let mut items: BTreeMap<usize, BatchItem<T>> = BTreeMap::new();
    let mut waiting = units.into_iter();
    let mut running = FuturesUnordered::new();
    let mut completion = rules.completion.decide(progress);
    let slots = rules.max_concurrency.unwrap_or(usize::MAX);
    let completion_reason = loop {
        if let Completion::Done(reason) = completion {
            break reason;
        }
        while running.len() < slots
            && let Some(unit) = waiting.next()
        {
            items.extend(unit.indexes.iter().map(|index| (*index, BatchItem::started(*index))));
            running.push(unit.future);
        }
        let Some(finished) = running.next().await else {
            break CompletionReason::AllCompleted;
        };
        for item in finished {
            match item.status {
                BatchItemStatus::Succeeded => progress.succeeded += 1,
                BatchItemStatus::Failed => progress.failed += 1,
                BatchItemStatus::Started | BatchItemStatus::Cancelled | BatchItemStatus::Pending => {}
            }
            items.insert(item.index, item);
        }
        completion = rules.completion.decide(progress);
    };
    BatchResult { items: items.into_values().collect(), completion_reason }
}

/// The same result once more, from items that are all recorded.
pub(super) async fn run_again<T, Fut>(units: Vec<Unit<Fut>>, summary: &str) -> Result<BatchResult<T>, DurableError>
where
    Fut: Future<Output = Vec<BatchItem<T>>>,
{
    let summary: Summary = serde_json::from_str(summary).map_err(|error| DurableError::SerDes {
        message: format!("the recorded summary of the branches could not be read: {error}"),
    })?;
    let mut items = Vec::new();
    for unit in units {
        if unit.indexes.iter().any(|index| summary.completed_indexes.contains(index)) {
            items.extend(unit.future.await);
        } else {
            let started = unit.indexes.iter().filter(|index| summary.started_indexes.contains(index));
            items.extend(started.map(|index| BatchItem::started(*index)));
        }
    }
    Ok(BatchResult { items, completion_reason: summary.completion_reason })
}
