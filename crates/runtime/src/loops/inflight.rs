//! Attempts that this node executes right now: to cancel them, to see that they are alive, to wait for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::{RunId, Timestamp};
use tokio::sync::Notify;

#[derive(Debug, Default, Clone)]
pub struct InFlight {
    attempts: Arc<Mutex<BTreeMap<String, Running>>>,
    /// Stalled attempts that were heard again, not yet written down.
    recovered: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Clone)]
struct Running {
    run_id: RunId,
    cancel: Arc<Notify>,
    last_seen: Timestamp,
    stalled: bool,
}

/// Removes the attempt when it ends, however it ends.
#[derive(Debug)]
pub(crate) struct Registered {
    in_flight: InFlight,
    request_id: String,
    pub cancel: Arc<Notify>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.request_id);
    }
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.attempts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `None` if this node executes the attempt already.
    pub(crate) fn register(&self, request_id: &str, run_id: &RunId, now: Timestamp) -> Option<Registered> {
        let mut attempts = self.lock();
        if attempts.contains_key(request_id) {
            return None;
        }
        let cancel = Arc::new(Notify::new());
        let running = Running { run_id: run_id.clone(), cancel: cancel.clone(), last_seen: now, stalled: false };
        attempts.insert(request_id.to_owned(), running);
        Some(Registered { in_flight: self.clone(), request_id: request_id.to_owned(), cancel })
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn contains(&self, request_id: &str) -> bool {
        self.lock().contains_key(request_id)
    }

    /// Whether an attempt of the run is executed here. Ids of attempts begin with their run's.
    pub(crate) fn runs(&self, run_id: &RunId) -> bool {
        let attempts = self.lock();
        let mut own =
            attempts.range(run_id.as_str().to_owned()..).take_while(|(id, _)| id.starts_with(run_id.as_str()));
        own.any(|(_, running)| running.run_id == *run_id)
    }

    pub(crate) fn cancel_run(&self, run_id: &RunId) {
        for running in self.lock().values().filter(|running| running.run_id == *run_id) {
            running.cancel.notify_one();
        }
    }

    /// The attempt is alive. True if it had been called stalled.
    pub(crate) fn seen(&self, request_id: &str, now: Timestamp) -> bool {
        match self.lock().get_mut(request_id) {
            Some(running) => {
                running.last_seen = now;
                std::mem::take(&mut running.stalled)
            }
            None => false,
        }
    }

    /// Attempts that became stalled since the last look.
    pub(crate) fn newly_stalled(&self, silent_since: Timestamp) -> Vec<String> {
        let mut attempts = self.lock();
        let quiet = attempts.iter_mut().filter(|(_, running)| !running.stalled && running.last_seen <= silent_since);
        quiet
            .map(|(request_id, running)| {
                running.stalled = true;
                request_id.clone()
            })
            .collect()
    }

    pub(crate) fn put_recovered(&self, request_id: &str) {
        let mut recovered = self.recovered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        recovered.push(request_id.to_owned());
    }

    pub(crate) fn take_recovered(&self) -> Vec<String> {
        std::mem::take(&mut *self.recovered.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_here_while_an_attempt_of_it_is() {
        let (in_flight, run) = (InFlight::default(), |name: &str| RunId::parse(name).unwrap());
        let running = in_flight.register("inv_12/handler/1", &run("inv_12"), Timestamp::EPOCH).unwrap();
        let other = in_flight.register("inv_123/handler/1", &run("inv_123"), Timestamp::EPOCH).unwrap();
        let here = |name: &str| in_flight.runs(&run(name));
        assert!(here("inv_12") && here("inv_123") && !here("inv_1") && !here("inv_13"));
        drop(running);
        assert!(!here("inv_12"), "another's id only begins the same");
        drop(other);
        assert!(!here("inv_123"));
    }
}
