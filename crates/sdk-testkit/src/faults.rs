//! What is to go wrong, and what was seen: shared by the client in between, the steps, and the kit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_machine::CallbackAnswer;
use servo_model::Timestamp;
use servo_sdk::{
    AttemptInfo, BoxError, CheckpointRequest, CheckpointResponse, Interceptor, OperationAction, OperationStatus,
    OperationType,
};
use tokio::sync::Notify;

use crate::clock::VirtualClock;

/// When the program dies, seen from the call at which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The engine has recorded nothing of the call.
    Before,
    /// The engine has recorded the call; its answer reaches nobody.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash(Crash),
    LostResponse,
    Duplicate,
    StaleToken,
}

/// What the test asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) calls: BTreeMap<usize, Fault>,
    pub(crate) steps: BTreeMap<(String, u32), String>,
    pub(crate) callbacks: BTreeMap<String, (Duration, CallbackAnswer)>,
    /// When heartbeats of a callback come.
    pub(crate) heartbeats: BTreeMap<String, Vec<Duration>>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) checkpoints: usize,
    pub(crate) invocations: usize,
    pub(crate) crashes: usize,
    pub(crate) attempts: BTreeMap<(String, u32), usize>,
    pub(crate) reruns: Vec<String>,
    crashed: bool,
    /// Steps whose outcome the engine has.
    recorded: BTreeSet<(String, String)>,
    token: Option<String>,
    known: BTreeSet<String>,
    /// Callbacks that are still to be answered.
    open: BTreeMap<(Timestamp, String), CallbackAnswer>,
}

pub(crate) struct Faults {
    plan: Plan,
    clock: VirtualClock,
    seen: Mutex<Seen>,
    called: Notify,
}

impl Faults {
    pub(crate) fn new(plan: Plan, clock: VirtualClock) -> Arc<Self> {
        Arc::new(Self { plan, clock, seen: Mutex::default(), called: Notify::new() })
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call in, and says what is to happen to it.
    pub(crate) fn next_call(&self) -> Option<Fault> {
        let mut seen = self.seen();
        seen.checkpoints += 1;
        self.plan.calls.get(&seen.checkpoints).copied()
    }

    /// The token of an earlier call; before the first one, one that nobody gave.
    pub(crate) fn exchange_token(&self, token: &str) -> String {
        self.seen().token.replace(token.to_owned()).unwrap_or_else(|| "a token from another time".to_owned())
    }

    /// The engine has carried the call out.
    pub(crate) fn recorded(&self, arn: &str, request: &CheckpointRequest, response: &CheckpointResponse) {
        let mut seen = self.seen();
        seen.token = Some(request.checkpoint_token.clone());
        let done = |action| matches!(action, OperationAction::Succeed | OperationAction::Fail);
        for update in request.updates.iter().flatten() {
            if update.operation_type == OperationType::Step && done(update.action) {
                seen.recorded.insert((arn.to_owned(), update.id.clone()));
            }
        }
        for operation in &response.new_execution_state.operations {
            let id = operation.callback_details.as_ref().and_then(|details| details.callback_id.clone());
            let Some(id) = id.filter(|_| operation.status == OperationStatus::Started) else { continue };
            let name = operation.name.as_deref().unwrap_or_default();
            // `wait_for_callback` has its callback under a name of its own.
            let name = name.strip_suffix(" create callback id").unwrap_or(name);
            let beats = self.plan.heartbeats.get(name).into_iter().flatten();
            let beats = beats.map(|after| (*after, CallbackAnswer::Heartbeat));
            // Behind the heartbeats: of two at one moment, the answer counts.
            let said: Vec<_> = beats.chain(self.plan.callbacks.get(name).cloned()).collect();
            if !said.is_empty() && seen.known.insert(id.clone()) {
                let now = self.clock.time();
                seen.open.extend(said.into_iter().map(|(after, answer)| ((now.plus(after), id.clone()), answer)));
                self.called.notify_one();
            }
        }
    }

    /// Nothing that runs after this is seen by anybody.
    pub(crate) async fn crash(&self) -> ! {
        {
            let mut seen = self.seen();
            seen.crashed = true;
            seen.crashes += 1;
        }
        loop {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.seen().crashed
    }

    pub(crate) fn revive(&self) {
        self.seen().crashed = false;
    }

    /// The callback that is to be answered next, once its time has come.
    pub(crate) async fn next_callback(&self) -> (Timestamp, String, CallbackAnswer) {
        loop {
            let next = self.seen().open.first_key_value().map(|((at, id), answer)| (*at, id.clone(), answer.clone()));
            match next {
                Some((at, id, answer)) if at <= self.clock.time() => return (at, id, answer),
                Some((at, ..)) => {
                    let sleep = self.clock.wait(at.since(self.clock.time()));
                    let called = std::pin::pin!(self.called.notified());
                    futures_util::future::select(sleep, called).await;
                }
                None => self.called.notified().await,
            }
        }
    }

    pub(crate) fn answered(&self, at: Timestamp, id: String) {
        self.seen().open.remove(&(at, id));
    }
}

impl Interceptor for Faults {
    fn before_attempt(&self, info: &AttemptInfo) -> Result<(), BoxError> {
        let name = info.name.clone().unwrap_or_default();
        let mut seen = self.seen();
        if seen.recorded.contains(&(info.durable_execution_arn.clone(), info.operation_id.clone())) {
            seen.reruns.push(name.clone());
        }
        let attempt = (name, info.attempt);
        if let Some(error) = self.plan.steps.get(&attempt) {
            return Err(error.clone().into());
        }
        *seen.attempts.entry(attempt).or_default() += 1;
        Ok(())
    }
}
