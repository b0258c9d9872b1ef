//! A run's events as they come.

use std::time::Duration;

use bytes::Bytes;
use servo_model::RunId;
use servo_runtime::{Engine, Error};
use servo_store::{RunRow, Scope, StoredEvent};
use servo_wire::v1::events::END_EVENT;

use crate::payloads::Payloads;
use crate::sse::{News, Source};

/// Events read at a time: the most that waits in memory for one reader.
const BATCH: u32 = 200;

pub(super) struct RunEvents {
    pub(super) engine: Engine,
    pub(super) scope: Scope,
    pub(super) run_id: RunId,
    pub(super) after: u64,
    pub(super) shown: Payloads,
}

impl Source for RunEvents {
    const OPENING: &'static str = "events follow";
    const GATHER: Duration = Duration::from_millis(10);

    async fn read(&mut self) -> News {
        match self.news().await {
            Ok(news) => news,
            Err(Error::Store(servo_store::Error::Closed)) => News::Gone,
            Err(Error::Store(servo_store::Error::NotFound)) => self.end("DELETED"),
            Err(error) => {
                // The reader is told nothing: the stream goes on when the store does.
                tracing::debug!(run_id = %self.run_id, %error, "event stream waits for the store");
                News::None
            }
        }
    }
}

impl RunEvents {
    /// The row is read before the events: if it says that the run has ended, the events that ended it are among those read
    /// after it.
    async fn news(&mut self) -> Result<News, Error> {
        let row = self.engine.store().get_run(&self.scope, &self.run_id).await?.ok_or(servo_store::Error::NotFound)?;
        let page = match self.engine.read_events(&self.scope, &self.run_id, self.after, BATCH).await {
            // Set aside: nothing more of it will be shown.
            Err(Error::Quarantined(_)) => return Ok(self.end(row.status.as_str())),
            page => page?,
        };
        if let Some(last) = page.events.last() {
            self.after = last.run_seq;
            return Ok(News::Some(page.events.iter().map(|event| self.frame(event)).collect::<String>().into()));
        }
        Ok(if has_ended(&row) { self.end(row.status.as_str()) } else { News::None })
    }

    /// One event on the wire. Line breaks in a document are white space of whoever wrote it, and would end the field here.
    fn frame(&self, event: &StoredEvent) -> String {
        let document = self.shown.event(event).replace(['\n', '\r'], " ");
        format!("id: {}\nevent: {}\ndata: {document}\n\n", event.run_seq, event.event_type.replace(['\n', '\r'], " "))
    }

    fn end(&self, status: &str) -> News {
        let after = self.after;
        let text = format!("event: {END_EVENT}\ndata: {{\"status\":\"{status}\",\"lastEventSeq\":{after}}}\n\n");
        News::Last(Bytes::from(text))
    }
}

/// Nothing more will come by itself.
fn has_ended(row: &RunRow) -> bool {
    row.status.is_terminal() || row.quarantined.is_some()
}
