//! The one thread that writes. It drains the queue a group at a time, runs every job of the group in one physical
//! transaction, commits, and only then answers.
//!
//! A refused job takes back its own work and no other's. An error of the database ends the group: nobody in it has
//! written anything. An error of the disk ends all writing until the store is opened again.

mod checkpoint;
pub(crate) mod counts;
pub(crate) mod heads;
pub(crate) mod job;
pub(crate) mod queue;
pub(crate) mod tx;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use servo_model::limits::Limits;
use servo_store::{Error, Result, TimeSource};

use crate::error::{Fault, Reach, corrupt, judge, os_error, unavailable};
use crate::kept::Kept;
use crate::lock::Lock;
use crate::open::BUSY_TIMEOUT;
use crate::sabotage::Sabotage;
use crate::sql::admin;
use crate::stats::Counters;
use crate::tail::{Grown, Tail};
use checkpoint::Checkpoints;
use counts::Counts;
use heads::Heads;
use job::{Call, Job, Nature};
use queue::{Gather, Next, Pace, Queue};
use tx::Tx;

/// Longest wait for a group to gather. It is also never longer than half of what the last commit took, so that it pays
/// where syncs are slow and does no harm where they are fast.
const GATHER_MAX: Duration = Duration::from_micros(300);
/// A group of so many is not waited for: it shares the price of a sync well enough, and those who are still on their way
/// run while it is written. With a group of everybody the writer and everybody else would take turns.
const ENOUGH: usize = 8;

pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) queue: Arc<Queue>,
    pub(crate) limits: Limits,
    pub(crate) time: TimeSource,
    pub(crate) sabotage: Sabotage,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) group_commit: bool,
    /// The threads that read; they end before the file is closed.
    pub(crate) readers: Vec<JoinHandle<()>>,
    pub(crate) lock: Lock,
}

/// What the thread keeps between groups.
#[derive(Default)]
struct State {
    heads: Heads,
    checkpoints: Checkpoints,
    /// Runs were deleted whose events are still leaving.
    has_leftovers: bool,
    stopped: bool,
}

/// How a job came out inside its group.
enum Outcome {
    Kept,
    Refused(Error),
}

/// Why a group was given up.
struct Broken {
    reach: Reach,
    error: Error,
}

impl Writer {
    /// Runs until the store is closed.
    pub(crate) fn run(self) {
        // If this thread panics, nobody must wait for it forever.
        let _end = EndOfWriter(self.queue.clone());
        // An unreadable flag only means that the leftovers are found at the next retention.
        let mut state = State { has_leftovers: admin::has_leftovers(&self.conn).unwrap_or(false), ..State::default() };
        let (mut gather, mut pace) = (Gather::default(), Pace::default());
        let jobs_max = if self.group_commit { usize::MAX } else { 1 };
        loop {
            gather.has_other_work = state.has_leftovers && !state.stopped;
            match self.queue.next(gather, jobs_max, &mut pace) {
                Next::Batch(jobs) => {
                    let answered = jobs.len();
                    let took = self.commit(&mut state, jobs);
                    // Whoever waits already and whoever was answered just now: those may make up the next group.
                    let jobs = answered + self.queue.len();
                    gather =
                        Gather { jobs: jobs.min(ENOUGH), patience: GATHER_MAX.min(took / 2), has_other_work: false };
                }
                Next::Idle => {
                    gather = Gather::default();
                    self.purge_leftovers(&mut state);
                }
                Next::Closed(closer) => {
                    let closed = self.finish(&state);
                    if let Some(closer) = closer {
                        let _ = closer.send(closed);
                    }
                    return;
                }
            }
            self.checkpoint(&mut state, gather.jobs <= 1);
        }
    }

