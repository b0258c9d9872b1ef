//! Following the lines that a run's code writes: asked for again and again until the run has ended. There is no stream of
//! them; lines come in batches anyway, with each answer of the handler.

use std::time::Duration;

use servo_model::RunId;
use servo_wire::v1::LineList;

use crate::answer::Answer;
use crate::client::Client;
use crate::error::Error;
use crate::follow::pause;

const INTERVAL: Duration = Duration::from_millis(500);
/// Failed requests in a row before giving up; with the interval about a minute.
const ATTEMPTS_MAX: u32 = 120;
const PAGE: u32 = 1_000;

/// Gives a run's lines page by page, each line once and in order.
#[derive(Debug)]
pub struct LineFollower {
    client: Client,
    run: RunId,
    after: u64,
    interval: Duration,
    /// Whether the server has ever answered. The first request is not repeated: a wrong address shows at once.
    was_answered: bool,
    failures: u32,
    has_ended: bool,
}

impl LineFollower {
    pub(crate) fn new(client: Client, run: RunId, after: u64) -> Self {
        Self { client, run, after, interval: INTERVAL, was_answered: false, failures: 0, has_ended: false }
    }

    /// Waits this long before it asks again.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// The next lines, never none of them, or `None` when the run has ended and all were given out.
    pub async fn next(&mut self) -> Result<Option<Answer<LineList>>, Error> {
        loop {
            match self.look().await {
                Ok(page) => {
                    self.was_answered = true;
                    self.failures = 0;
                    if let Some(last) = page.items.last() {
                        self.after = last.number;
                        return Ok(Some(page));
                    }
                    if self.has_ended {
                        return Ok(None);
                    }
                }
                Err(error) => {
                    self.failures += 1;
                    if !self.was_answered || !error.is_transient() || self.failures > ATTEMPTS_MAX {
                        return Err(error);
                    }
                }
            }
            pause(self.interval).await;
        }
    }

    /// The status is read first: lines that come after it was read are found by the look that follows.
    async fn look(&mut self) -> Result<Answer<LineList>, Error> {
        if !self.has_ended {
            self.has_ended = self.client.run(&self.run).await?.status.is_terminal();
        }
        self.client.run_logs(&self.run, self.after, Some(PAGE)).await
    }
}
