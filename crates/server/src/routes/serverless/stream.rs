//! An invocation's timeline as it comes.
//!
//! An event's id is its number in the timeline, so whoever reconnects with `Last-Event-ID` misses nothing. Only what is new in
//! the log is read.

use std::time::Duration;

use serde_json::json;
use servo_entrypoint::{
    InvocationId, InvocationStatus, InvocationTimelineEvent, RuntimeErrorPayload, TimelineTail, errors,
};
use servo_model::SecurityContext;

use super::refused::Answer;
use crate::app::App;
use crate::sse::{News, Source};

pub(super) struct Timeline {
    id: InvocationId,
    tail: Box<dyn TimelineTail>,
    /// Timeline events that were told so far, and those that the reader has had before.
    told: usize,
    seen: usize,
}

impl Timeline {
    /// Found before the answer begins, so that what is not there is a 404 and not an empty stream.
    pub(super) async fn new(app: &App, ctx: &SecurityContext, id: InvocationId, seen: u64) -> Answer<Self> {
        let tail = app.serverless.follow_timeline(ctx, &id).await?;
        Ok(Self { id, tail, told: 0, seen: usize::try_from(seen).unwrap_or(usize::MAX) })
    }

    async fn news(&mut self) -> Result<News, RuntimeErrorPayload> {
        loop {
            let (events, status) = self.tail.news().await?;
            if events.is_empty() {
                return Ok(if has_ended(status) { end(status.as_str()) } else { News::None });
            }
            let first = self.told + 1;
            self.told += events.len();
            let numbered = events.iter().zip(first..).filter(|(_, number)| *number > self.seen);
            let news: String = numbered.map(|(event, number)| frame(number, event)).collect();
            if !news.is_empty() {
                return Ok(News::Some(news.into()));
            }
        }
    }
}

impl Source for Timeline {
    const OPENING: &'static str = "the timeline follows";
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
