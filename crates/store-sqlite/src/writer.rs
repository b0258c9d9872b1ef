//! The thread that decides and answers. It drains the queue a group at a time, decides every job of the group on what it
//! knows, writes what they change into the redo file, and only then answers. Another thread, the applier, puts it into
//! the database, many groups at once.
//!
//! A refused job takes back its own work and no other's. An error of the disk ends all writing until the store is opened
//! again.

pub(crate) mod append;
pub(crate) mod applier;
mod checkpoint;
pub(crate) mod counts;
mod follow;
pub(crate) mod job;
mod keys;
pub(crate) mod queue;
mod recent;
pub(crate) mod room;
mod state;
pub(crate) mod tx;
pub(crate) mod view;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use servo_model::limits::Limits;
use servo_store::{Error, Result, TimeSource};

use crate::ahead::change::Change;
use crate::ahead::{Ahead, codec};
use crate::error::{Reach, no_space, unavailable};
use crate::health::Health;
use crate::lock::Lock;
use crate::own::Same;
use crate::progress::Progress;
use crate::redo::Redo;
use crate::sabotage::Sabotage;
use crate::sql::admin;
use crate::stats::Counters;
use crate::tail::Tail;
use applier::{Broken, Direct, Done, Task};
use job::{Decide, Job, Look, Nature, Write};
use queue::{Gather, Next, Pace, Queue};
use room::Room;
use state::State;
use view::{Place, View};

/// Longest wait for a group to gather. It is also never longer than what the last commit took, so that it pays where syncs
/// are slow and does little harm where they are fast.
const GATHER_MAX: Duration = Duration::from_micros(300);
/// A group of so many is not waited for: it shares the price of a sync well enough, and those who are still on their way
/// run while it is written. With a group of everybody the writer and everybody else would take turns.
const ENOUGH: usize = 24;

pub(crate) struct Writer {
    /// Reads the database as it is.
    pub(crate) conn: Connection,
    pub(crate) database: Same,
    pub(crate) redo: Redo,
    pub(crate) queue: Arc<Queue>,
    pub(crate) limits: Limits,
    pub(crate) time: TimeSource,
    pub(crate) sabotage: Sabotage,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) health: Arc<Health>,
    pub(crate) room: Room,
    pub(crate) group_commit: bool,
    /// The applier: its tasks, what became of them, and its thread.
    pub(crate) tasks: Sender<Task>,
    pub(crate) done: Receiver<Done>,
    pub(crate) applier: JoinHandle<()>,
    /// The threads that read; they end before the file is closed.
    pub(crate) readers: Vec<JoinHandle<()>>,
    pub(crate) lock: Lock,
}

impl Writer {
    /// Runs until the store is closed.
    pub(crate) fn run(mut self) {
        // If this thread panics, nobody must wait for it forever.
        let _end = EndOfWriter(self.queue.clone());
        let is_short = self.room.is_short();
        // An unreadable flag only means that the leftovers are found at the next retention.
        let has_leftovers = admin::has_leftovers(&self.conn).unwrap_or(false);
        let noted = self.redo.generation();
        let mut state = State { is_short, has_leftovers, noted, ..State::default() };
        let (mut gather, mut pace) = (Gather::default(), Pace::default());
        let jobs_max = if self.group_commit { usize::MAX } else { 1 };
        loop {
            self.look_after_applier(&mut state);
            gather.other_work_in = state.other_work_in();
            match self.queue.next(gather, jobs_max, &mut pace) {
                Next::Batch(jobs) => {
                    let answered = jobs.len();
                    let took = self.serve(&mut state, jobs);
                    // Whoever waits already and whoever was answered just now: those may make up the next group.
                    let jobs = (answered + self.queue.len()).min(ENOUGH);
                    gather = Gather { jobs, patience: GATHER_MAX.min(took), other_work_in: None };
                }
                Next::Idle => {
                    gather = Gather::default();
                    if state.has_leftovers && !state.is_stopped() && state.newer.is_empty() {
                        self.purge_leftovers(&mut state);
                    }
                }
                Next::Closed(closer) => {
                    let closed = self.finish(&mut state);
                    if let Some(closer) = closer {
                        let _ = closer.send(closed);
                    }
                    return;
                }
            }
        }
    }

    /// Says how long the commit took.
    fn serve(&mut self, state: &mut State, jobs: Vec<Job>) -> Duration {
        self.counters.answered(jobs.len());
        let (mut ahead, mut direct, mut looks) = (Vec::with_capacity(jobs.len()), Vec::new(), Vec::new());
        for job in jobs {
            match job {
                Job::Ahead(job) => ahead.push(job),
                Job::Direct(job) => direct.push(job),
                Job::Settle(lsn, waiter) => state.settlers.push((lsn, waiter)),
                Job::Look(look) => looks.push(look),
            }
        }
        let mut took = Duration::ZERO;
        if !ahead.is_empty() {
            took = self.commit(state, ahead);
        }
        if !direct.is_empty() {
            self.run_direct(state, direct);
        }
        if !looks.is_empty() {
            self.look(state, looks);
        }
        if let Some(stuck) = &state.stuck {
            let error = stuck.error.clone();
            state.fail_settlers(&error);
        }
        took
    }

