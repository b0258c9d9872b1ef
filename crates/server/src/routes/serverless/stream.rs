//! An invocation's timeline as it comes.
//!
//! An event's id is its number in the timeline, so whoever reconnects with `Last-Event-ID` misses nothing. The log's head is
//! looked at first: while it stands still, the timeline is not read again.

use std::time::Duration;

use serde_json::json;
use servo_entrypoint::{InvocationId, InvocationStatus, InvocationTimelineEvent, RuntimeErrorPayload, errors};
use servo_model::{RunId, SecurityContext};
use servo_store::Scope;

use super::refused::{Answer, Refused};
use crate::app::App;
use crate::sse::{News, Source};

pub(super) struct Timeline {
    app: App,
    ctx: SecurityContext,
    id: InvocationId,
    run_id: RunId,
    /// Timeline events that were sent.
    seen: usize,
    /// The log's head when the timeline was read last.
    head: Option<u64>,
}

impl Timeline {
    pub(super) async fn new(app: &App, ctx: SecurityContext, id: InvocationId, seen: u64) -> Answer<Self> {
        // Before the answer begins, so that what is not there is a 404 and not an empty stream.
        app.serverless.get_invocation(&ctx, &id).await?;
        let run_id = RunId::parse(&id).map_err(|_| Refused::not_found("there is no such invocation"))?;
        let seen = usize::try_from(seen).unwrap_or(usize::MAX);
        Ok(Self { app: app.clone(), ctx, id, run_id, seen, head: None })
    }

    /// The status is read before the timeline: if it is an end, what ended the run is in the timeline that is read after it.
    async fn news(&mut self) -> Result<News, RuntimeErrorPayload> {
        let store = self.app.runtime.engine().store();
        let scope = Scope::Tenant(self.ctx.tenant.clone());
        // Behind every event there is: a page of none, with the head.
        let head = store.read_run(&scope, &self.run_id, u64::from(u32::MAX), 1).await;
        let head = head.ok().map(|page| page.head_seq);
        if head.is_some() && head == self.head {
            return Ok(News::None);
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
            return Ok(News::Some(news.into()));
        }
        self.head = head;
        Ok(if has_ended(status) { end(status.as_str()) } else { News::None })
    }
}

impl Source for Timeline {
    const OPENING: &'static str = "the timeline follows";
    /// A timeline is read as a whole, so more is taken together.
    const GATHER: Duration = Duration::from_millis(50);

    async fn read(&mut self) -> News {
        match self.news().await {
            Ok(news) => news,
            Err(failure) if failure.error_type_id == errors::NOT_FOUND => end("deleted"),
            Err(failure) => {
                tracing::debug!(id = self.id, failure.message, "a timeline waits for the store");
                News::None
            }
        }
    }
}

fn end(status: &str) -> News {
    News::Last(format!("event: end\ndata: {}\n\n", json!({"status": status})).into())
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
