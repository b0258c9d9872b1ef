//! The short way to write a configuration: a name, and what differs from the default. An operation takes the outcome as it
//! is, in `Some`, or `None`.

use servo_replay::{Backoff, CompletionConfig, RetryStrategy};

use crate::config::{
    CallbackConfig, ContextConfig, InvokeConfig, ItemBatcher, MapConfig, Nesting, ParallelConfig, StepConfig,
    StepSemantics, WaitForCallbackConfig, WaitForConditionConfig,
};
use crate::duration::Duration;
use crate::serdes::ValueSerDes;

/// What every configuration with a default has.
macro_rules! named {
    ($($type:ident $(<$($param:ident),+>)?),+ $(,)?) => {$(
        impl $(<$($param),+>)? $type $(<$($param),+>)? {
            /// The defaults, under a name. Timelines show it and tests refer to it.
            #[must_use]
            pub fn named(name: impl Into<String>) -> Self {
                Self { name: Some(name.into()), ..Self::default() }
            }
        }
    )+};
}

named!(StepConfig, CallbackConfig, WaitForCallbackConfig, InvokeConfig<P, R>, MapConfig, ParallelConfig, ContextConfig);

macro_rules! serdes {
    ($($type:ident $(<$param:ident>)?),+ $(,)?) => {$(
        impl $(<$param>)? $type $(<$param>)? {
            /// How the result is written and read. The same one must be given on every replay.
            #[must_use]
            pub fn serdes(mut self, serdes: ValueSerDes) -> Self {
                self.serdes = Some(serdes);
                self
            }
        }
    )+};
}

serdes!(
    StepConfig,
    CallbackConfig,
    WaitForCallbackConfig,
    MapConfig,
    ParallelConfig,
    ContextConfig,
    WaitForConditionConfig<T>,
);

macro_rules! retry {
    ($($type:ident: $what:literal),+ $(,)?) => {$(
        impl $type {
            #[doc = $what]
            ///
            /// A [`Backoff`], or a closure from `&RetryContext` to `RetryDecision`.
            #[must_use]
            pub fn retry(mut self, strategy: impl RetryStrategy + 'static) -> Self {
                self.retry_strategy = Some(Box::new(strategy));
                self
            }

            /// So many attempts in all, with the same delay between them.
            #[must_use]
            pub fn retry_every(self, max_attempts: u32, delay: impl Into<Duration>) -> Self {
                self.retry(Backoff::fixed(max_attempts, delay.into().into()))
            }

            /// One attempt and no other.
            #[must_use]
            pub fn no_retry(self) -> Self {
                self.retry(Backoff::none())
            }
        }
    )+};
}

retry!(
    StepConfig: "What follows a failed attempt. Without it there are six, from 5 seconds doubling to 60.",
    WaitForCallbackConfig: "What follows a failed attempt of the submitter.",
);

impl StepConfig {
    /// An attempt that a crash interrupted counts as failed, and is not run again.
    #[must_use]
    pub fn at_most_once(mut self) -> Self {
        self.step_semantics = StepSemantics::AtMostOncePerRetry;
        self
    }
}

macro_rules! timeouts {
    ($($type:ident),+ $(,)?) => {$(
        impl $type {
            /// The callback fails if it has no answer after so long. Without it, it waits for ever.
            #[must_use]
            pub fn timeout(mut self, timeout: impl Into<Duration>) -> Self {
                self.timeout_seconds = Some(timeout.into().to_seconds());
                self
            }

            /// The callback fails if there is neither an answer nor a heartbeat for so long.
            #[must_use]
            pub fn heartbeat_timeout(mut self, timeout: impl Into<Duration>) -> Self {
                self.heartbeat_timeout_seconds = Some(timeout.into().to_seconds());
                self
            }
        }
    )+};
}

timeouts!(CallbackConfig, WaitForCallbackConfig);

macro_rules! branches {
    ($($type:ident),+ $(,)?) => {$(
        impl $type {
            /// So many at once. Without it, all of them.
            #[must_use]
            pub fn max_concurrency(mut self, at_once: usize) -> Self {
                self.max_concurrency = Some(at_once);
                self
            }

            /// When it is done, and how many failures it tolerates.
            #[must_use]
            pub fn completion(mut self, rule: CompletionConfig) -> Self {
                self.completion_config = rule;
                self
            }

            /// How the result of one of them is written and read.
            #[must_use]
            pub fn item_serdes(mut self, serdes: ValueSerDes) -> Self {
                self.item_serdes = Some(serdes);
                self
            }

            /// Records no operation for each of them, only what it does.
            #[must_use]
            pub fn flat(mut self) -> Self {
                self.nesting = Nesting::Flat;
                self
            }
        }
    )+};
}

branches!(MapConfig, ParallelConfig);

impl MapConfig {
    /// Several items in one context, one after the other.
    #[must_use]
    pub fn batches(mut self, batcher: ItemBatcher) -> Self {
        self.item_batcher = Some(batcher);
        self
    }

    /// What timelines call an item, from the item as JSON and its index.
    #[must_use]
    pub fn item_names(mut self, namer: impl Fn(&serde_json::Value, usize) -> String + Send + Sync + 'static) -> Self {
        self.item_namer = Some(std::sync::Arc::new(namer));
        self
    }
}

impl ParallelConfig {
    /// What timelines call the branches, in their order.
    #[must_use]
    pub fn branch_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.branch_names = names.into_iter().map(Into::into).collect();
        self
    }
}

impl ContextConfig {
    /// Records no result: on replay the body runs again over its recorded operations.
    #[must_use]
    pub fn replay_children(mut self) -> Self {
        self.replay_children = true;
        self
    }
}

impl<P, R> InvokeConfig<P, R> {
    /// Whose call it is, for functions that keep tenants apart.
    #[must_use]
    pub fn tenant_id(mut self, tenant_id: impl Into<String>) -> Self {
        self.tenant_id = Some(tenant_id.into());
        self
    }
}

impl<T> WaitForConditionConfig<T> {
    /// With more checks than this the wait fails. 60 unless told otherwise.
    #[must_use]
    pub fn max_checks(mut self, max_checks: u32) -> Self {
        self.max_checks = max_checks;
        self
    }
}