    /// Decides a group, makes its changes durable, and answers.
    fn commit(&mut self, state: &mut State, mut jobs: Vec<Box<dyn Decide>>) -> Duration {
        crashpoint!("sqlite.append.before_begin");
        if let Some(stuck) = &state.stuck {
            return self.refuse(jobs, &stuck.error);
        }
        if state.is_short
            && let Err(error) = self.catch_up(state)
        {
            return self.refuse(jobs, &error);
        }
        let mut changes = Vec::new();
        let refusals = self.decide(state, &mut jobs, &mut changes);
        if changes.is_empty() {
            answer(jobs, refusals);
            return Duration::ZERO;
        }
        crashpoint!("sqlite.append.before_commit");
        if self.sabotage.acks_before_commit() {
            answer(std::mem::take(&mut jobs), refusals);
            Sabotage::dawdle();
            let _ = self.keep(state, changes);
            return Duration::ZERO;
        }
        let start = Instant::now();
        if let Err(broken) = self.keep(state, changes) {
            return self.give_up(state, jobs, &broken);
        }
        crashpoint!("sqlite.append.after_commit");
        let took = start.elapsed();
        self.counters.committed();
        self.health.took();
        answer(jobs, refusals);
        took
    }

    /// Each job's refusal, if it is refused.
    fn decide(&self, state: &mut State, jobs: &mut [Box<dyn Decide>], changes: &mut Vec<Change>) -> Vec<Option<Error>> {
        let place = Place {
            conn: &self.conn,
            newer: &state.newer,
            older: state.older.as_ref().map(|(older, _)| older.as_ref()),
            limits: &self.limits,
            sabotage: self.sabotage,
        };
        let mut refusals = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut view = View::new(&place, &mut state.memory, changes, (self.time)());
            refusals.push(job.decide(&mut view).err().map(|fault| {
                view.take_back();
                fault.into_error(&self.conn)
            }));
        }
        refusals
    }

    /// Makes changes durable, and everybody's.
    fn keep(&mut self, state: &mut State, changes: Vec<Change>) -> std::result::Result<(), Broken> {
        let grown = changes.iter().filter_map(|change| match change {
            Change::Event { event, .. } => Some(event.clone()),
            _ => None,
        });
        let grown: Vec<_> = grown.collect();
        let mut is_opening = false;
        for change in &changes {
            is_opening |= state.opens(change);
        }
        if state.is_short {
            let mut ahead = Ahead { lsn: self.redo.last(), ..Ahead::default() };
            changes.into_iter().for_each(|change| ahead.absorb(change));
            self.apply_now(state, ahead)?;
        } else {
            self.write_redo(state, &changes)?;
            let lsn = self.redo.last();
            if !self.sabotage.forgets_what_changed() {
                self.progress.touch(&changes, lsn);
            }
            state.newer.lsn = lsn;
            if self.redo.generation() != state.noted {
                state.noted = self.redo.generation();
                state.newer.redo = Some(state.noted);
            }
            state.since.get_or_insert_with(Instant::now);
            changes.into_iter().for_each(|change| state.newer.absorb(change));
            self.progress.set_answered(lsn, is_opening.then_some(state.epoch));
        }
        self.tail.grow(grown);
        Ok(())
    }

    fn write_redo(&mut self, state: &mut State, changes: &[Change]) -> std::result::Result<(), Broken> {
        state.body.clear();
        changes.iter().for_each(|change| codec::put(&mut state.body, change));
        let written = self.redo.append(&state.body).map(|_| ());
        let written = match written {
            Ok(()) if self.sabotage.reports_commit_errors() => Err(std::io::Error::other("sabotage")),
            written => written,
        };
        written.map_err(|error| {
            let detail = format!("the redo file: {error}");
            // It says so only where the record is not there. A sync that finds the disk full is another error.
            if no_space(&error) {
                Broken { reach: Reach::Batch, error: Error::Full { detail } }
            } else {
                Broken { reach: Reach::Store, error: unavailable(detail) }
            }
        })
    }

    /// Nobody in the group has an answer that must be taken back; whether its changes are durable, nobody can say after an
    /// error of the disk.
    fn give_up(&mut self, state: &mut State, jobs: Vec<Box<dyn Decide>>, broken: &Broken) -> Duration {
        state.memory.clear();
        let error = match broken.reach {
            Reach::Store => {
                self.stop(state, &broken.error);
                // Readers go on with what was answered before, if the disk lets them.
                let _ = self.flush(state);
                Error::Unavailable { detail: broken.error.to_string(), maybe_written: true }
            }
            Reach::Job | Reach::Batch => broken.error.clone(),
        };
        self.refuse(jobs, &error)
    }

    fn refuse(&self, jobs: Vec<Box<dyn Decide>>, error: &Error) -> Duration {
        self.health.refused(error, jobs.len());
        for job in jobs {
            job.answer(Some(error.clone()));
        }
        Duration::ZERO
    }

    fn stop(&self, state: &mut State, error: &Error) {
        let detail = error.to_string();
        self.health.stop(error);
        let reason =
            unavailable(format!("writing has stopped after an error of the disk, open the store again: {detail}"));
        state.stop = Some(reason.clone());
        for job in self.queue.stop(reason.clone()) {
            job.refuse(reason.clone());
        }
    }

    /// Jobs that work in the database need all that is ahead of it to be there.
    fn run_direct(&mut self, state: &mut State, jobs: Vec<Box<dyn Write>>) {
        if let Err(error) = self.catch_up(state) {
            self.health.refused(&error, jobs.len());
            jobs.into_iter().for_each(|job| job.answer(Some(error.clone())));
            return;
        }
        // Dropping a job tells its waiter that the outcome is unknown.
        let _ = self.tasks.send(Task::Direct(jobs));
        match self.done.recv() {
            Ok(Done::Direct(Direct { has_leftovers, changes_runs, stop })) => {
                state.has_leftovers |= has_leftovers;
                if changes_runs || stop.is_some() {
                    state.memory.clear();
                }
                if let Some(error) = stop {
                    self.stop(state, &error);
                }
            }
            Ok(_) | Err(_) => self.lose_applier(state),
        }
    }

    /// Reads all that was answered. What the database has no room for is put there for as long as that takes, and taken back.
    fn look(&mut self, state: &mut State, looks: Vec<Look>) {
        let unseen = match self.flush(state) {
            Ok(()) => Vec::new(),
            Err(Error::Full { .. }) if !state.is_stopped() => state.unseen(),
            Err(error) => return looks.into_iter().for_each(|look| look(Err(error.clone()))),
        };
        // Dropping one tells its reader that there is no answer.
        let _ = self.tasks.send(Task::Look { unseen, looks });
        match self.done.recv() {
            Ok(Done::Looked) => {}
            Ok(_) | Err(_) => self.lose_applier(state),
        }
    }

    /// Removes some events of runs that were deleted, while nobody waits.
    fn purge_leftovers(&mut self, state: &mut State) {
        let (job, mut purged) = job::direct(Nature::SMALL, admin::purge_some);
        state.has_leftovers = false;
        self.run_direct(state, vec![job]);
        state.has_leftovers = match purged.try_recv() {
            Ok(Ok(has_more)) => has_more,
            Ok(Err(error)) => {
                // No point in trying again at once; the next deletion, retention or start does.
                if !matches!(error, Error::Full { .. }) {
                    tracing::warn!(%error, "the events of a deleted run could not be removed");
                }
                false
            }
            Err(_) => false,
        };
    }

    fn finish(mut self, state: &mut State) -> Result<()> {
        // Once more, if it was refused before. Nobody does it after an error of the disk, and nobody waits for it.
        if !state.is_stopped() && state.stuck.take().is_some() {
            self.send_older(state);
        }
        let is_caught_up = self.flush(state).is_ok();
        // After an error of the disk the redo file may hold more than was answered; and in a folder's place may stand another.
        let is_done_with = is_caught_up && !state.is_stopped() && self.database.check().is_ok();
        state.fail_settlers(&Error::Closed);
        for reader in self.readers {
            // A reader that panicked has told its caller already.
            let _ = reader.join();
        }
        let mut result = Ok(());
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "close");
        }
        let _ = self.tasks.send(Task::Finish { is_done_with });
        if let Ok(Done::Finished { result: finished, is_whole }) = self.done.recv() {
            result = finished;
            if is_whole
                && is_done_with
                && let Err(error) = self.redo.remove()
            {
                tracing::warn!(%error, "the redo file could not be removed; the next start will read it");
            }
        }
        let _ = self.applier.join();
        drop(self.lock);
        result
    }
}

fn gone() -> Error {
    unavailable("the thread that writes the database has ended")
}

fn answer(jobs: Vec<Box<dyn Decide>>, refusals: Vec<Option<Error>>) {
    for (job, refusal) in jobs.into_iter().zip(refusals) {
        job.answer(refusal);
    }
}

struct EndOfWriter(Arc<Queue>);

impl Drop for EndOfWriter {
    fn drop(&mut self) {
        if !self.0.is_closing() {
            // Dropping a job tells its waiter that the outcome is unknown.
            drop(self.0.stop(unavailable("the writer has ended")));
        }
    }
}
