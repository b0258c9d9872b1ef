//! Threads that read, each with its own read-only connection, opened when it is first needed. They see what is
//! committed, and never wait for the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use servo_store::{Error, Result};
use tokio::sync::oneshot;

use crate::error::{Fault, unavailable};
use crate::open;
use crate::own::Same;

/// Reads that may wait. Each has a caller waiting for it, so there are no more of them than open requests.
const QUEUE_MAX: usize = 4_096;

/// A read, or why there is no connection to read with.
type Read = Box<dyn FnOnce(&Same, &mut Option<Connection>) + Send>;

/// The way to the reading threads. They end when this is closed.
pub(crate) struct Readers {
    sender: Mutex<Option<SyncSender<Read>>>,
}

impl Readers {
    pub(crate) fn start(database: &Same, threads: usize) -> Result<(Self, Vec<JoinHandle<()>>)> {
        let (sender, receiver) = sync_channel(QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut handles = Vec::new();
        for _ in 0..threads.max(1) {
            let (database, receiver) = (database.clone(), receiver.clone());
            let thread = std::thread::Builder::new().name("servo-read".to_owned());
            let started = thread.spawn(move || serve(&database, &receiver));
            handles.push(started.map_err(|error| unavailable(format!("start a reading thread: {error}")))?);
        }
        Ok((Self { sender: Mutex::new(Some(sender)) }, handles))
    }

    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |database, slot| {
            let _ = reply.send(with_connection(database, slot, work));
        }))?;
        // The sender is dropped unused only if the work panicked.
        answer.await.unwrap_or_else(|_| Err(unavailable("the read ended without an answer")))
    }

    fn send(&self, read: Read) -> Result<()> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        match sender.as_ref().ok_or(Error::Closed)?.try_send(read) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(unavailable("read queue is full")),
            Err(TrySendError::Disconnected(_)) => Err(Error::Closed),
        }
    }

    /// No more reads; those that wait are still done.
    pub(crate) fn close(&self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn serve(database: &Same, receiver: &Mutex<Receiver<Read>>) {
    let mut slot = None;
    loop {
        let read = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = read else { return };
        // A panic is a bug of ours; it must not take the other readers with it, nor leave a transaction open.
        if catch_unwind(AssertUnwindSafe(|| read(database, &mut slot))).is_err() {
            slot = None;
        }
    }
}

fn with_connection<T>(
    database: &Same,
    slot: &mut Option<Connection>,
    work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>,
) -> Result<T> {
    let conn = match slot {
        Some(conn) => conn,
        None => slot.insert(open::open_reader(database)?),
    };
    let result = in_snapshot(conn, work).map_err(|fault| fault.into_error(conn));
    if !conn.is_autocommit() {
        // Could not even be rolled back: a connection that holds an old snapshot would hold back the log.
        *slot = None;
    }
    result
}

/// Everything a read looks at is of one moment.
fn in_snapshot<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> std::result::Result<T, Fault>,
) -> std::result::Result<T, Fault> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    let result = work(conn);
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = conn.prepare_cached(end)?.execute([]);
    let value = result?;
    ended?;
    Ok(value)
}
