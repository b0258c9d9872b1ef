//! The tools that prove a store: a clock under the test's control, fixtures, the conformance suite, the differential
//! test against the reference model, and a wrapper that makes calls fail.
//!
//! It knows no backend and no async runtime. A backend's `tests/it/main.rs` needs only this:
//!
//! ```no_run
//! # use std::future::Future;
//! use std::sync::Arc;
//!
//! use servo_store::testkit::conformance::Backend;
//! use servo_store::{Store, TimeSource};
//! # use servo_model::limits::Limits;
//! # use servo_store::mem::MemStore;
//!
//! struct Mine;
//!
//! #[async_trait::async_trait]
//! impl Backend for Mine {
//!     async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
//!         Arc::new(MemStore::new(time, Limits::default(), [7; 32]))
//!     }
//!
//!     // `reopen` has a default, for stores whose data ends with the handle.
//! }
//!
//! # fn block_on<F: Future>(_: F) -> F::Output { unreachable!() }
//! // One `#[test]` per case, in a module per role: `log::…`, `queue::…`. Both expressions are evaluated in each test.
//! // The second runs a `Task` to its end; it is called from several threads at once, and the store must go on working
//! // while one of them waits (for tokio: one multi-thread runtime per process).
//! servo_store::conformance_tests!(Mine, |task| block_on(task));
//!
//! // Compares the store with the reference model over many seeds; `SERVO_DIFF_SEQUENCES` says how many. Longer
//! // campaigns choose tests by the word `differential`.
//! #[test]
//! fn differential() {
//!     block_on(servo_store::testkit::differential::check(|| Mine));
//! }
//! # fn main() {}
//! ```
#![expect(clippy::unwrap_used, reason = "tests as a library: a panic is how they report")]

pub mod clock;
pub mod conformance;
pub mod differential;
pub mod faulty;
pub mod fixtures;
mod methods;
pub mod rng;
pub mod wrap;
