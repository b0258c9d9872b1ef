//! Callers who wait for a run to end, or to wait for something itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::RunId;
use tokio::sync::Notify;

type Bells = BTreeMap<RunId, (usize, Arc<Notify>)>;

/// One bell per run that somebody waits for. A hint: what a run does on another node rings no bell here.
#[derive(Debug, Default, Clone)]
pub(crate) struct Endings {
    bells: Arc<Mutex<Bells>>,
}

/// Somebody waits. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    endings: Endings,
    run_id: RunId,
    bell: Arc<Notify>,
}

impl Endings {
    fn lock(&self) -> MutexGuard<'_, Bells> {
        self.bells.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn listen(&self, run_id: &RunId) -> Listener {
        let mut bells = self.lock();
        let (listeners, bell) = bells.entry(run_id.clone()).or_default();
        *listeners += 1;
        Listener { endings: self.clone(), run_id: run_id.clone(), bell: bell.clone() }
    }

    pub(super) fn has_listener(&self, run_id: &RunId) -> bool {
        self.lock().contains_key(run_id)
    }

    pub(super) fn tell(&self, run_id: &RunId) {
        if let Some((_, bell)) = self.lock().get(run_id) {
            bell.notify_waiters();
            // For a listener between its look and its wait.
            bell.notify_one();
        }
    }
}

impl Listener {
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut bells = self.endings.lock();
        if let Some((listeners, _)) = bells.get_mut(&self.run_id) {
            *listeners -= 1;
            if *listeners == 0 {
                bells.remove(&self.run_id);
            }
        }
    }
}
