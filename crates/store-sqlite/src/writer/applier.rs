//! The thread that writes the database. The writer hands it what is ahead of the database, and jobs that work in the
//! database itself; it does one thing after the other, and copies SQLite's own log into the file in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use servo_model::limits::Limits;
use servo_store::{Error, Result, TimeSource};

use super::checkpoint::{self, Checkpoints};
use super::counts::Counts;
use super::job::{Look, Write};
use super::queue::Queue;
use super::tx::Tx;
use crate::ahead::Ahead;
use crate::error::{Fault, Reach, corrupt, judge, os_error, unavailable};
use crate::health::Health;
use crate::kept::Kept;
use crate::open::BUSY_TIMEOUT;
use crate::sabotage::Sabotage;
use crate::stats::Counters;
use crate::tail::Tail;
use crate::{apply, open};

/// A log that the file had no room for is copied again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Applier {
    conn: Connection,
    shared: Shared,
    /// What commits are now.
    is_durable: bool,
    checkpoints: Checkpoints,
    /// The file has no room for the log; when it had none the last time.
    no_room_at: Option<Instant>,
    is_stopped: bool,
}

pub(crate) enum Task {
    /// `is_durable`: on the disk before it is done.
    Apply { ahead: Arc<Ahead>, is_durable: bool },
    /// All in one transaction, durable when they are answered.
    Direct(Vec<Box<dyn Write>>),
    /// Reads of the database as it will be with all of this.
    Look { unseen: Vec<Arc<Ahead>>, looks: Vec<Look> },
    /// The file is closed. `is_done_with`: the redo file goes after this.
    Finish { is_done_with: bool },
}

/// Why a transaction was given up.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub(crate) reach: Reach,
    pub(crate) error: Error,
}

#[derive(Debug)]
pub(crate) enum Done {
    Applied(std::result::Result<(), Broken>),
    Direct(Direct),
    Looked,
    /// `is_whole`: the file alone is the store now.
    Finished {
        result: Result<()>,
        is_whole: bool,
    },
}

/// How a group of direct jobs went. All of them are answered.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    /// Runs were deleted whose events are still leaving.
    pub(crate) has_leftovers: bool,
    /// What the writer remembers of runs is not so any more.
    pub(crate) changes_runs: bool,
    /// The disk reported an error.
    pub(crate) stop: Option<Error>,
}

/// What it shares with the writer.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) time: TimeSource,
    pub(crate) sabotage: Sabotage,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<Health>,
}

impl Applier {
    /// With a connection as `open` leaves it.
    pub(crate) fn new(conn: Connection, shared: Shared) -> Result<Self> {
        let checkpoints = Checkpoints::of(&conn).map_err(|error| judge(&error, os_error(&conn)).1)?;
        Ok(Self { conn, shared, is_durable: true, checkpoints, no_room_at: None, is_stopped: false })
    }

    /// Runs until it is told to finish, or nobody is there to tell it.
    pub(crate) fn run(mut self, tasks: &Receiver<Task>, done: &Sender<Done>) {
        while let Ok(task) = tasks.recv() {
            let mut applied = None;
            let answer = match task {
                Task::Apply { ahead, is_durable } => {
                    let answer = Done::Applied(self.apply(&ahead, is_durable));
                    applied = Some(ahead);
                    answer
                }
                Task::Direct(jobs) => Done::Direct(self.direct(jobs)),
                Task::Look { unseen, looks } => {
                    self.look(&unseen, looks);
                    Done::Looked
                }
                Task::Finish { is_done_with } => {
                    let _ = done.send(self.finish(is_done_with));
                    return;
                }
            };
            let is_told = done.send(answer).is_ok();
            self.shared.queue.nudge();
            if !is_told {
                return;
            }
            self.checkpoint();
            if self.is_stopped {
                self.shared.queue.nudge();
            }
            // By now the writer has let go of it. Freeing thousands of rows is for this thread, not for the one that answers.
            drop(applied);
        }
    }

