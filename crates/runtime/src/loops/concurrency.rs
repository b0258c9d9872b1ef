//! How many invocations of one function run at a time on this node. Only the holder of the authority dispatches, so this is
//! also how many run at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;

type Running = BTreeMap<(TenantId, String), u32>;

#[derive(Debug, Default, Clone)]
pub(crate) struct Concurrency {
    running: Arc<Mutex<Running>>,
}

/// One invocation's place. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    concurrency: Concurrency,
    function: (TenantId, String),
}

impl Concurrency {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `None` if as many run as may.
    pub(crate) fn enter(&self, tenant: &TenantId, function: &str, most: Option<u32>) -> Option<Place> {
        let function = (tenant.clone(), function.to_owned());
        let mut running = self.lock();
        let count = running.get(&function).copied().unwrap_or(0);
        if most.is_some_and(|most| count >= most) {
            return None;
        }
        running.insert(function.clone(), count + 1);
        Some(Place { concurrency: self.clone(), function })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.concurrency.lock();
        match running.get_mut(&self.function) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(running.remove(&self.function)),
        }
    }
}
