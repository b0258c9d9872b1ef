//! A timeline as server-sent events: what is there, then what comes, until the invocation has ended.
//!
//! An event's id is its number in the timeline, so whoever reconnects with `Last-Event-ID` misses nothing. The log's head is
//! looked at first: while it stands still, the timeline is not read again.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::json;
use servo_entrypoint::{InvocationId, InvocationStatus, InvocationTimelineEvent, RuntimeErrorPayload, errors};
use servo_model::{RunId, SecurityContext};
use servo_store::Scope;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::refused::{Answer, Refused};
use crate::app::App;
use crate::error::ApiError;
use crate::sse::KEEP_ALIVE;

/// After a wake-up more is likely to come, and a timeline is read as a whole: one read takes it together.
const GATHER: Duration = Duration::from_millis(50);

pub(super) async fn follow(app: &App, ctx: SecurityContext, id: InvocationId, seen: u64) -> Answer<Response> {
    // Before the answer begins, so that what is not there is a 404 and not an empty stream.
    app.serverless.get_invocation(&ctx, &id).await?;
    let run_id = RunId::parse(&id).map_err(|_| Refused::not_found("there is no such invocation"))?;
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| ApiError::busy("too many event streams are open"))?;
    let log = app.runtime.engine().wake().watch_log();
    let seen = usize::try_from(seen).unwrap_or(usize::MAX);
    let follow = Follow {
        app: app.clone(),
        ctx,
        id,
        run_id,
        seen,
        head: None,
        log,
        quiet: Duration::ZERO,
        ended: false,
        _permit: permit,
    };
    // A first comment sends the headers at once.
    let opening = stream::iter([Bytes::from_static(b": the timeline follows\n\n")]);
    let body = opening.chain(stream::unfold(follow, Follow::next)).map(Ok::<_, std::convert::Infallible>);
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(body)).into_response())
}

struct Follow {
    app: App,
    ctx: SecurityContext,
    id: InvocationId,
    run_id: RunId,
    /// Timeline events that were sent.
    seen: usize,
    /// The log's head when the timeline was read last.
    head: Option<u64>,
    log: watch::Receiver<u64>,
    quiet: Duration,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Follow {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended {
            self.log.mark_unchanged();
            match self.read().await {
                Ok(Some(piece)) => {
                    self.quiet = Duration::ZERO;
                    return Some((piece, self));
                }
                Ok(None) => {}
                Err(failure) if failure.error_type_id == errors::NOT_FOUND => {
                    let piece = self.end("deleted");
                    return Some((piece, self));
                }
                Err(failure) => tracing::debug!(id = self.id, failure.message, "a timeline waits for the store"),
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

    /// What there is to send now. The status is read before the timeline: if it is an end, what ended the run is in the
    /// timeline that is read after it.
    async fn read(&mut self) -> Result<Option<Bytes>, RuntimeErrorPayload> {
        let store = self.app.runtime.engine().store();
        let scope = Scope::Tenant(self.ctx.tenant.clone());
        let head = store.read_run(&scope, &self.run_id, u64::from(u32::MAX), 1).await;
        let head = head.ok().map(|page| page.head_seq);
        if head.is_some() && head == self.head {
            return Ok(None);
        }
        let status = self.app.serverless.get_invocation(&self.ctx, &self.id).await?.status;
        let timeline = self.app.serverless.get_invocation_timeline(&self.ctx, &self.id).await?;
        let news: String =
            timeline.iter().enumerate().skip(self.seen).map(|(at, event)| frame(at + 1, event)).collect();
        self.seen = self.seen.max(timeline.len());
        if !news.is_empty() {
            if !has_ended(status) {
                self.head = head;
            }
            return Ok(Some(news.into()));
        }
        self.head = head;
        Ok(has_ended(status).then(|| self.end(status.as_str())))
    }

    fn end(&mut self, status: &str) -> Bytes {
        self.ended = true;
        format!("event: end\ndata: {}\n\n", json!({"status": status})).into()
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

/// Nothing more will come by itself, except that a failed run is put with the dead letters one day.
fn has_ended(status: InvocationStatus) -> bool {
    use InvocationStatus as S;
    matches!(status, S::Succeeded | S::Failed | S::Canceled | S::Compensated | S::DeadLettered)
}

fn frame(number: usize, event: &InvocationTimelineEvent) -> String {
    let data = serde_json::to_string(event).unwrap_or_default();
    format!("id: {number}\nevent: {}\ndata: {data}\n\n", event.event_type.as_str())
}
