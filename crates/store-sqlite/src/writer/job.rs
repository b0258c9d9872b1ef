//! One logical transaction on its way through the writer: the work, what came out, and who waits for it.

use servo_store::{Error, Result};
use tokio::sync::oneshot;

use crate::error::Fault;
use crate::writer::tx::Tx;

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

pub(crate) trait Job: Send {
    fn nature(&self) -> Nature;

    /// Does the work inside the open transaction. Called once.
    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), Fault>;

    /// Tells the waiter: the error, or what `run` found. A waiter that has gone is no problem.
    fn answer(self: Box<Self>, error: Option<Error>);
}

pub(crate) struct Call<T, F> {
    nature: Nature,
    work: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Call<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> std::result::Result<T, Fault> + Send + 'static,
{
    /// The job, and where its answer will come.
    pub(crate) fn prepare(nature: Nature, work: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { nature, work: Some(work), value: None, reply }), answer)
    }
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> std::result::Result<T, Fault> + Send,
{
    fn nature(&self) -> Nature {
        self.nature
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), Fault> {
        let work = self.work.take().expect("the writer runs a job once");
        self.value = Some(work(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, error: Option<Error>) {
        let result = match (error, self.value) {
            (Some(error), _) => Err(error),
            (None, Some(value)) => Ok(value),
            (None, None) => Err(Error::Closed),
        };
        let _ = self.reply.send(result);
    }
}
