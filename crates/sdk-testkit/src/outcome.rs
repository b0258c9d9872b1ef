//! What came of an execution.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use servo_sdk::ErrorObject;
use servo_wire::lambda::{ExecutionStatus, HistoryEvent, Operation, Seconds};

#[derive(Debug, Clone)]
pub struct Outcome {
    pub status: ExecutionStatus,
    /// JSON, of an execution that succeeded.
    pub result: Option<String>,
    pub error: Option<ErrorObject>,
    /// Everything durable that the handler did, in its order.
    pub operations: Vec<Operation<Seconds>>,
    pub history: Vec<HistoryEvent>,
    /// How often handlers were invoked, of all functions.
    pub invocations: usize,
    /// Calls that handlers made to record something.
    pub checkpoints: usize,
    /// Times that the program died and was started again.
    pub crashes: usize,
    /// How often the body of each step ran, by name and attempt.
    pub attempts: BTreeMap<(String, u32), usize>,
    /// Steps whose body ran again although their outcome was recorded. Never any, or the engine or the SDK is broken.
    pub reruns: Vec<String>,
    /// Virtual time from start to end.
    pub elapsed: Duration,
}

impl Outcome {
    /// The result of an execution that must have succeeded.
    #[track_caller]
    pub fn value<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, ExecutionStatus::Succeeded, "{:?}", self.error);
        match serde_json::from_str(self.result.as_deref().unwrap_or("null")) {
            Ok(value) => value,
            Err(error) => panic!("the result {:?} is not of the asked type: {error}", self.result),
        }
    }

    /// Operations of that name, in the handler's order.
    pub fn operations_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Operation<Seconds>> {
        self.operations.iter().filter(move |operation| operation.name.as_deref() == Some(name))
    }

    /// The one operation of that name.
    #[track_caller]
    pub fn operation(&self, name: &str) -> &Operation<Seconds> {
        let mut named = self.operations_named(name);
        let (first, second) = (named.next(), named.next());
        match (first, second) {
            (Some(operation), None) => operation,
            (None, _) => {
                let names: Vec<&str> = self.operations.iter().filter_map(|known| known.name.as_deref()).collect();
                panic!("no operation is called `{name}`; there are: {}", names.join(", "))
            }
            (Some(_), Some(_)) => panic!("several operations are called `{name}`; use operations_named"),
        }
    }

    /// How often the body of a step ran, in all its attempts.
    pub fn runs_of(&self, step: &str) -> usize {
        self.attempts.iter().filter(|((name, _), _)| name == step).map(|(_, count)| count).sum()
    }
}
