//! Broken variants of the engine, so that the crash suites of executions can show that they would notice. Without the feature
//! `sabotage` there is nothing here but one call of the store.

use servo_store::{Append, Appended};

use super::{Engine, Order};
use crate::config::RuntimeConfig;

#[cfg(feature = "sabotage")]
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

#[cfg(feature = "sabotage")]
use servo_model::RunId;

/// What a broken engine keeps in memory, where a whole one has rows.
#[derive(Default)]
pub(super) struct Broken {
    /// `answer-before-commit`: checkpoints that were answered and not yet appended.
    #[cfg(feature = "sabotage")]
    held: Option<Mutex<BTreeMap<RunId, Append>>>,
    /// `forget-timers`: runs whose timers this process has set. It knows of no others.
    #[cfg(feature = "sabotage")]
    timers: Option<Mutex<BTreeSet<RunId>>>,
}

impl Broken {
    #[cfg(feature = "sabotage")]
    pub(super) fn of(config: &RuntimeConfig) -> Self {
        Self {
            held: config.is_sabotaged("answer-before-commit").then(Mutex::default),
            timers: config.is_sabotaged("forget-timers").then(Mutex::default),
        }
    }

    #[cfg(not(feature = "sabotage"))]
    pub(super) fn of(_config: &RuntimeConfig) -> Self {
        Self::default()
    }

    #[cfg(feature = "sabotage")]
    pub(super) fn timer_set(&self, order: &Order) {
        if let Some(timers) = &self.timers {
            timers.lock().unwrap_or_else(PoisonError::into_inner).insert(order.run_id.clone());
        }
    }

    #[cfg(not(feature = "sabotage"))]
    pub(super) fn timer_set(&self, _order: &Order) {}

    /// Whether a due timer is passed over.
    #[cfg(feature = "sabotage")]
    pub(super) fn forgets(&self, order: &Order) -> bool {
        let Some(timers) = self.timers.as_ref().filter(|_| order.due_at.is_some()) else { return false };
        !timers.lock().unwrap_or_else(PoisonError::into_inner).contains(&order.run_id)
    }

    #[cfg(not(feature = "sabotage"))]
    pub(super) fn forgets(&self, _order: &Order) -> bool {
        false
    }
}

impl Engine {
    #[cfg(not(feature = "sabotage"))]
    pub(super) async fn append(&self, _order: &Order, append: Append) -> Result<Appended, servo_store::Error> {
        self.inner.store.append(append).await
    }

    /// A checkpoint is answered at once, and written with the run's next commit: a process that dies in between has answered
    /// for what it never wrote.
    #[cfg(feature = "sabotage")]
    pub(super) async fn append(&self, order: &Order, append: Append) -> Result<Appended, servo_store::Error> {
        let Some(held) = &self.inner.broken.held else { return self.inner.store.append(append).await };
        let before = held.lock().unwrap_or_else(PoisonError::into_inner).remove(&order.run_id);
        if let Some(before) = before {
            self.inner.store.append(before).await?;
        }
        if *order.emitted_by != *crate::executions::HANDLER {
            return self.inner.store.append(append).await;
        }
        held.lock().unwrap_or_else(PoisonError::into_inner).insert(order.run_id.clone(), append);
        Ok(Appended { streams: Vec::new(), epoch: None })
    }
}
