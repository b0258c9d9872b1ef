//! The conformance suite: every rule of the store as a case that runs on any backend.
//!
//! A case gets a fresh, empty store with default limits and a clock that only the case advances. Cases live in a file
//! per role; `list` names them all with the ledger rows they prove. What only one backend has (database guards, files,
//! connections) is tested with that backend, not here.

/// Asserts that a call was refused with this error.
macro_rules! refused {
    ($result:expr, $($pattern:pat_param)|+ $(if $guard:expr)?) => {{
        let result = $result;
        assert!(matches!(&result, Err(error) if matches!(error.clone(), $($pattern)|+ $(if $guard)?)), "{result:?}");
    }};
}

mod context;
mod list;
mod threads;

mod admin;
mod alerts;
mod atomic;
pub(super) mod audit;
mod authority;
mod damage;
mod dispatch;
mod entrypoints;
pub(super) mod identity;
mod import;
mod invocations;
mod keys;
mod limits;
mod lines;
mod log;
mod queue;
mod reader;
mod registry;
mod relay;
mod retention;
mod runs;
mod snapshots_resync;
mod tenancy;
mod timers;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use servo_model::RunId;

use crate::{Store, TimeSource};

pub use context::Context;
pub(super) use context::yield_now;
pub use list::CASES;

/// What a backend's tests give the suite. One value serves one case.
#[async_trait]
pub trait Backend: Send + Sync {
    /// A fresh, empty store that takes the time from `time`, with `Limits::default()`.
    async fn open(&self, time: TimeSource) -> Arc<dyn Store>;

    /// The same data again after the first handle was closed; `None` where nothing outlives the handle.
    async fn reopen(&self, time: TimeSource) -> Option<Arc<dyn Store>> {
        let _ = time;
        None
    }

    /// Changes stored bytes past the store's guards, as a failing disk would, and gives a store that reads them. `store` is the
    /// one that `open` gave. `None` where the suite's cases of damage are not run.
    async fn damage(&self, store: Arc<dyn Store>, time: TimeSource, damage: &Damage) -> Option<Arc<dyn Store>> {
        let _ = (store, time, damage);
        None
    }
}

/// One byte of an event's payload that is another one now.
#[derive(Debug, Clone)]
pub struct Damage {
    pub run_id: RunId,
    pub run_seq: u64,
    /// A text that stands once in the payload, and what stands there instead, of the same length.
    pub from: &'static str,
    pub to: &'static str,
}

/// Something to be run to its end.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a task to its end on the calling thread, as the backend needs it.
pub type BlockOn = fn(Task);

/// One rule of the store.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// `group::name`, as nextest shows it.
    pub name: &'static str,
    /// The ledger rows that would go unproven without it.
    pub ledger: &'static [&'static str],
    pub run: fn(Context) -> Task,
}

/// Runs one case. The tests that `conformance_tests!` makes call it.
pub fn check(name: &str, backend: Arc<dyn Backend>, block_on: BlockOn) {
    let case = *CASES.iter().find(|case| case.name == name).expect("the macro names only cases of the list");
    block_on(Box::pin(async move {
        let ctx = Context::open(backend, block_on).await;
        (case.run)(ctx.clone()).await;
        // The case may have closed it already.
        let _ = ctx.store.close().await;
    }));
}

/// Makes one `#[test]` per case: `conformance_tests!(backend, block_on)`. See the module `testkit` for an example.
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr, $block_on:expr $(,)?) => {
        $crate::__conformance_cases! { __conformance_tests ($backend, $block_on) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    (
        ($backend:expr, $block_on:expr)
        $($group:ident { $($name:ident $(proves $($ledger:literal),+)?;)* })*
    ) => {
        $(
            mod $group {
                use super::*;
                $(
                    #[test]
                    fn $name() {
                        let name = concat!(stringify!($group), "::", stringify!($name));
                        $crate::testkit::conformance::check(name, ::std::sync::Arc::new($backend), $block_on);
                    }
                )*
            }
        )*
    };
}
