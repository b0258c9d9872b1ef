//! What campaigns of kills share: clients that go on whatever becomes of the server, and whoever kills it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::support::dice::Dice;
use crate::support::process::Servo;

/// How long a kill waits for an answer to follow.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// Where a campaign takes place: one server after the other, at addresses that clients learn.
pub(super) struct Campaign {
    address: watch::Sender<String>,
    shared: Arc<Shared>,
    seed: u64,
}

struct Shared {
    next: AtomicUsize,
    over: AtomicBool,
    answered: Notify,
    /// Pieces of work at least.
    least: usize,
}

impl Campaign {
    pub(super) fn new(servo: &Servo, seed: u64, least: usize) -> Self {
        let shared = Shared { next: AtomicUsize::new(0), over: AtomicBool::new(false), answered: Notify::new(), least };
        Self { address: watch::channel(servo.url.clone()).0, shared: Arc::new(shared), seed }
    }

    /// Where the server is, always.
    pub(super) fn server(&self) -> watch::Receiver<String> {
        self.address.subscribe()
    }

    /// One of many clients, with dice of its own.
    pub(super) fn client(&self, number: usize) -> Client {
        let dice = Dice::new(self.seed ^ (number as u64 + 1) << 32);
        Client { server: self.server(), shared: self.shared.clone(), dice }
    }

    /// Kills the server and starts it again, so often.
    pub(super) async fn kill(&self, servo: Servo, kills: usize, within: Duration, again: impl Fn() -> Servo) -> Servo {
        self.replace(servo, kills, within, |servo, _| {
            servo.kill();
            again()
        })
        .await
    }

    /// Puts another server in the place of one, so often. Roughly every other time follows an answer at once: whatever was answered
    /// and is not on disk by then is lost. The others come at random moments within a time.
    pub(super) async fn replace(
        &self,
        mut servo: Servo,
        times: usize,
        within: Duration,
        next: impl Fn(Servo, usize) -> Servo,
    ) -> Servo {
        let mut dice = Dice::new(self.seed);
        let micros = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        for time in 0..times {
            let pause = Duration::from_micros(dice.below(micros));
            if dice.below(2) == 0 {
                let _ = tokio::time::timeout(ANSWER_PATIENCE, self.shared.answered.notified()).await;
            } else {
                let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
            }
            servo = next(servo, time);
            self.address.send_replace(servo.url.clone());
        }
        self.shared.over.store(true, Ordering::Relaxed);
        servo
    }
}

pub(super) struct Client {
    server: watch::Receiver<String>,
    shared: Arc<Shared>,
    pub(super) dice: Dice,
}

impl Client {
    /// The number of the next piece of work. None once there were enough and no kill is to come.
    pub(super) fn next(&self) -> Option<usize> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        (number < self.shared.least || !self.is_over()).then_some(number)
    }

    /// No kill is to come.
    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Where the server is now.
    pub(super) fn url(&mut self) -> String {
        self.server.borrow_and_update().clone()
    }

    /// The server has said yes, which is a good moment to kill it.
    pub(super) fn answered(&self) {
        self.shared.answered.notify_waiters();
    }

    /// The server may be down: waits for its next address, unless it is there already.
    pub(super) async fn patient(&mut self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.server.changed()).await;
    }
}
