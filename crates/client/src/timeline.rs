//! Following a timeline: a stream that survives broken connections, as `follow` does for a run's events.

use std::time::Duration;

use reqwest::{Response, header};
use servo_entrypoint::InvocationTimelineEvent;

use crate::answer::Answer;
use crate::client::{Client, Patience};
use crate::error::Error;
use crate::follow::{SILENCE_MAX, pause, read, silent};
use crate::sse::{Parser, SseEvent};

const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Failed attempts in a row before giving up; with the waits above about a minute.
const ATTEMPTS_MAX: u32 = 16;

/// Gives timeline events one by one, each once and in order, until the invocation has ended.
#[derive(Debug)]
pub struct TimelineFollower {
    client: Client,
    id: String,
    seen: u64,
    first_backoff: Duration,
    was_connected: bool,
    failures: u32,
    connection: Option<(Box<Response>, Parser)>,
    has_ended: bool,
}

impl TimelineFollower {
    pub(crate) fn new(client: Client, id: String) -> Self {
        Self {
            client,
            id,
            seen: 0,
            first_backoff: FIRST_BACKOFF,
            was_connected: false,
            failures: 0,
            connection: None,
            has_ended: false,
        }
    }

    /// Waits this long before it reconnects, and twice as long after each further failure.
    #[must_use]
    pub fn with_backoff(mut self, first: Duration) -> Self {
        self.first_backoff = first;
        self
    }

    /// The next event, or `None` when the invocation has ended.
    pub async fn next(&mut self) -> Result<Option<Answer<InvocationTimelineEvent>>, Error> {
        while !self.has_ended {
            let waiting = match &mut self.connection {
                None => None,
                Some((_, parser)) => {
                    parser.next_event().map_err(|malformed| decode(&self.id, malformed.to_string()))?
                }
            };
            if let Some(event) = waiting {
                if let Some(answer) = self.accept(event)? {
                    return Ok(Some(answer));
                }
                continue;
            }
            if let Err(problem) = self.advance().await {
                self.connection = None;
                self.failures += 1;
                if !self.was_connected || !problem.is_transient() || self.failures > ATTEMPTS_MAX {
                    return Err(problem);
                }
            }
        }
        Ok(None)
    }

    /// Reads on, or connects first.
    async fn advance(&mut self) -> Result<(), Error> {
        let Some((response, parser)) = &mut self.connection else { return self.connect().await };
        let bytes = read(&self.client, response).await?;
        self.failures = 0;
        parser.push(&bytes).map_err(|malformed| decode(&self.id, malformed.to_string()))
    }

    fn accept(&mut self, event: SseEvent) -> Result<Option<Answer<InvocationTimelineEvent>>, Error> {
        if event.name == "end" {
            self.has_ended = true;
            return Ok(None);
        }
        let id = event.id.as_deref().unwrap_or_default();
        let number: u64 = id.parse().map_err(|_| decode(&self.id, format!("`{id}` is no number of an event")))?;
        if number <= self.seen {
            return Ok(None);
        }
        self.seen = number;
        let value = serde_json::from_str(&event.data).map_err(|error| decode(&self.id, error.to_string()))?;
        Ok(Some(Answer::new(value, event.data)))
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if self.failures > 0 {
            pause(self.first_backoff.saturating_mul(1 << (self.failures - 1).min(16)).min(BACKOFF_MAX)).await;
        }
        let mut request = self.client.timeline_request(&self.id);
        if self.seen > 0 {
            request = request.header("last-event-id", self.seen.to_string());
        }
        let response = tokio::time::timeout(SILENCE_MAX, self.client.send(request, Patience::Endless));
        let response = response.await.map_err(|_| silent(&self.client))??;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(decode(&self.id, format!("it is `{kind}` and no event stream")));
        }
        self.was_connected = true;
        self.connection = Some((Box::new(response), Parser::default()));
        Ok(())
    }
}

fn decode(id: &str, reason: String) -> Error {
    Error::Decode { request: format!("the timeline of {id}"), reason }
}
