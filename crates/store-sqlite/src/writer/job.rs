//! One logical transaction on its way through the writer: the work, what came out, and who waits for it.

use rusqlite::Connection;
use servo_store::{Error, Result};
use tokio::sync::oneshot;

use crate::error::Fault;
use crate::writer::tx::Tx;
use crate::writer::view::View;

/// What the writer must know of a job before it runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nature {
    /// Roughly what it writes, to keep groups and the queue within bounds.
    pub(crate) bytes: usize,
    /// It may be refused after its first write, so that a savepoint must be able to take it back. Work that is refused
    /// only before it writes anything does without.
    pub(crate) may_fail_late: bool,
}

impl Nature {
    /// A small transaction that may fail anywhere.
    pub(crate) const SMALL: Self = Self { bytes: 256, may_fail_late: true };
    /// A small transaction that checks first and then only writes.
    pub(crate) const SMALL_CHECKED: Self = Self { bytes: 256, may_fail_late: false };
}

pub(crate) enum Job {
    /// Decided on what the writer knows, and durable in the redo: what happens often.
    Ahead(Box<dyn Decide>),
    /// Statements in a transaction of the database: everything else.
    Direct(Box<dyn Write>),
    /// Asks for the database to have a record, and all before it.
    Settle(u64, oneshot::Sender<Result<()>>),
    /// A read of all that was answered, also where the database has no room for it.
    Look(Look),
}

/// A read, or why there is nothing to read from.
pub(crate) type Look = Box<dyn FnOnce(Result<&Connection>) + Send>;

pub(crate) trait Decide: Send {
    fn bytes(&self) -> usize;

    /// Leaves its changes in the view. Called once.
    fn decide(&mut self, view: &mut View<'_>) -> std::result::Result<(), Fault>;

    /// Tells the waiter: the error, or what `decide` found. A waiter that has gone is no problem.
    fn answer(self: Box<Self>, error: Option<Error>);
}

pub(crate) trait Write: Send {
    fn nature(&self) -> Nature;

    /// Does the work inside the open transaction. Called once.
    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), Fault>;

    /// As of [`Decide`].
    fn answer(self: Box<Self>, error: Option<Error>);
}

impl Job {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Job::Ahead(job) => job.bytes(),
            Job::Direct(job) => job.nature().bytes,
            Job::Settle(..) | Job::Look(_) => 0,
        }
    }

    /// It comes to nothing.
    pub(crate) fn refuse(self, error: Error) {
        match self {
            Job::Ahead(job) => job.answer(Some(error)),
            Job::Direct(job) => job.answer(Some(error)),
            Job::Settle(_, waiter) => {
                let _ = waiter.send(Err(error));
            }
            Job::Look(look) => look(Err(error)),
        }
    }
}

/// A call of the store's as a job: the work, its value once it has run, and who waits.
pub(crate) struct Call<T, F> {
    nature: Nature,
    work: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Call<T, F> {
    fn new(nature: Nature, work: F) -> (Box<Self>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { nature, work: Some(work), value: None, reply }), answer)
    }

    fn take(&mut self) -> F {
        self.work.take().expect("the writer runs a job once")
    }

    fn tell(self, error: Option<Error>) {
        let result = match (error, self.value) {
            (Some(error), _) => Err(error),
            (None, Some(value)) => Ok(value),
            (None, None) => Err(Error::Closed),
        };
        let _ = self.reply.send(result);
    }
}

/// The job, and where its answer will come.
pub(crate) fn ahead<T, F>(bytes: usize, work: F) -> (Job, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: FnOnce(&mut View<'_>) -> std::result::Result<T, Fault> + Send + 'static,
{
    let (call, answer) = Call::new(Nature { bytes, may_fail_late: false }, Deciding(work));
    (Job::Ahead(call), answer)
}

/// The same for work that needs the database.
pub(crate) fn direct<T, F>(nature: Nature, work: F) -> (Box<dyn Write>, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> std::result::Result<T, Fault> + Send + 'static,
{
    let (call, answer) = Call::new(nature, Writing(work));
    (call, answer)
}

/// A read for the thread that writes the database, and where its answer will come.
pub(crate) fn look<T, F>(work: F) -> (Job, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let look: Look = Box::new(move |conn| {
        let found = conn.and_then(|conn| work(conn).map_err(|fault| fault.into_error(conn)));
        let _ = reply.send(found);
    });
    (Job::Look(look), answer)
}

struct Deciding<F>(F);
struct Writing<F>(F);

impl<T, F> Decide for Call<T, Deciding<F>>
where
    T: Send,
    F: FnOnce(&mut View<'_>) -> std::result::Result<T, Fault> + Send,
{
    fn bytes(&self) -> usize {
        self.nature.bytes
    }

    fn decide(&mut self, view: &mut View<'_>) -> std::result::Result<(), Fault> {
        self.value = Some((self.take().0)(view)?);
        Ok(())
    }

    fn answer(self: Box<Self>, error: Option<Error>) {
        self.tell(error);
    }
}

impl<T, F> Write for Call<T, Writing<F>>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> std::result::Result<T, Fault> + Send,
{
    fn nature(&self) -> Nature {
        self.nature
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), Fault> {
        self.value = Some((self.take().0)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, error: Option<Error>) {
        self.tell(error);
    }
}
