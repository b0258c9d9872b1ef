//! The handle: it starts the threads, hands them work, and ends them. The calls themselves are in `traits`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::Connection;
use servo_canon::Digest;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId};
use servo_store::admin::Condition;
use servo_store::{Error, Result, TimeSource};
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};

use crate::config::Config;
use crate::error::{Fault, unavailable};
use crate::health::Health;
use crate::kept::Kept;
use crate::own::Same;
use crate::progress::Progress;
use crate::reader::Readers;
use crate::sabotage::Sabotage;
use crate::stats::{Counters, Stats};
use crate::tail::Tail;
use crate::writer::Writer;
use crate::writer::applier::{Applier, Shared};
use crate::writer::job::{self, Job, Nature};
use crate::writer::queue::Queue;
use crate::writer::room::Room;
use crate::writer::tx::Tx;
use crate::writer::view::View;
use crate::{DATABASE_FILE, open};

/// A store in one SQLite file. Clones share it; when the last one goes, the store is closed.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) database: Same,
    pub(crate) limits: Limits,
    pub(crate) time: TimeSource,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) readers: Readers,
    pub(crate) queue: Arc<Queue>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) health: Arc<Health>,
    sabotage: Sabotage,
    progress: Arc<Progress>,
    counters: Arc<Counters>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// The folder of an ephemeral store goes after everything in it is closed.
    _folder: Option<TempDir>,
}

impl SqliteStore {
    /// Opens a store, making it if the folder is empty. Blocks: the caller chooses the thread.
    pub fn open(config: Config) -> Result<Self> {
        Self::open_in(config, None)
    }

    /// A store that is gone when its last handle is. It is still a file with all that belongs to one.
    pub fn ephemeral(limits: Limits, time: TimeSource) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("servo-").tempdir();
        let folder = folder.map_err(|error| unavailable(format!("make a temporary folder: {error}")))?;
        let config = Config { limits, ..Config::new(folder.path(), time) };
        Self::open_in(config, Some(folder))
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        self.inner.database.path()
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> Stats {
        self.inner.counters.read()
    }

    /// Follows how the store stands. Whoever has a supervisor ends the program when it is [`Condition::Stopped`], and has the
    /// store opened again: this handle takes no more writes.
    pub fn watch(&self) -> watch::Receiver<Condition> {
        self.inner.health.watch()
    }

