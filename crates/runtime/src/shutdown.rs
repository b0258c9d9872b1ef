//! One signal that everything listens to: stop taking work in, finish, go.

use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { sender: watch::channel(false).0 }
    }
}

impl Shutdown {
    pub fn trigger(&self) {
        self.sender.send_replace(true);
    }

    pub fn is_triggered(&self) -> bool {
        *self.sender.borrow()
    }

    /// Ready once shutdown was triggered, also if that was before the call.
    pub async fn triggered(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = receiver.wait_for(|stop| *stop).await;
    }
}
