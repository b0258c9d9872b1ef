//! Reading a run's events: what is there, or what comes.

use servo_client::Followed;
use servo_model::RunId;
use servo_wire::v1::EventPage;

use crate::args::{EventsArgs, Format};
use crate::failure::{Failure, exit};
use crate::output::json;
use crate::run::{Session, interruptible};
use crate::view::{EventLine, OperationNames};

/// Events per request.
const PAGE: u32 = 1_000;

/// Every event that is there. Only JSON, which is one document, waits for the last page.
pub(super) async fn all(session: &Session, run: &RunId, args: &EventsArgs) -> Result<u8, Failure> {
    let Session { client, out } = session;
    interruptible(async {
        let mut left = args.limit.unwrap_or(u64::MAX);
        let mut whole = EventPage { events: Vec::new(), last_event_seq: 0, next_after: args.after };
        loop {
            let limit = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
            let page = client.events(run, whole.next_after, Some(limit)).await?;
            left = left.saturating_sub(page.events.len() as u64);
            let is_last = page.events.is_empty() || page.next_after >= page.last_event_seq || left == 0;
            whole.last_event_seq = page.last_event_seq;
            whole.next_after = page.next_after;
            if out.format() == Format::Json {
                whole.events.extend(page.into_value().events);
            } else {
                out.data(&*page, page.raw())?;
            }
            if is_last {
                break;
            }
        }
        if out.format() == Format::Json {
            out.print(&whole)?;
        }
        Ok(exit::OK)
    })
    .await
}

/// Every event from a point on, until the run ends.
pub(super) async fn follow(session: &Session, run: &RunId, after: u64) -> Result<u8, Failure> {
    interruptible(async {
        let mut follower = session.client.follow_events(run, after);
        let mut names = OperationNames::default();
        while let Some(event) = follower.next().await? {
            session.out.text(&line(session, &mut names, &event))?;
        }
        Ok(exit::OK)
    })
    .await
}

fn line(session: &Session, names: &mut OperationNames, event: &Followed) -> String {
    match session.out.format() {
        Format::Table => names.name(EventLine::of(event.document.get())).text(&session.out.line_style()),
        // A stream is no single document, so each event is one.
        Format::Json | Format::Jsonl => json::compact(event.document.get()),
        Format::Ids => EventLine::of(event.document.get()).event_id,
    }
}