    fn open_in(config: Config, folder: Option<TempDir>) -> Result<Self> {
        let opened = open::open(&config)?;
        let database = Same::of(config.data_dir.join(DATABASE_FILE))?;
        let queue = Arc::new(Queue::new(config.queue_jobs_max, config.queue_bytes_max));
        let (counters, health) = (Arc::new(Counters::default()), Arc::new(Health::new(config.time.clone())));
        let (tail, kept) = (Arc::new(Tail::default()), Arc::new(Kept::default()));
        let progress = Arc::new(Progress::at(opened.redo.last()));
        let (readers, reader_threads) = Readers::start(&database, config.readers)?;
        let shared = Shared {
            limits: config.limits.clone(),
            time: config.time.clone(),
            sabotage: opened.sabotage,
            counters: counters.clone(),
            tail: tail.clone(),
            kept: kept.clone(),
            queue: queue.clone(),
            health: health.clone(),
        };
        let (tasks, to_do) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let applier = Applier::new(opened.conn, shared)?;
        let applier = start("servo-apply", move || applier.run(&to_do, &report))?;
        let writer = Writer {
            conn: open::open_reader(&database)?,
            database: database.clone(),
            redo: opened.redo,
            queue: queue.clone(),
            limits: config.limits.clone(),
            time: config.time.clone(),
            sabotage: opened.sabotage,
            counters: counters.clone(),
            tail: tail.clone(),
            progress: progress.clone(),
            health: health.clone(),
            room: Room::new(config.data_dir, config.pages_max),
            group_commit: config.group_commit,
            tasks,
            done,
            applier,
            readers: reader_threads,
            lock: opened.lock,
        };
        let thread = start("servo-write", move || writer.run())?;
        let inner = Inner {
            database,
            limits: config.limits,
            time: config.time,
            settings: opened.settings,
            readers,
            queue,
            tail,
            kept,
            health,
            sabotage: opened.sabotage,
            progress,
            counters,
            writer: Mutex::new(Some(thread)),
            _folder: folder,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Decides work on what the writer knows, and waits until its changes are durable. Dropping the future does not take
    /// the work back.
    pub(crate) async fn ahead<T, F>(&self, bytes: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut View<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        let (job, answer) = job::ahead(bytes, work);
        self.inner.queue.push(job)?;
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Returns when the database has all that was answered before.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.settle_until(self.inner.progress.answered()).await
    }

    /// Returns when the database has a record, and all before it.
    async fn settle_until(&self, lsn: u64) -> Result<()> {
        if self.inner.progress.applied() >= lsn {
            return Ok(());
        }
        let (waiter, settled) = oneshot::channel();
        self.inner.queue.push(Job::Settle(lsn, waiter))?;
        settled.await.unwrap_or_else(|_| Err(unavailable("the writer ended without an answer")))
    }

    /// Runs work in a transaction and waits for its commit. Dropping the future does not take the work back.
    pub(crate) async fn write<T, F>(&self, nature: Nature, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        let (job, answer) = job::direct(nature, work);
        self.inner.queue.push(Job::Direct(job))?;
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Reads what was answered until now.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.read_settled(self.inner.progress.answered(), work).await
    }

    /// Reads once the database has a record. Where it has no room for it, what was answered is read from memory.
    async fn read_settled<T, F>(&self, lsn: u64, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        match self.settle_until(lsn).await {
            Ok(()) => self.inner.readers.read(work).await,
            Err(Error::Full { .. }) if !self.inner.sabotage.refuses_reads() => {
                let (job, answer) = job::look(work);
                self.inner.queue.push(job)?;
                answer.await.unwrap_or_else(|_| Err(unavailable("the read ended without an answer")))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads what was answered of one run until now, and nothing else.
    pub(crate) async fn read_of_run<T, F>(&self, run_id: &RunId, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.read_settled(self.inner.progress.last_of_run(run_id), work).await
    }

    /// Reads which run a request has started until now.
    pub(crate) async fn read_of_request<T, F>(&self, (tenant, key): (&TenantId, Digest), work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.read_settled(self.inner.progress.last_of_request(tenant, key), work).await
    }

    /// Reads open dispatches. Most are handed out with what makes them, and were never open for a reader: those are not waited
    /// for.
    pub(crate) async fn read_open_dispatches<T, F>(&self, epoch: u64, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.read_settled(self.inner.progress.last_of_dispatches(epoch), work).await
    }

    /// Reads tables that only direct jobs write, so that the database always has all of them.
    pub(crate) async fn read_direct<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.inner.readers.read(work).await
    }

    /// Long work on a thread and a connection of its own, so that it holds up no other reader.
    pub(crate) async fn read_apart<T, F>(&self, name: &str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.check_open()?;
        self.settle().await?;
        let (reply, answer) = oneshot::channel();
        // Keeps the store open, and a temporary folder in place, until the work is done.
        let inner = self.inner.clone();
        let thread = std::thread::Builder::new().name(format!("servo-{name}"));
        let started = thread.spawn(move || {
            let result = open::open_reader(&inner.database).and_then(|conn| work(&conn));
            drop(inner);
            let _ = reply.send(result);
        });
        started.map_err(|error| unavailable(format!("start a thread: {error}")))?;
        answer.await.unwrap_or_else(|_| Err(unavailable(format!("{name} ended without an answer"))))
    }

    /// For calls that no thread has to answer.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.inner.queue.is_closing() { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) async fn shut(&self) -> Result<()> {
        let (closer, closed) = oneshot::channel();
        self.inner.queue.close(Some(closer))?;
        self.inner.readers.close();
        closed.await.unwrap_or_else(|_| Err(unavailable("the writer ended before it could close the file")))
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|error| unavailable(format!("start the thread {name}: {error}")))
}

/// A job that was taken and not answered went down with the writer, and nobody knows how far it came.
fn unanswered() -> Error {
    Error::Unavailable { detail: "the writer ended without an answer".to_owned(), maybe_written: true }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Closed already, or not: either way the thread must be gone before the folder is.
        let _ = self.queue.close(None);
        self.readers.close();
        let thread = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.database.path()).finish_non_exhaustive()
    }
}
