//! Wake-ups between the engine and its loops. Hints only: every loop also looks by itself from time to time, so a lost
//! wake-up costs a moment and never a run.

use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub struct Wake {
    pub dispatch: Notify,
    pub queue: Notify,
    pub timers: Notify,
    pub authority: Notify,
    pub replay: Notify,
    /// Counts appends seen by this node; projector, relay and live readers wait on it.
    log: watch::Sender<u64>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            dispatch: Notify::new(),
            queue: Notify::new(),
            timers: Notify::new(),
            authority: Notify::new(),
            replay: Notify::new(),
            log: watch::channel(0).0,
        }
    }
}

impl Wake {
    pub fn log_grew(&self) {
        self.log.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn watch_log(&self) -> watch::Receiver<u64> {
        self.log.subscribe()
    }
}
