//! Server-sent events: what is there, then what comes, until the source has ended.
//!
//! The log is the truth and is read again from time to time; a wake-up only makes it sooner. A stream holds nothing that is
//! in the log: a slow reader costs a small buffer.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use servo_model::TenantId;
use servo_sched::Held;
use tokio::sync::watch;

use crate::app::App;
use crate::error::Answer;
use crate::opened::Opened;
use crate::rooms::place;

/// Quiet connections are cut by proxies; a comment keeps them open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a source has to say.
pub(crate) enum News {
    Some(Bytes),
    /// Nothing now, or the store cannot be read; the stream goes on when it can.
    None,
    /// The end, with the words for it.
    Last(Bytes),
    /// Nobody will ever say anything.
    Gone,
}

/// Something that is followed.
pub(crate) trait Source: Send + 'static {
    /// Sent at once as a comment, so that the headers are.
    const OPENING: &'static str;
    /// After a wake-up, more is likely to come: so long until one read takes it together.
    const GATHER: Duration;

    /// What there is to send now.
    fn read(&mut self) -> impl Future<Output = News> + Send;
}

/// Starts a stream. What it follows is known to exist.
pub(crate) fn follow<S: Source>(app: &App, opened: Opened, source: S) -> Answer<Response> {
    let place = place(&app.rooms.streams, opened.tenant(), "streams are open")?;
    let log = app.runtime.engine().wake().watch_log();
    let follow = Follow { app: app.clone(), opened, source, log, quiet: Duration::ZERO, ended: false, _place: place };
    let opening = stream::iter([Bytes::from(format!(": {}\n\n", S::OPENING))]);
    let body = opening.chain(stream::unfold(follow, Follow::next)).map(Ok::<_, std::convert::Infallible>);
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(body)).into_response())
}

struct Follow<S> {
    app: App,
    opened: Opened,
    source: S,
    log: watch::Receiver<u64>,
    /// How long nothing was sent.
    quiet: Duration,
    ended: bool,
    _place: Held<TenantId>,
}

impl<S: Source> Follow<S> {
    /// The next piece of the stream, whenever there is one.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended && self.opened.may_stay(&self.app).await {
            self.log.mark_unchanged();
            match self.source.read().await {
                News::Some(piece) => {
                    self.quiet = Duration::ZERO;
                    return Some((piece, self));
                }
                News::Last(piece) => {
                    self.ended = true;
                    return Some((piece, self));
                }
                News::Gone => return None,
                News::None => {}
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

    /// Waits for a sign that the log grew, or for a while. False when the server stops.
    async fn wait(&mut self) -> bool {
        let engine = self.app.runtime.engine();
        let poll = engine.config().poll().max(S::GATHER);
        tokio::select! {
            biased;
            () = self.app.shutdown.triggered() => return false,
            () = engine.shutdown().triggered() => return false,
            changed = self.log.changed() => {
                if changed.is_err() {
                    return false;
                }
                engine.clock().sleep(S::GATHER).await;
                self.quiet += S::GATHER;
            }
            () = engine.clock().sleep(poll) => self.quiet += poll,
        }
        true
    }
}
