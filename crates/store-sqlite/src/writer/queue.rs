//! Where jobs wait for the writer: bounded in number and bytes, drained a group at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use servo_store::{Error, Result};
use tokio::sync::oneshot;

use crate::error::unavailable;
use crate::writer::job::Job;

/// Jobs and bytes in one physical transaction: enough to share the price of a sync, few enough that nobody waits long.
const BATCH_JOBS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Whoever was just answered often comes back at once. Looking for that long is cheaper than being put to sleep and
/// woken; an idle writer sleeps.
const LOOK_AROUND: Duration = Duration::from_micros(50);
/// The same for a caller who is alone and did come back soon the last time. To be woken and to come back takes it longer
/// than the short look on a machine whose cores fall asleep, and then both sides would pay for a wake-up every time.
const LOOK_FOR_ONE: Duration = Duration::from_micros(150);

pub(crate) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
    /// The number of jobs, for a look without the lock.
    length: AtomicUsize,
    jobs_max: usize,
    bytes_max: usize,
}

struct State {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// How many jobs the sleeping writer wants to be woken for; zero while it is awake.
    wanted: usize,
    /// Why no more jobs are taken.
    refusal: Option<Error>,
    closing: bool,
    /// The writer should look around although no job waits.
    is_nudged: bool,
    /// Who waits for the end.
    closer: Option<oneshot::Sender<Result<()>>>,
}

/// What the writer should do next.
pub(crate) enum Next {
    Batch(Vec<Job>),
    /// Nothing waits, and the writer has other work, was nudged, or has waited long enough.
    Idle,
    Closed(Option<oneshot::Sender<Result<()>>>),
}

/// How long the writer waits for a group to gather.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gather {
    /// The group's likely size: callers who were answered just now and may come back at once. Zero after a pause; one
    /// means that nobody is waited for.
    pub(crate) jobs: usize,
    pub(crate) patience: Duration,
    /// The writer has other work to do when nobody waits, at once or after a while.
    pub(crate) other_work_in: Option<Duration>,
}

/// How soon callers came back the last time; the writer keeps it between groups.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    is_brisk: bool,
}

impl Pace {
    fn look(&self, jobs: usize) -> Duration {
        if jobs == 1 && self.is_brisk { LOOK_FOR_ONE } else { LOOK_AROUND }
    }

    /// Twice the look, because whoever found the writer asleep has waited for it to wake up.
    fn note(&mut self, waited: Duration) {
        self.is_brisk = waited < LOOK_FOR_ONE * 2;
    }
}

impl Queue {
    pub(crate) fn new(jobs_max: usize, bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                bytes: 0,
                wanted: 0,
                refusal: None,
                closing: false,
                is_nudged: false,
                closer: None,
            }),
            ready: Condvar::new(),
            length: AtomicUsize::new(0),
            jobs_max,
            bytes_max,
        }
    }

    /// Adds a job, or says why not. A refused job was not run.
    pub(crate) fn push(&self, job: Job) -> Result<()> {
        let bytes = job.bytes();
        let mut state = self.lock();
        if let Some(refusal) = &state.refusal {
            return Err(refusal.clone());
        }
        let fits = state.jobs.is_empty() || state.bytes.saturating_add(bytes) <= self.bytes_max;
        if state.jobs.len() >= self.jobs_max || !fits {
            return Err(unavailable("write queue is full"));
        }
        state.bytes += bytes;
        state.jobs.push_back(job);
        self.length.store(state.jobs.len(), Ordering::Release);
        if state.wanted > 0 && state.jobs.len() >= state.wanted {
            state.wanted = 0;
            drop(state);
            self.ready.notify_one();
        }
        Ok(())
    }

    /// The next group. Blocks the writer's thread until there is one.
    pub(crate) fn next(&self, gather: Gather, jobs_max: usize, pace: &mut Pace) -> Next {
        let jobs_max = jobs_max.min(BATCH_JOBS_MAX);
        let wanted = gather.jobs.clamp(1, jobs_max);
        let start = Instant::now();
        if gather.jobs > 0 {
            self.look_around(wanted, pace.look(wanted));
        }
        let mut state = self.lock();
        if wanted > 1 {
            state = self.wait_for(state, wanted, gather.patience);
        }
        while state.jobs.is_empty() {
            if state.closing {
                return Next::Closed(state.closer.take());
            }
            let waited = start.elapsed();
            if std::mem::take(&mut state.is_nudged) || gather.other_work_in.is_some_and(|within| waited >= within) {
                return Next::Idle;
            }
            state.wanted = 1;
            state = match gather.other_work_in {
                Some(within) => {
                    self.ready.wait_timeout(state, within - waited).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.wanted = 0;
        }
        pace.note(start.elapsed());
        Next::Batch(self.drain(&mut state, jobs_max))
    }

    /// Has the writer look around, if it sleeps: something that it waits for has happened.
    pub(crate) fn nudge(&self) {
        let mut state = self.lock();
        state.is_nudged = true;
        let sleeps = state.wanted > 0;
        drop(state);
        if sleeps {
            self.ready.notify_one();
        }
    }

    /// No more jobs from now on; those that wait are still done. `Closed` if it was closed before.
    pub(crate) fn close(&self, closer: Option<oneshot::Sender<Result<()>>>) -> Result<()> {
        let mut state = self.lock();
        if state.closing {
            return Err(Error::Closed);
        }
        state.closing = true;
        state.closer = closer;
        state.refusal = Some(Error::Closed);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// No more jobs from now on, for this reason. Hands back those that wait.
    pub(crate) fn stop(&self, reason: Error) -> Vec<Job> {
        let mut state = self.lock();
        if !state.closing {
            state.refusal = Some(reason);
        }
        state.bytes = 0;
        self.length.store(0, Ordering::Release);
        state.jobs.drain(..).collect()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// How many wait, about.
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    fn look_around(&self, jobs: usize, look: Duration) {
        let start = Instant::now();
        while self.length.load(Ordering::Acquire) < jobs && start.elapsed() < look {
            std::thread::yield_now();
        }
    }

    fn wait_for<'q>(
        &'q self,
        mut state: MutexGuard<'q, State>,
        jobs: usize,
        patience: Duration,
    ) -> MutexGuard<'q, State> {
        let start = Instant::now();
        while state.jobs.len() < jobs && !state.closing {
            let Some(left) = patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else { break };
            state.wanted = jobs;
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.wanted = 0;
        }
        state
    }

    fn drain(&self, state: &mut State, jobs_max: usize) -> Vec<Job> {
        let mut batch = Vec::with_capacity(state.jobs.len().min(jobs_max));
        let mut bytes = 0;
        while batch.len() < jobs_max
            && let Some(job) = state.jobs.front()
        {
            let size = job.bytes();
            if !batch.is_empty() && bytes + size > BATCH_BYTES_MAX {
                break;
            }
            bytes += size;
            batch.extend(state.jobs.pop_front());
        }
        state.bytes = state.bytes.saturating_sub(bytes);
        self.length.store(state.jobs.len(), Ordering::Release);
        batch
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lone_caller_who_was_quick_is_looked_for_longer() {
        let mut pace = Pace::default();
        assert_eq!(pace.look(1), LOOK_AROUND, "nobody is known yet");
        pace.note(LOOK_FOR_ONE);
        assert_eq!((pace.look(1), pace.look(2)), (LOOK_FOR_ONE, LOOK_AROUND));
        pace.note(Duration::from_millis(1));
        assert_eq!(pace.look(1), LOOK_AROUND);
    }
}
