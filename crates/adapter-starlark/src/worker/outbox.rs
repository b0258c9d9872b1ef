//! What goes to the parent: frames, and before them what is to be recorded with the next checkpoint.
//!
//! Two threads share it. One runs the program and does nearly everything here; the other only watches how long a step takes, and
//! tells that it began when it does not end. So a step that ends soon costs one checkpoint, and one that hangs has a name.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use servo_model::operation::OperationUpdate;
use servo_replay::{BatchLimits, plan};

use crate::protocol::{FromChild, encode};

/// The watch never looks more often than this, whatever it was told.
const PAUSE_MIN: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    /// Rung when the watch sleeps and there is something to watch.
    bell: Condvar,
}

#[derive(Debug)]
struct Inner {
    output: File,
    queue: VecDeque<OperationUpdate>,
    /// When the step began that runs now.
    step: Option<Instant>,
    /// Without an end by then, its beginning is told.
    told_after: Duration,
    /// Steps that have begun, so that the watch sees whether any did.
    steps: u64,
    watch: Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// It looks again by itself. A child that is busy never has to wake it.
    Awake,
    /// Nothing happened for a while; it costs nothing until it is rung.
    Asleep,
    /// The program's thread is gone.
    Over,
}

impl Outbox {
    /// Takes over standard output; nothing else in a child uses it.
    #[expect(unsafe_code, reason = "a child owns its standard output; std's own handle buffers and locks")]
    pub(crate) fn standard() -> Self {
        // SAFETY: the descriptor is an open pipe that the parent made, and this is called once.
        let output = unsafe { File::from_raw_fd(1) };
        let (queue, watch) = (VecDeque::new(), Watch::Asleep);
        let inner = Inner { output, queue, step: None, told_after: Duration::MAX, steps: 0, watch };
        Self { inner: Mutex::new(inner), bell: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn send(&self, head: &FromChild, body: &[u8]) {
        self.lock().send(head, body);
    }

    /// Puts an update in line, and says how many there are.
    pub(crate) fn enqueue(&self, update: OperationUpdate) -> usize {
        let mut inner = self.lock();
        inner.queue.push_back(update);
        inner.queue.len()
    }

    /// Sends as much as one checkpoint takes; false if nothing is in line.
    pub(crate) fn send_checkpoint(&self) -> bool {
        self.lock().send_batch(&FromChild::Checkpoint)
    }

    /// A new call begins: what an earlier one left in line is nobody's any more.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.queue.clear();
        inner.step = None;
    }

    /// The body of a step begins.
    pub(crate) fn begin_step(&self, told_after: Duration) {
        let mut inner = self.lock();
        inner.step = Some(Instant::now());
        inner.told_after = told_after;
        inner.steps += 1;
        if inner.watch == Watch::Asleep {
            inner.watch = Watch::Awake;
            self.bell.notify_one();
        }
    }

    pub(crate) fn end_step(&self) {
        self.lock().step = None;
    }

    /// Watches steps until the program's thread is gone.
    pub(crate) fn watch(&self) {
        let mut inner = self.lock();
        let mut seen = 0;
        while inner.watch != Watch::Over {
            let pause = match inner.step {
                Some(since) => {
                    let left = inner.told_after.saturating_sub(since.elapsed());
                    if left.is_zero() {
                        while inner.send_batch(&FromChild::Began) {}
                        inner.told_after
                    } else {
                        left
                    }
                }
                // One that begins right after this look is looked at before its time is over.
                None if inner.steps != seen => inner.told_after,
                None => {
                    inner.watch = Watch::Asleep;
                    inner = self.bell.wait(inner).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            seen = inner.steps;
            let waited = self.bell.wait_timeout(inner, pause.max(PAUSE_MIN));
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the watch.
    pub(crate) fn close(&self) {
        self.lock().watch = Watch::Over;
        self.bell.notify_one();
    }
}

impl Inner {
    fn send(&mut self, head: &FromChild, body: &[u8]) {
        let Ok(mut frame) = encode(head, body.len()) else { super::broken("a frame cannot be written") };
        // One write for small frames: the parent wakes once.
        let sent = if body.len() < 64 * 1024 {
            frame.extend_from_slice(body);
            self.output.write_all(&frame)
        } else {
            self.output.write_all(&frame).and_then(|()| self.output.write_all(body))
        };
        if sent.is_err() {
            // The parent is gone or has lost interest.
            std::process::exit(0);
        }
    }

    /// Sends as much of the line as one checkpoint takes, while nobody else can: what is sent is in the order of the line.
    fn send_batch(&mut self, head: &FromChild) -> bool {
        let count = plan(self.queue.iter(), BatchLimits::default());
        if count == 0 {
            return false;
        }
        let batch: Vec<OperationUpdate> = self.queue.drain(..count).collect();
        let Ok(body) = serde_json::to_vec(&batch) else { super::broken("an update cannot be written") };
        self.send(head, &body);
        true
    }
}