    fn apply(&mut self, ahead: &Ahead, is_durable: bool) -> std::result::Result<(), Broken> {
        self.check_disk()?;
        self.set_durable(is_durable).map_err(|error| self.broken(&error))?;
        let applied = self.execute("BEGIN IMMEDIATE").map_err(Fault::from);
        let applied = applied.and_then(|()| apply::apply(&self.conn, ahead, &self.shared.limits, self.shared.sabotage));
        crashpoint!("sqlite.apply.before_commit");
        let applied = applied.and_then(|()| Ok(self.execute("COMMIT")?));
        if let Err(fault) = applied {
            let broken = match fault {
                Fault::Refused(error) => Broken { reach: Reach::Batch, error },
                Fault::Sql(error) => self.broken(&error),
            };
            self.roll_back();
            self.stop_if(&broken);
            return Err(broken);
        }
        crashpoint!("sqlite.apply.after_commit");
        Ok(())
    }

    /// Nothing more is written after an error of the disk: a later sync could report success for what it has lost.
    fn check_disk(&self) -> std::result::Result<(), Broken> {
        if self.is_stopped {
            let error = unavailable("the disk has reported an error before");
            return Err(Broken { reach: Reach::Store, error });
        }
        Ok(())
    }

    /// A durable commit also makes all earlier ones durable: they are in the same log.
    fn set_durable(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        if self.is_durable != is_durable {
            open::set_synchronous(&self.conn, is_durable, self.shared.sabotage)?;
            self.is_durable = is_durable;
        }
        Ok(())
    }

