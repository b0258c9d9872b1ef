//! Witnesses outside the store: what adapters executed, and what the bus delivered.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_adapter::mock::Mock;
use servo_adapter::{Adapter, AttemptContext, AttemptRequest};
use servo_model::artifact::StepOutput;
use servo_model::{EventId, RunId, StepId};
use servo_runtime::{Bus, BusError, BusMessage};

/// One call of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Execution {
    pub run_id: RunId,
    pub step_id: StepId,
    pub logical_attempt: u32,
    pub engine_attempt: u32,
}

/// The `mock` engine, with a list of what it was asked to do.
#[derive(Debug, Default, Clone)]
pub struct RecordingAdapter {
    executions: Arc<Mutex<Vec<Execution>>>,
}

impl RecordingAdapter {
    pub fn executions(&self) -> Vec<Execution> {
        lock(&self.executions).clone()
    }
}

#[async_trait]
impl Adapter for RecordingAdapter {
    fn engine_type(&self) -> &str {
        "mock"
    }

    async fn run(&self, request: AttemptRequest, context: &AttemptContext) -> StepOutput {
        lock(&self.executions).push(Execution {
            run_id: request.run_id.clone(),
            step_id: request.step_id.clone(),
            logical_attempt: request.logical_attempt,
            engine_attempt: request.engine_attempt,
        });
        Mock.run(request, context).await
    }
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub event_id: EventId,
    pub run_id: RunId,
    pub run_seq: u64,
}

/// A bus that is down, refuses, or works; it keeps what it took.
#[derive(Debug)]
pub struct RecordingBus {
    state: Mutex<BusState>,
}

#[derive(Debug)]
struct BusState {
    rng: StdRng,
    down_per_mille: u64,
    refuse_per_mille: u64,
    delivered: Vec<Delivery>,
    refused: BTreeSet<RunId>,
    refusals: u64,
    outages: u64,
}

impl RecordingBus {
    /// So many calls in a thousand find the bus down; so many messages in a thousand are refused.
    pub fn new(seed: u64, down_per_mille: u64, refuse_per_mille: u64) -> Self {
        let state = BusState {
            rng: StdRng::seed_from_u64(seed ^ 0xb05),
            down_per_mille,
            refuse_per_mille,
            delivered: Vec::new(),
            refused: BTreeSet::new(),
            refusals: 0,
            outages: 0,
        };
        Self { state: Mutex::new(state) }
    }

    pub fn set_down(&self, per_mille: u64) {
        lock(&self.state).down_per_mille = per_mille;
    }

    pub fn set_refusing(&self, per_mille: u64) {
        lock(&self.state).refuse_per_mille = per_mille;
    }

    pub fn heal(&self) {
        self.set_down(0);
        self.set_refusing(0);
    }

    pub fn delivered(&self) -> Vec<Delivery> {
        lock(&self.state).delivered.clone()
    }

    /// Runs of which a message was refused at some time: their order is not kept.
    pub fn refused(&self) -> BTreeSet<RunId> {
        lock(&self.state).refused.clone()
    }

    /// How often a message was refused, and how often the bus was down.
    pub fn faults(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.refusals, state.outages)
    }
}

#[async_trait]
impl Bus for RecordingBus {
    fn name(&self) -> &'static str {
        "recording"
    }

    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>> {
        let mut state = lock(&self.state);
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            let (down, refuse) = (state.down_per_mille, state.refuse_per_mille);
            if state.rng.random_range(0..1_000) < down {
                state.outages += 1;
                results.push(Err(BusError::Unavailable("the bus is down".to_owned())));
                break;
            }
            if state.rng.random_range(0..1_000) < refuse {
                state.refusals += 1;
                state.refused.insert(message.run_id.clone());
                results.push(Err(BusError::Refused("not now".to_owned())));
                continue;
            }
            state.delivered.push(Delivery {
                event_id: message.event_id,
                run_id: message.run_id.clone(),
                run_seq: message.run_seq,
            });
            results.push(Ok(()));
        }
        results
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
