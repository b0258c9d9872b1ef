//! Following a run's events: a stream that survives broken connections and restarts of the server.

use std::time::Duration;

use reqwest::{Method, Response, header};
use serde_json::value::RawValue;
use servo_model::RunId;
use servo_wire::v1::events::END_EVENT;

use crate::client::{Client, Patience};
use crate::error::Error;
use crate::sse::{Parser, SseEvent};

const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Failed attempts in a row before giving up; with the waits above about a minute.
const ATTEMPTS_MAX: u32 = 16;
/// The server sends a comment far more often than this. Silence means that the connection is dead.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// An event as it came over the stream.
#[derive(Debug, Clone)]
pub struct Followed {
    pub run_seq: u64,
    pub event_type: String,
    /// The public document.
    pub document: Box<RawValue>,
}

/// Gives a run's events one by one, each exactly once and in order, until the run has ended.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    run: RunId,
    after: u64,
    first_backoff: Duration,
    /// Whether the server has ever answered. The first connection is not repeated: a wrong address shows at once.
    was_connected: bool,
    failures: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Disconnected,
    Connected { response: Box<Response>, parser: Parser },
    Ended,
}

impl Follower {
    pub(crate) fn new(client: Client, run: RunId, after: u64) -> Self {
        let first_backoff = FIRST_BACKOFF;
        Self { client, run, after, first_backoff, was_connected: false, failures: 0, state: State::Disconnected }
    }

    /// Waits this long before it reconnects, and twice as long after each further failure.
    #[must_use]
    pub fn with_backoff(mut self, first: Duration) -> Self {
        self.first_backoff = first;
        self
    }

    /// The sequence number of the last event that was given out.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The next event, or `None` when the run has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Followed>, Error> {
        loop {
            let problem = match &mut self.state {
                State::Ended => return Ok(None),
                State::Disconnected => match self.connect().await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                State::Connected { response, parser } => {
                    let event = parser.next_event().map_err(|malformed| decode(&self.run, malformed.to_string()))?;
                    if let Some(event) = event {
                        match self.accept(event)? {
                            Some(followed) => return Ok(Some(followed)),
                            None => continue,
                        }
                    }
                    match read(&self.client, response).await {
                        Ok(bytes) => {
                            parser.push(&bytes).map_err(|malformed| decode(&self.run, malformed.to_string()))?;
                            self.failures = 0;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
            };
            self.state = State::Disconnected;
            self.failures += 1;
            if !self.was_connected || !problem.is_transient() || self.failures > ATTEMPTS_MAX {
                return Err(problem);
            }
        }
    }

    /// Reads an event that is whole. `None` for what is no news: repeated ones, and the end.
    fn accept(&mut self, event: SseEvent) -> Result<Option<Followed>, Error> {
        if event.name == END_EVENT {
            self.state = State::Ended;
            return Ok(None);
        }
        let id = event.id.as_deref().unwrap_or_default();
        let run_seq: u64 = id.parse().map_err(|_| decode(&self.run, format!("`{id}` is no sequence number")))?;
        let document = RawValue::from_string(event.data).map_err(|error| decode(&self.run, error.to_string()))?;
        if run_seq <= self.after {
            return Ok(None);
        }
        self.after = run_seq;
        Ok(Some(Followed { run_seq, event_type: event.name, document }))
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if self.failures > 0 {
            pause(self.first_backoff.saturating_mul(1 << (self.failures - 1).min(16)).min(BACKOFF_MAX)).await;
        }
        let query = [("after", (self.after > 0).then(|| self.after.to_string()))];
        let mut request = self
            .client
            .request(Method::GET, &format!("/v1/runs/{}/events", self.run), &query)
            .header(header::ACCEPT, "text/event-stream");
        if self.after > 0 {
            request = request.header("last-event-id", self.after.to_string());
        }
        // The head of the answer must come soon, the body need not.
        let response = tokio::time::timeout(SILENCE_MAX, self.client.send(request, Patience::Endless));
        let response = response.await.map_err(|_| silent(&self.client))??;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(decode(&self.run, format!("it is `{kind}` and no event stream")));
        }
        self.was_connected = true;
        self.state = State::Connected { response: Box::new(response), parser: Parser::default() };
        Ok(())
    }
}

pub(crate) async fn read(client: &Client, response: &mut Response) -> Result<Vec<u8>, Error> {
    let chunk = tokio::time::timeout(SILENCE_MAX, response.chunk()).await.map_err(|_| silent(client))?;
    match chunk.map_err(|error| client.unreachable(&error))? {
        Some(bytes) => Ok(Vec::from(bytes)),
        // An end without saying so: the server stopped, or a proxy cut the connection.
        None => {
            Err(Error::Unreachable { server: client.server().to_owned(), reason: "the stream broke off".to_owned() })
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for another process; no decision depends on it")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

pub(crate) fn silent(client: &Client) -> Error {
    let reason = format!("nothing came for {} s", SILENCE_MAX.as_secs());
    Error::Unreachable { server: client.server().to_owned(), reason }
}

fn decode(run: &RunId, reason: String) -> Error {
    Error::Decode { request: format!("/v1/runs/{run}/events"), reason }
}
