//! The writer's side of the applier: what it is handed, and what became of it.

use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use servo_store::Error;

use super::applier::{Broken, Done, Task};
use super::state::State;
use super::{Writer, gone};
use crate::ahead::Ahead;
use crate::error::{Reach, unavailable};

/// Bytes of the redo file that the database may have without having synced them.
const UNSYNCED_BYTES: u64 = 4 * 1024 * 1024;

/// What the database refused is offered again after a while: space may come back.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What is ahead of the database, and why it was not taken.
#[derive(Debug)]
pub(super) struct Stuck {
    pub(super) error: Error,
    pub(super) since: Instant,
}

impl Stuck {
    pub(super) fn again_in(&self) -> Duration {
        AGAIN_AFTER.saturating_sub(self.since.elapsed())
    }
}

impl Writer {
    /// Learns what the applier has done, and hands it what is due.
    pub(super) fn look_after_applier(&mut self, state: &mut State) {
        if self.health.is_stopped() && !state.is_stopped() {
            // It was the applier that met it, between two tasks.
            self.stop(state, &unavailable("the database cannot be written"));
        }
        if state.stuck.as_ref().is_some_and(|stuck| stuck.again_in().is_zero()) && !state.is_stopped() {
            state.stuck = None;
            self.send_older(state);
        }
        if state.is_applying() {
            // With too much ahead of the database, callers wait for it.
            let done = if state.is_far() {
                self.done.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                self.done.try_recv()
            };
            match done {
                Ok(done) => self.note_done(state, done),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.lose_applier(state),
            }
        }
        state.answer_settlers(self.progress.applied());
        if state.older.is_none() && state.is_due() {
            self.hand_over(state);
        }
    }

    fn hand_over(&mut self, state: &mut State) {
        if let Err(error) = self.database.check() {
            // What would be acknowledged from now on would not be where it is looked for.
            state.get_stuck(error.clone());
            return self.stop(state, &error);
        }
        let newer = Arc::new(std::mem::take(&mut state.newer));
        state.since = None;
        let is_durable = self.redo.unreleased_bytes() >= UNSYNCED_BYTES;
        state.older = Some((newer, is_durable));
        self.send_older(state);
    }

    pub(super) fn send_older(&mut self, state: &mut State) {
        let Some((ahead, is_durable)) = state.older.clone() else { return };
        if self.tasks.send(Task::Apply { ahead, is_durable }).is_err() {
            self.lose_applier(state);
        }
    }

    fn note_done(&mut self, state: &mut State, done: Done) {
        let Some((older, is_durable)) = state.older.take() else { return };
        match done {
            Done::Applied(Ok(())) => {
                self.progress.set_applied(older.lsn);
                if is_durable {
                    self.redo.release(older.lsn);
                }
                state.is_short = self.room.is_short();
                self.health.took();
            }
            Done::Applied(Err(Broken { reach, error })) => {
                // It stays ahead of the database and is in the redo file.
                self.health.refused(&error, 0);
                if !matches!(error, Error::Full { .. }) {
                    tracing::error!(%error, "the database does not take what was answered");
                }
                state.older = Some((older, is_durable));
                state.get_stuck(error.clone());
                if reach != Reach::Batch {
                    self.stop(state, &error);
                }
            }
            Done::Direct(_) | Done::Looked | Done::Finished { .. } => self.lose_applier(state),
        }
    }

    /// The thread has ended, or does not do what it is told.
    pub(super) fn lose_applier(&mut self, state: &mut State) {
        state.get_stuck(gone());
        self.stop(state, &gone());
    }

    /// Waits until the database has everything, to write more. An error if it does not take it, or nothing is to be written.
    pub(super) fn catch_up(&mut self, state: &mut State) -> Result<(), Error> {
        if let Some(reason) = &state.stop {
            return Err(reason.clone());
        }
        self.flush(state)
    }

    /// The same to read.
    pub(super) fn flush(&mut self, state: &mut State) -> Result<(), Error> {
        loop {
            if let Some(stuck) = &state.stuck {
                return Err(stuck.error.clone());
            }
            if state.older.is_none() {
                if state.newer.is_empty() {
                    state.answer_settlers(self.progress.applied());
                    return Ok(());
                }
                self.hand_over(state);
                if state.older.is_none() {
                    // It was not handed over: the thread waits for a task and has nothing to report.
                    continue;
                }
            }
            match self.done.recv() {
                Ok(done) => self.note_done(state, done),
                Err(_) => self.lose_applier(state),
            }
        }
    }

    /// Through to the disk, past the redo file. What the database does not take has not happened.
    pub(super) fn apply_now(&mut self, state: &mut State, ahead: Ahead) -> Result<(), Broken> {
        let task = Task::Apply { ahead: Arc::new(ahead), is_durable: true };
        let done = self.tasks.send(task).ok().and_then(|()| self.done.recv().ok());
        state.is_short = self.room.is_short();
        match done {
            Some(Done::Applied(applied)) => {
                if applied.is_ok() {
                    self.redo.release(self.redo.last());
                }
                match applied {
                    Ok(()) if self.sabotage.reports_commit_errors() => {
                        Err(Broken { reach: Reach::Store, error: unavailable("sabotage") })
                    }
                    applied => applied,
                }
            }
            Some(_) | None => Err(Broken { reach: Reach::Store, error: gone() }),
        }
    }
}