    /// One physical transaction of jobs that work in the database.
    fn direct(&mut self, mut jobs: Vec<Box<dyn Write>>) -> Direct {
        let mut direct = Direct::default();
        let (refusals, breaks_log) = match self.run_jobs(&mut jobs, &mut direct) {
            Ok(ran) => ran,
            Err(broken) => return self.give_up(direct, jobs, &broken, false),
        };
        if !refusals.iter().any(Option::is_none) {
            self.roll_back();
            answer(jobs, refusals);
            return direct;
        }
        crashpoint!("sqlite.direct.before_commit");
        let mut committed = self.execute("COMMIT");
        if self.shared.sabotage.reports_commit_errors() {
            committed =
                Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC), None));
        }
        if let Err(error) = committed {
            let (reach, error) = judge(&error, os_error(&self.conn));
            // A commit that ran out of space has written no commit record. Any other failure leaves the question open.
            let reach = if reach == Reach::Batch && matches!(error, Error::Full { .. }) { reach } else { Reach::Store };
            return self.give_up(direct, jobs, &Broken { reach, error }, true);
        }
        crashpoint!("sqlite.direct.after_commit");
        self.shared.counters.committed();
        self.shared.health.took();
        if breaks_log {
            self.shared.tail.clear();
        }
        self.shared.kept.settle();
        answer(jobs, refusals);
        direct
    }

    fn run_jobs(
        &mut self,
        jobs: &mut [Box<dyn Write>],
        direct: &mut Direct,
    ) -> std::result::Result<(Vec<Option<Error>>, bool), Broken> {
        self.check_disk()?;
        self.set_durable(true).map_err(|error| self.broken(&error))?;
        self.execute("BEGIN IMMEDIATE").map_err(|error| self.broken(&error))?;
        let alone = jobs.len() == 1;
        let (mut counts, mut breaks_log) = (Counts::default(), false);
        let mut refusals = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut tx = Tx::new(&self.conn, (self.shared.time)());
            refusals.push(self.run_job(job.as_mut(), &mut tx, alone)?);
            direct.has_leftovers |= tx.leaves_leftovers();
            direct.changes_runs |= tx.breaks_log || tx.changes_runs;
            if matches!(refusals.last(), Some(None)) {
                breaks_log |= tx.breaks_log;
                counts.merge(tx.counts);
            }
        }
        counts.flush(&self.conn).map_err(|error| self.broken(&error))?;
        Ok((refusals, breaks_log))
    }

    /// A job alone in its transaction needs no savepoint: what it did is taken back with the transaction.
    fn run_job(&self, job: &mut dyn Write, tx: &mut Tx<'_>, alone: bool) -> std::result::Result<Option<Error>, Broken> {
        let guarded = !alone && job.nature().may_fail_late;
        if guarded {
            self.execute("SAVEPOINT job").map_err(|error| self.broken(&error))?;
        }
        let error = match job.run(tx) {
            Ok(()) => {
                if guarded {
                    self.execute("RELEASE job").map_err(|error| self.broken(&error))?;
                }
                return Ok(None);
            }
            Err(fault) => {
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
        Ok(Some(error))
    }

    /// Nobody in the group has written anything, or (after a failed commit) nobody can say.
    fn give_up(&mut self, mut direct: Direct, jobs: Vec<Box<dyn Write>>, broken: &Broken, in_commit: bool) -> Direct {
        self.roll_back();
        self.stop_if(broken);
        let error = match (&broken.error, broken.reach) {
            (error, Reach::Store) => {
                let detail = error.to_string();
                direct.stop = Some(error.clone());
                Error::Unavailable { detail, maybe_written: in_commit }
            }
            (Error::Corrupt { detail }, _) => corrupt(format!("the transaction was given up: {detail}")),
            (error, _) => error.clone(),
        };
        self.shared.health.refused(&error, jobs.len());
        for job in jobs {
            job.answer(Some(error.clone()));
        }
        direct
    }

    /// Nothing of this comes to the disk: the transaction is kept in memory, and taken back.
    fn look(&self, unseen: &[Arc<Ahead>], looks: Vec<Look>) {
        let begun = self.begin_look(unseen).map_err(|fault| fault.into_error(&self.conn));
        for look in looks {
            let conn = begun.clone().map(|()| &self.conn);
            // A panic is a bug of the read's; its caller is told by what it drops.
            let _ = catch_unwind(AssertUnwindSafe(|| look(conn)));
        }
        self.roll_back();
        if let Err(error) = self.conn.pragma_update(None, "cache_spill", true) {
            tracing::warn!(%error, "the cache keeps all pages that change");
        }
    }

    fn begin_look(&self, unseen: &[Arc<Ahead>]) -> std::result::Result<(), Fault> {
        self.conn.pragma_update(None, "cache_spill", false)?;
        self.execute("BEGIN IMMEDIATE")?;
        for ahead in unseen {
            apply::apply(&self.conn, ahead, &self.shared.limits, self.shared.sabotage)?;
        }
        Ok(())
    }

    /// After an error of the disk SQLite's log stays as it is for whoever opens the store next: copying it now could make
    /// a commit look durable that the disk has lost.
    fn stop_if(&mut self, Broken { reach, error }: &Broken) {
        if *reach == Reach::Store {
            self.is_stopped = true;
            self.shared.health.stop(error);
            let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    fn checkpoint(&mut self) {
        if self.is_stopped || self.no_room_at.is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
            return;
        }
        self.no_room_at = None;
        match self.checkpoints.run_if_due(&self.conn, self.shared.queue.len() == 0, BUSY_TIMEOUT) {
            Ok(true) => self.shared.counters.checkpointed(),
            Ok(false) => {}
            Err(error) => {
                let broken = self.broken(&error);
                self.stop_if(&broken);
                // Nothing is lost: the log has it, and the next time may find room.
                if matches!(broken.error, Error::Full { .. }) {
                    self.no_room_at = Some(Instant::now());
                    self.shared.health.refused(&broken.error, 0);
                } else {
                    tracing::warn!(error = %broken.error, "the log could not be copied into the file");
                }
            }
        }
    }

    fn finish(mut self, is_done_with: bool) -> Done {
        let (mut result, mut is_whole) = (Ok(()), false);
        if !self.is_stopped {
            let closed = !is_done_with || self.note_closed();
            crashpoint!("sqlite.close.before_checkpoint");
            match checkpoint::truncate(&self.conn) {
                Ok(is_empty) => is_whole = is_empty && closed,
                Err(error) => {
                    let (reach, error) = judge(&error, os_error(&self.conn));
                    tracing::warn!(%error, "the log could not be copied into the file; the next start will do it");
                    if reach == Reach::Store {
                        result = Err(error);
                    }
                }
            }
        }
        if let Err((_, error)) = self.conn.close() {
            (result, is_whole) = (result.and(Err(judge(&error, 0).1)), false);
        }
        Done::Finished { result, is_whole }
    }

    /// Before the redo file goes, and on the disk: without it, the next start would miss the file. False if it stays.
    fn note_closed(&mut self) -> bool {
        let noted = self.set_durable(true).and_then(|()| apply::note_closed(&self.conn));
        if let Err(error) = &noted {
            tracing::warn!(%error, "the redo file stays: the database could not note that it is not needed any more");
        }
        noted.is_ok()
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

fn answer(jobs: Vec<Box<dyn Write>>, refusals: Vec<Option<Error>>) {
    for (job, refusal) in jobs.into_iter().zip(refusals) {
        job.answer(refusal);
    }
}
