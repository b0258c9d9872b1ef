//! A test's setting: functions, and what is to go wrong.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_embedded::Functions;
use servo_machine::CallbackAnswer;
use servo_sdk::{CheckpointingMode, ErrorObject, Handler};

use crate::faults::{Crash, Fault, Plan};
use crate::outcome::Outcome;
use crate::run;

/// What somebody outside says to a callback.
#[derive(Debug, Clone)]
pub struct Answer(CallbackAnswer);

impl Answer {
    /// # Panics
    /// If the value cannot be written as JSON.
    pub fn succeed(value: &impl Serialize) -> Self {
        Self(CallbackAnswer::Succeed(Some(to_json(value))))
    }

    pub fn fail(error_type: &str, message: &str) -> Self {
        Self(CallbackAnswer::Fail(ErrorObject::new(error_type, message)))
    }
}

/// Runs handlers on the engine in this thread, with virtual time. Each [`Kit::run`] begins with an empty store, so one kit
/// serves many runs; `clone` one to vary it.
#[derive(Clone, Default)]
pub struct Kit {
    pub(crate) functions: Functions,
    pub(crate) plan: Plan,
    pub(crate) mode: CheckpointingMode,
    pub(crate) evicts: bool,
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit").field("functions", &self.functions).field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Kit {
    pub fn new() -> Self {
        Self::default()
    }

    /// A durable function. Handlers may invoke each other by these names.
    ///
    /// # Panics
    /// If there is one of this name.
    #[must_use]
    #[track_caller]
    pub fn handler<E, R, H>(mut self, name: &str, handler: H) -> Self
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        H: Handler<E, R> + 'static,
    {
        assert!(self.functions.add(name, handler), "handler `{name}` is registered twice; give one another name");
        self
    }

    #[must_use]
    pub fn checkpointing(mut self, mode: CheckpointingMode) -> Self {
        self.mode = mode;
        self
    }

    /// The engine keeps nothing in memory between two calls: each one folds what is recorded, as after an eviction.
    #[must_use]
    pub fn evict(mut self) -> Self {
        self.evicts = true;
        self
    }

    /// The step's attempt of that number, from 1, fails with this error; its body does not run.
    #[must_use]
    pub fn fail_step(mut self, name: &str, attempt: u32, error: impl Into<String>) -> Self {
        self.plan.steps.insert((name.to_owned(), attempt), error.into());
        self
    }

    /// The program dies at its n-th checkpoint, from 1, and is started again.
    #[must_use]
    pub fn crash_at_checkpoint(self, n: usize, when: Crash) -> Self {
        self.fault(n, Fault::Crash(when))
    }

    /// The n-th checkpoint is recorded and its answer is lost.
    #[must_use]
    pub fn lose_response(self, n: usize) -> Self {
        self.fault(n, Fault::LostResponse)
    }

    /// The n-th checkpoint arrives twice.
    #[must_use]
    pub fn duplicate_request(self, n: usize) -> Self {
        self.fault(n, Fault::Duplicate)
    }

    /// The n-th checkpoint comes with a token that is used up, as from an invocation that another one has replaced.
    #[must_use]
    pub fn stale_token(self, n: usize) -> Self {
        self.fault(n, Fault::StaleToken)
    }

    fn fault(mut self, n: usize, fault: Fault) -> Self {
        self.plan.calls.insert(n, fault);
        self
    }

    /// Every callback of this name is answered at once.
    #[must_use]
    pub fn on_callback(self, name: &str, answer: Answer) -> Self {
        self.on_callback_after(name, Duration::ZERO, answer)
    }

    /// Every callback of this name is answered after this long.
    #[must_use]
    pub fn on_callback_after(mut self, name: &str, after: Duration, answer: Answer) -> Self {
        self.plan.callbacks.insert(name.to_owned(), (after, answer.0));
        self
    }

    /// Whoever has a callback of this name says after this long that it is still at it. May be asked for several times.
    #[must_use]
    pub fn heartbeat_after(mut self, name: &str, after: Duration) -> Self {
        self.plan.heartbeats.entry(name.to_owned()).or_default().push(after);
        self
    }

    /// Runs an execution to its end.
    ///
    /// # Panics
    /// If there is no such function, if the input cannot be written, or if the handler waits for what cannot happen here, such
    /// as the network: steps under test do no IO.
    #[track_caller]
    pub fn run(&self, function: &str, input: impl Serialize) -> Outcome {
        run::run(self, function, to_json(&input))
    }

    /// Runs the execution once for every way to die: at each checkpoint, before and after it is recorded.
    #[track_caller]
    pub fn run_with_every_crash(&self, function: &str, input: impl Serialize) -> Vec<(usize, Crash, Outcome)> {
        let input = to_json(&input);
        let calls = run::run(self, function, input.clone()).checkpoints;
        let ways = (1..=calls).flat_map(|n| [(n, Crash::Before), (n, Crash::After)]);
        let outcome =
            |(n, when)| (n, when, run::run(&self.clone().crash_at_checkpoint(n, when), function, input.clone()));
        ways.map(outcome).collect()
    }
}

#[track_caller]
fn to_json(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text,
        Err(error) => panic!("the value cannot be written as JSON: {error}"),
    }
}
