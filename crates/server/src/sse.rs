//! A run's events as server-sent events: what is there, then what comes, until the run has ended.
//!
//! The log is the truth and is read again from time to time; a wake-up only makes it sooner. A stream holds no events: a
//! slow reader costs a small buffer, and what it has not taken is still in the log.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use servo_model::RunId;
use servo_store::{RunRow, Scope, StoredEvent};
use servo_wire::v1::events::END_EVENT;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::app::App;
use crate::error::{Answer, ApiError};

/// Events read at a time: the most that waits in memory for one reader.
const BATCH: u32 = 200;
/// After a wake-up, more is likely to come: one read takes it together.
const GATHER: Duration = Duration::from_millis(10);
/// Quiet connections are cut by proxies; a comment keeps them open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Starts a stream behind a sequence. The run is known to exist.
pub(crate) fn follow(app: &App, scope: Scope, run_id: RunId, after: u64) -> Answer<Response> {
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| ApiError::busy("too many event streams are open"))?;
    let log = app.runtime.engine().wake().watch_log();
    let state =
        Follow { app: app.clone(), scope, run_id, after, log, quiet: Duration::ZERO, ended: false, _permit: permit };
    // A first comment sends the headers at once.
    let opening = stream::iter([Bytes::from_static(b": events follow\n\n")]);
    let body = stream::unfold(state, Follow::next);
    let body =
        futures_util::StreamExt::map(futures_util::StreamExt::chain(opening, body), Ok::<_, std::convert::Infallible>);
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(body)).into_response())
}

struct Follow {
    app: App,
    scope: Scope,
    run_id: RunId,
    after: u64,
    log: watch::Receiver<u64>,
    /// How long nothing was sent.
    quiet: Duration,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Follow {
    /// The next piece of the stream, whenever there is one.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended {
            self.log.mark_unchanged();
            match self.read().await {
                Ok(Some(piece)) => {
                    self.quiet = Duration::ZERO;
                    return Some((piece, self));
                }
                Ok(None) => {}
                Err(servo_store::Error::Closed) => return None,
                // The reader is told nothing: the stream goes on when the store does.
                Err(error) => tracing::debug!(run_id = %self.run_id, %error, "event stream waits for the store"),
            }
            if !self.wait().await {
                return None;
            }
            if self.quiet >= KEEP_ALIVE {
                self.quiet = Duration::ZERO;
                return Some((Bytes::from_static(b": still here\n\n"), self));
            }
        }
        None
    }

    /// What there is to send now. The row is read before the events: if it says that the run has ended, the events that
    /// ended it are among those read after it.
    async fn read(&mut self) -> Result<Option<Bytes>, servo_store::Error> {
        let store = self.app.runtime.engine().store();
        let Some(row) = store.get_run(&self.scope, &self.run_id).await? else { return Ok(Some(self.end("DELETED"))) };
        let page = match store.read_run(&self.scope, &self.run_id, self.after, BATCH).await {
            Err(servo_store::Error::NotFound) => return Ok(Some(self.end("DELETED"))),
            other => other?,
        };
        if let Some(last) = page.events.last() {
            self.after = last.run_seq;
            return Ok(Some(page.events.iter().map(frame).collect::<String>().into()));
        }
        Ok(has_ended(&row).then(|| self.end(row.status.as_str())))
    }

    fn end(&mut self, status: &str) -> Bytes {
        self.ended = true;
        let after = self.after;
        format!("event: {END_EVENT}\ndata: {{\"status\":\"{status}\",\"lastEventSeq\":{after}}}\n\n").into()
    }

    /// Waits for a sign that the log grew, or for a while. False when the server stops.
    async fn wait(&mut self) -> bool {
        let engine = self.app.runtime.engine();
        let poll = engine.config().poll().max(GATHER);
        tokio::select! {
            biased;
            () = self.app.shutdown.triggered() => return false,
            () = engine.shutdown().triggered() => return false,
            changed = self.log.changed() => {
                if changed.is_err() {
                    return false;
                }
                engine.clock().sleep(GATHER).await;
                self.quiet += GATHER;
            }
            () = engine.clock().sleep(poll) => self.quiet += poll,
        }
        true
    }
}

/// Nothing more will come by itself.
fn has_ended(row: &RunRow) -> bool {
    row.status.is_terminal() || row.quarantined.is_some()
}

/// One event on the wire. Line breaks in a document are white space of whoever wrote it, and would end the field here.
fn frame(event: &StoredEvent) -> String {
    let document = event.doc().to_json().replace(['\n', '\r'], " ");
    format!("id: {}\nevent: {}\ndata: {document}\n\n", event.run_seq, event.event_type.replace(['\n', '\r'], " "))
}
