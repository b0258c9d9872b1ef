//! The testkit on the reference model, and the testkit's own controls.

mod block_on;
mod differential;

use std::sync::Arc;

use servo_model::limits::Limits;
use servo_store::mem::MemStore;
use servo_store::testkit::conformance::Backend;
use servo_store::{Store, TimeSource};

use crate::block_on::block_on;

struct Memory;

#[async_trait::async_trait]
impl Backend for Memory {
    async fn open(&self, time: TimeSource) -> Arc<dyn Store> {
        Arc::new(MemStore::new(time, Limits::default(), [7; 32]))
    }
}

mod conformance {
    use super::{Memory, block_on};

    servo_store::conformance_tests!(Memory, block_on);
}
