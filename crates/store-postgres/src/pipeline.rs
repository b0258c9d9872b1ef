//! Statements that are sent one after another without waiting for answers in between: one round trip for all of them.
//!
//! The server works through them in order. After an error inside a transaction it refuses the rest, so a COMMIT at the
//! end of a pipeline commits everything or nothing.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use futures_util::TryStreamExt;
use servo_store::Error;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::error::{Failure, Phase};

pub(crate) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Parameters of a statement, each anything that the driver can send.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::pipeline::Param<'_>),*] };
}
pub(crate) use params;

pub(crate) struct Pipeline<'a> {
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    /// Without parameters and without an answer: BEGIN, COMMIT.
    Plain(&'static str),
    Query(Cow<'static, str>, Vec<Param<'a>>),
    /// Of so many possible texts that the connection must not keep it.
    Once(String, Vec<Param<'a>>),
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    pub(crate) affected: u64,
}

/// Which step failed, by its index, and how. Later steps had no effect if they belong to the same transaction.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) step: usize,
    pub(crate) failure: Failure,
    /// False while statements were still being prepared: none of the steps has reached the server.
    pub(crate) was_sent: bool,
}

impl Failed {
    /// The error for a pipeline whose step `commit` is a COMMIT, or whose only step commits by itself.
    pub(crate) fn into_error(self, commit: usize) -> Error {
        // The server works in order: it has not come to the commit when it refuses, or ends, on a step before it.
        let refused_before = self.step < commit && self.failure.state().is_some();
        let before = !self.was_sent || refused_before || self.failure.was_left_alone();
        self.failure.into_error(if before { Phase::Open } else { Phase::Commit })
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, tokio_postgres::Error>> + Send + 'a>>;

impl<'a> Pipeline<'a> {
    pub(crate) fn new() -> Self {
        Self { steps: Vec::new() }
    }

    pub(crate) fn plain(&mut self, sql: &'static str) -> usize {
        self.steps.push(Step::Plain(sql));
        self.steps.len() - 1
    }

    /// Says at which index the answer will stand.
    pub(crate) fn query(&mut self, sql: &'static str, params: Vec<Param<'a>>) -> usize {
        self.steps.push(Step::Query(Cow::Borrowed(sql), params));
        self.steps.len() - 1
    }

    /// A statement put together for this question: of few possible texts, and with every value a parameter.
    pub(crate) fn query_built(&mut self, sql: String, params: Vec<Param<'a>>) -> usize {
        self.steps.push(Step::Query(Cow::Owned(sql), params));
        self.steps.len() - 1
    }

    /// A statement put together by a caller's wish, of any shape. Every value is a parameter, as always.
    pub(crate) fn query_once(&mut self, sql: String, params: Vec<Param<'a>>) -> usize {
        self.steps.push(Step::Once(sql, params));
        self.steps.len() - 1
    }

    pub(crate) async fn run(self, client: &ClientWrapper, patience: Duration) -> Result<Vec<Answer>, Failed> {
        // Worth a look: what fails now was certainly not sent.
        if client.is_closed() {
            return Err(Failed { step: 0, failure: Failure::Gone, was_sent: false });
        }
        // A step that was never reached counts as the first: the caller then assumes nothing about any of them.
        let timed_out = |_| Failed { step: 0, failure: Failure::Timeout, was_sent: true };
        tokio::time::timeout(patience, self.exchange(client)).await.map_err(timed_out)?
    }

    async fn exchange(self, client: &ClientWrapper) -> Result<Vec<Answer>, Failed> {
        let mut running: Vec<Running<'_>> = Vec::with_capacity(self.steps.len());
        for (step, what) in self.steps.into_iter().enumerate() {
            running.push(match what {
                Step::Plain(sql) => Box::pin(async move {
                    client.batch_execute(sql).await?;
                    Ok(Answer::default())
                }),
                Step::Query(sql, params) => {
                    // Known after its first use on this connection, so this waits only then.
                    let statement = client.prepare_cached(&sql).await;
                    let statement =
                        statement.map_err(|error| Failed { step, failure: error.into(), was_sent: false })?;
                    Box::pin(query(client, statement, params))
                }
                Step::Once(sql, params) => {
                    let statement = client.prepare(&sql).await;
                    let statement =
                        statement.map_err(|error| Failed { step, failure: error.into(), was_sent: false })?;
                    Box::pin(query(client, statement, params))
                }
            });
        }
        all_in_order(running).await
    }
}

async fn query(
    client: &ClientWrapper,
    statement: Statement,
    params: Vec<Param<'_>>,
) -> Result<Answer, tokio_postgres::Error> {
    let params = params.iter().map(|param| &**param as &(dyn ToSql + Sync));
    let stream = client.query_raw(&statement, params.collect::<Vec<_>>()).await?;
    let mut stream = std::pin::pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        rows.push(row);
    }
    Ok(Answer { rows, affected: stream.rows_affected().unwrap_or(0) })
}

/// Each future sends its statement when it is first polled, so polling them in order sends them in order. The first error
/// in that order ends it: what was not sent by then never is.
async fn all_in_order(mut running: Vec<Running<'_>>) -> Result<Vec<Answer>, Failed> {
    let mut answers: Vec<Option<Answer>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut is_done = true;
        for (step, (future, answer)) in running.iter_mut().zip(&mut answers).enumerate() {
            if answer.is_some() {
                continue;
            }
            match future.as_mut().poll(cx) {
                Poll::Ready(Ok(found)) => *answer = Some(found),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(Failed { step, failure: error.into(), was_sent: true }));
                }
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(answers.into_iter().map(|answer| answer.expect("every step is done")).collect())
}