    /// One physical transaction. Says how long its commit took.
    fn commit(&self, state: &mut State, mut jobs: Vec<Box<dyn Job>>) -> Duration {
        self.counters.answered(jobs.len());
        crashpoint!("sqlite.append.before_begin");
        let (outcomes, grown) = match self.run_jobs(state, &mut jobs) {
            Ok(ran) => ran,
            Err(broken) => {
                self.give_up(state, jobs, &broken, false);
                return Duration::ZERO;
            }
        };
        let anything = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Kept));
        if !anything {
            self.roll_back();
            answer(jobs, outcomes);
            return Duration::ZERO;
        }
        crashpoint!("sqlite.append.before_commit");
        if self.sabotage.acks_before_commit() {
            answer(std::mem::take(&mut jobs), outcomes);
            Sabotage::dawdle();
            let _ = self.execute("COMMIT");
            self.tail.clear();
            self.kept.settle();
            return Duration::ZERO;
        }
        let start = Instant::now();
        let mut committed = self.execute("COMMIT");
        if self.sabotage.reports_commit_errors() {
            committed =
                Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC), None));
        }
        if let Err(error) = committed {
            let (reach, error) = judge(&error, os_error(&self.conn));
            // A commit that ran out of space has written no commit record. Any other failure leaves the question open.
            let reach = if reach == Reach::Batch && matches!(error, Error::Full { .. }) { reach } else { Reach::Store };
            self.give_up(state, jobs, &Broken { reach, error }, true);
            return Duration::ZERO;
        }
        crashpoint!("sqlite.append.after_commit");
        let took = start.elapsed();
        self.counters.committed();
        self.tail.grow(grown);
        self.kept.settle();
        answer(jobs, outcomes);
        took
    }

    fn run_jobs(
        &self,
        state: &mut State,
        jobs: &mut [Box<dyn Job>],
    ) -> std::result::Result<(Vec<Outcome>, Grown), Broken> {
        self.execute("BEGIN IMMEDIATE").map_err(|error| self.broken(&error))?;
        let alone = jobs.len() == 1;
        let mut sums = (Counts::default(), Grown::default());
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            outcomes.push(self.run_job(state, job.as_mut(), alone, &mut sums)?);
        }
        let (counts, grown) = sums;
        counts.flush(&self.conn).map_err(|error| self.broken(&error))?;
        Ok((outcomes, grown))
    }

    /// A job alone in its transaction needs no savepoint: what it did is taken back with the transaction.
    fn run_job(
        &self,
        state: &mut State,
        job: &mut dyn Job,
        alone: bool,
        (counts, grown): &mut (Counts, Grown),
    ) -> std::result::Result<Outcome, Broken> {
        let guarded = !alone && job.nature().may_fail_late;
        if guarded {
            self.execute("SAVEPOINT job").map_err(|error| self.broken(&error))?;
        }
        let mut tx = Tx::new(&self.conn, &mut state.heads, (self.time)(), &self.limits, self.sabotage);
        let ran = job.run(&mut tx);
        state.has_leftovers |= tx.leaves_leftovers();
        let error = match ran {
            Ok(()) => {
                let (counted, appended) = tx.keep();
                counts.merge(counted);
                grown.merge(appended);
                if guarded {
                    self.execute("RELEASE job").map_err(|error| self.broken(&error))?;
                }
                return Ok(Outcome::Kept);
            }
            Err(fault) => {
                tx.take_back();
                let Broken { reach, error } = match fault {
                    Fault::Refused(error) => Broken { reach: Reach::Job, error },
                    Fault::Sql(error) => self.broken(&error),
                };
                // Damage is met anywhere; without a savepoint there is no telling what had been written before.
                let half_done = matches!(error, Error::Corrupt { .. }) && !guarded && !alone;
                if reach != Reach::Job || half_done || self.conn.is_autocommit() {
                    return Err(Broken { reach: reach.max(Reach::Batch), error });
                }
                error
            }
        };
        if guarded {
            self.execute("ROLLBACK TO job").and_then(|()| self.execute("RELEASE job")).map_err(|e| self.broken(&e))?;
        }
        Ok(Outcome::Refused(error))
    }

    /// Nobody in the group has written anything, or (after a failed commit) nobody can say.
    fn give_up(&self, state: &mut State, jobs: Vec<Box<dyn Job>>, broken: &Broken, in_commit: bool) {
        self.roll_back();
        state.heads.clear();
        let error = match (&broken.error, broken.reach) {
            (error, Reach::Store) => {
                let detail = error.to_string();
                let stopped = format!("writing has stopped after an error of the disk, open the store again: {detail}");
                tracing::error!(%detail, "the disk reported an error; the store takes no more writes");
                self.stop(state, &unavailable(stopped));
                Error::Unavailable { detail, maybe_written: in_commit }
            }
            (Error::Corrupt { detail }, _) => corrupt(format!("the transaction was given up: {detail}")),
            (error, _) => error.clone(),
        };
        for job in jobs {
            job.answer(Some(error.clone()));
        }
    }

    fn stop(&self, state: &mut State, reason: &Error) {
        state.stopped = true;
        // The log stays as it is for whoever opens the store next: copying it now could make a commit look durable
        // that the disk has lost.
        let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        for job in self.queue.stop(reason.clone()) {
            job.answer(Some(reason.clone()));
        }
    }

    /// Removes some events of runs that were deleted, while nobody waits.
    fn purge_leftovers(&self, state: &mut State) {
        let (job, mut done) = Call::prepare(Nature::SMALL, admin::purge_some);
        state.has_leftovers = false;
        self.commit(state, vec![job]);
        state.has_leftovers = match done.try_recv() {
            Ok(Ok(has_more)) => has_more,
            Ok(Err(error)) => {
                // No point in trying again at once; the next deletion, retention or start does.
                tracing::warn!(%error, "the events of a deleted run could not be removed");
                false
            }
            Err(_) => false,
        };
    }

    /// `is_idle`: at most one caller is around, and it has its answer.
    fn checkpoint(&self, state: &mut State, is_idle: bool) {
        if state.stopped {
            return;
        }
        match state.checkpoints.run_if_due(&self.conn, is_idle, BUSY_TIMEOUT) {
            Ok(true) => self.counters.checkpointed(),
            Ok(false) => {}
            Err(error) => {
                let broken = self.broken(&error);
                let detail = broken.error.to_string();
                if broken.reach == Reach::Store {
                    tracing::error!(%detail, "the disk reported an error while the log was copied");
                    self.stop(state, &unavailable(format!("writing has stopped after an error of the disk: {detail}")));
                } else {
                    // Nothing is lost: the log has it, and the next time may find room.
                    tracing::warn!(%detail, "the log could not be copied into the file");
                }
            }
        }
    }

    fn finish(self, state: &State) -> Result<()> {
        for reader in self.readers {
            // A reader that panicked has told its caller already.
            let _ = reader.join();
        }
        let mut result = Ok(());
        if !state.stopped {
            crashpoint!("sqlite.close.before_checkpoint");
            if let Err(error) = checkpoint::truncate(&self.conn) {
                let (reach, error) = judge(&error, os_error(&self.conn));
                tracing::warn!(%error, "the log could not be copied into the file; the next start will do it");
                if reach == Reach::Store {
                    result = Err(error);
                }
            }
        }
        if let Err((_, error)) = self.conn.close() {
            result = result.and(Err(judge(&error, 0).1));
        }
        drop(self.lock);
        result
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    fn roll_back(&self) {
        // SQLite may have rolled back by itself.
        if !self.conn.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::warn!(%error, "rollback");
        }
    }

    fn broken(&self, error: &rusqlite::Error) -> Broken {
        let (reach, error) = judge(error, os_error(&self.conn));
        Broken { reach, error }
    }
}

fn answer(jobs: Vec<Box<dyn Job>>, outcomes: Vec<Outcome>) {
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        match outcome {
            Outcome::Kept => job.answer(None),
            Outcome::Refused(error) => job.answer(Some(error)),
        }
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
