//! Gathers concurrent appends. Each of a few writers takes what has queued up while it was busy, commits it in one
//! transaction, and answers everybody; a lone append is written at once.
//!
//! Writers are tasks and not callers: a caller who gives up leaves its append where it is and disturbs nobody.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use servo_store::{Append, Appended, Error, Result};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::append;
use crate::hint::HintSender;
use crate::store::Core;
use crate::tasks;

/// Appends that may wait. More callers wait for room.
const WAITING_MAX: usize = 4_096;

/// Appends in one transaction: enough to share a commit, few enough that a refused batch is soon tried one by one.
const BATCH_APPENDS_MAX: usize = 256;

/// Payload bytes in one transaction of several appends. A single append may be larger.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Batcher {
    queue: Arc<Queue>,
    writers: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// One permit per append that waits.
    room: Semaphore,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Debug)]
struct Job {
    append: Append,
    bytes: usize,
    answer: oneshot::Sender<Result<Appended>>,
}

impl Batcher {
    pub(crate) fn start(core: &Arc<Core>, writers: usize, hints: &HintSender) -> Self {
        let queue = Arc::new(Queue {
            state: Mutex::new(State::default()),
            room: Semaphore::new(WAITING_MAX),
            arrived: Notify::new(),
        });
        let writers = (0..writers.max(1)).map(|_| {
            let (core, queue, hints) = (Arc::clone(core), Arc::clone(&queue), hints.clone());
            tasks::spawn(async move { write(&core, &queue, &hints).await })
        });
        let writers = Mutex::new(writers.collect());
        Self { queue, writers }
    }

    pub(crate) async fn append(&self, append: Append) -> Result<Appended> {
        let room = self.queue.room.acquire().await.map_err(|_| Error::Closed)?;
        let events = append.streams.iter().flat_map(|stream| &stream.events);
        let bytes = events.map(|event| event.payload.len()).sum();
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.queue.lock();
            if state.is_closed {
                return Err(Error::Closed);
            }
            state.waiting.push_back(Job { append, bytes, answer });
        }
        // Given back by the writer that takes the append.
        room.forget();
        self.queue.arrived.notify_one();
        let gone = || Error::Unavailable { detail: "the writer has stopped".to_owned(), maybe_written: true };
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// No more appends; those that wait are still written.
    pub(crate) fn stop(&self) {
        self.queue.lock().is_closed = true;
        self.queue.room.close();
        self.queue.arrived.notify_waiters();
        // For a writer that was about to wait.
        self.queue.arrived.notify_one();
    }

    pub(crate) async fn finish(&self) {
        self.stop();
        let writers = std::mem::take(&mut *self.writers.lock().unwrap_or_else(PoisonError::into_inner));
        for writer in writers {
            self.queue.arrived.notify_one();
            // A writer that panicked has dropped its answers, and its callers know.
            let _ = writer.await;
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits, up to the limits; empty once the queue is closed and drained.
    async fn take(&self) -> Vec<Job> {
        loop {
            // Before looking, so that what arrives after the look is not missed.
            let arrived = self.arrived.notified();
            {
                let mut state = self.lock();
                if !state.waiting.is_empty() {
                    let taken = state.take();
                    self.room.add_permits(taken.len());
                    let is_more = !state.waiting.is_empty();
                    drop(state);
                    if is_more {
                        self.arrived.notify_one();
                    }
                    return taken;
                }
                if state.is_closed {
                    return Vec::new();
                }
            }
            arrived.await;
        }
    }
}

impl State {
    fn take(&mut self) -> Vec<Job> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(job) = self.waiting.front() {
            bytes += job.bytes;
            if !taken.is_empty() && (taken.len() == BATCH_APPENDS_MAX || bytes > BATCH_BYTES_MAX) {
                break;
            }
            taken.extend(self.waiting.pop_front());
        }
        taken
    }
}

async fn write(core: &Core, queue: &Queue, hints: &HintSender) {
    loop {
        let jobs = queue.take().await;
        if jobs.is_empty() {
            // The other writers wait for the same news.
            queue.arrived.notify_one();
            return;
        }
        let (appends, answers): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.append, job.answer)).unzip();
        if core.answers_early {
            answer_early(core, &appends, answers).await;
            continue;
        }
        // A panic here would be a bug of one batch; the others must go on. Its callers see their answers vanish.
        let Ok(results) = AssertUnwindSafe(append::commit(core, &appends)).catch_unwind().await else { continue };
        if results.iter().any(Result::is_ok) {
            hints.wrote();
        }
        for (answer, result) in answers.into_iter().zip(results) {
            // Nobody may be there any more.
            let _ = answer.send(result);
        }
        // Callers that were waiting for these answers often have the next append ready: let them come to it, or every
        // second batch would be the one that happened to be first.
        tokio::task::yield_now().await;
    }
}

/// The broken variant: everybody is answered, and a while later the appends are written. Long enough for an answer to reach
/// whoever asked before the process ends.
async fn answer_early(core: &Core, appends: &[Append], answers: Vec<oneshot::Sender<Result<Appended>>>) {
    for (append, answer) in appends.iter().zip(answers) {
        let _ = answer.send(append::rehearse(core, append).await);
    }
    let _ = tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>()).await;
    let _ = append::commit(core, appends).await;
}
