//! How many invocations of one function run at a time on this node. Only the holder of the authority dispatches, so this is
//! also how many run at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;

type Running = BTreeMap<(TenantId, String), Function>;

#[derive(Debug)]
struct Function {
    running: u32,
    /// How many may, as far as is known from those that came: versions may differ.
    most: Option<u32>,
}

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
        if most == Some(0) {
            return None;
        }
        let known = running.entry(function.clone()).or_insert(Function { running: 0, most });
        known.most = known.most.zip(most).map(|(known, most)| known.max(most));
        if most.is_some_and(|most| known.running >= most) {
            return None;
        }
        known.running += 1;
        Some(Place { concurrency: self.clone(), function })
    }

    /// Whether another invocation is worth a try.
    pub(crate) fn has_room(&self, tenant: &TenantId, function: &str) -> bool {
        let function = (tenant.clone(), function.to_owned());
        self.lock().get(&function).is_none_or(|known| known.most.is_none_or(|most| known.running < most))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.concurrency.lock();
        match running.get_mut(&self.function) {
            Some(known) if known.running > 1 => known.running -= 1,
            _ => drop(running.remove(&self.function)),
        }
    }
}
