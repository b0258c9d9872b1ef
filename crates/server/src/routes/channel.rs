//! The channel: a handler's process makes all its checkpoints over one request. Calls come in as frames of its body, run side
//! by side, and are answered as frames of the answer's body. Those that one commit of the store ends go out together.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _, unfold};
use servo_model::{Role, TenantId};
use servo_runtime::executions::Refused;
use servo_sched::Held;
use servo_wire::channel::{ALIVE, CONTENT_TYPE, Frames, Garbled, NEWS_ONLY, put_alive, put_answer};
use servo_wire::lambda::{CheckpointRequest, ErrorBody, ErrorName};

use super::lambda::{BODY_BYTES_MAX, LambdaAnswer, LambdaError, document};
use crate::app::App;
use crate::auth::{identify, require};
use crate::error::Answer;
use crate::link::belongs_to;
use crate::metrics::Answers;
use crate::opened::Opened;
use crate::rooms::{Whose, busy, place};

/// Calls of one channel at once. No more are read until one is answered.
const CALLS_MAX: usize = 256;
/// Bytes of the calls under way, beyond which no more are read.
const CALLS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A quiet channel says so often that it is there, so that either side notices when the other is gone.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// As which its calls are counted: what they do does not depend on the way they came.
const ROUTE: &str = "/2025-12-01/durable-executions/{arn}/checkpoint";

pub(super) async fn open(State(app): State<App>, request: Request) -> Answer<Response> {
    let (parts, body) = request.into_parts();
    let caller = identify(&app, &parts).await?;
    require(&caller, Role::Operator)?;
    let whose = Whose::Tenant(caller.tenant.clone());
    belongs_to(&app, &parts, &whose)?;
    let place = place(&app.rooms.channels, &caller.tenant, "channels are open")?;
    let room = app.rooms.bodies.take(&whose, 0).map_err(|full| busy(full, crate::body::BODIES))?;
    let patience = Duration::from_millis(app.config.body_timeout_ms);
    // In a box, because the stream moves it with every answer.
    let channel = Box::new(Channel {
        tenant: caller.tenant.clone(),
        news_only: parts.headers.contains_key(NEWS_ONLY),
        opened: Opened::new(parts, &caller),
        body: body.into_data_stream(),
        frames: Frames::new(BODY_BYTES_MAX),
        calls: FuturesUnordered::new(),
        bytes: 0,
        room,
        patience,
        unfinished: None,
        closing: false,
        answers: Answers::of("POST", ROUTE, 200),
        app,
        _place: place,
    });
    let answers = unfold(channel, |mut channel| async move {
        let chunk = channel.next_answers().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), channel))
    });
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::from_stream(answers)).into_response())
}

struct Channel {
    app: App,
    tenant: TenantId,
    news_only: bool,
    opened: Opened,
    body: BodyDataStream,
    frames: Frames,
    calls: FuturesUnordered<BoxFuture<'static, Answered>>,
    /// Of the calls under way.
    bytes: usize,
    /// For those bytes, and for those of a call that has not come as a whole.
    room: Held<Whose>,
    /// How long a call may take to come.
    patience: Duration,
    /// When the one that is coming must be there.
    unfinished: Option<Instant>,
    /// No more calls are taken; those under way are answered.
    closing: bool,
    /// Where most of its calls are counted.
    answers: Answers,
    _place: Held<TenantId>,
}

struct Answered {
    call: u32,
    /// Of the call's document.
    bytes: usize,
    answer: LambdaAnswer<Vec<u8>>,
}

impl Channel {
    /// The frames that are to be sent next; `None` at the end.
    async fn next_answers(&mut self) -> Option<Vec<u8>> {
        let clock = self.app.runtime.engine().clock().clone();
        let shutdown = self.app.shutdown.clone();
        loop {
            if self.closing && self.calls.is_empty() {
                return None;
            }
            let has_room = !self.closing && self.calls.len() < CALLS_MAX && self.bytes < CALLS_BYTES_MAX;
            tokio::select! {
                biased;
                Some(answered) = self.calls.next(), if !self.calls.is_empty() => {
                    // The store is still answering others of the same commit.
                    tokio::task::yield_now().await;
                    return Some(self.write(answered));
                }
                // Before the next calls, which may never stop coming.
                () = shutdown.triggered(), if !self.closing => self.closing = true,
                piece = self.body.next(), if has_room => match piece {
                    Some(Ok(piece)) => self.take(&piece).await,
                    Some(Err(_)) | None => self.closing = true,
                },
                () = until(self.unfinished), if has_room => {
                    tracing::debug!("a channel is closed: a call did not arrive in time");
                    self.closing = true;
                }
                () = clock.sleep(ALIVE_EVERY) => {
                    let mut out = Vec::new();
                    put_alive(&mut out);
                    return Some(out);
                }
            }
        }
    }

    /// An answer, and all others that are there by now.
    fn write(&mut self, first: Answered) -> Vec<u8> {
        let mut out = Vec::new();
        let mut next = Some(first);
        while let Some(Answered { call, bytes, answer }) = next {
            self.bytes -= bytes;
            match answer {
                Ok(body) => put_answer(&mut out, call, 200, "", &body),
                Err(LambdaError(Refused { name, message })) => {
                    let body = serde_json::to_vec(&ErrorBody::new(name, &message)).unwrap_or_default();
                    put_answer(&mut out, call, name.status(), name.as_str(), &body)
                }
            };
            next = self.calls.next().now_or_never().flatten();
        }
        self.settle();
        out
    }

    /// Starts the calls that are whole with this piece of the body.
    async fn take(&mut self, piece: &[u8]) {
        self.frames.push(piece);
        self.closing |= !self.opened.may_stay(&self.app).await;
        let before = self.calls.len();
        if let Err(garbled) = self.start_calls() {
            tracing::warn!(%garbled, "a channel is closed");
            self.closing = true;
        }
        let is_next = self.calls.len() > before;
        self.unfinished = match self.frames.unread() {
            0 => None,
            _ if is_next => Some(Instant::now() + self.patience),
            _ => self.unfinished.or_else(|| Some(Instant::now() + self.patience)),
        };
        self.settle();
    }

    /// Takes the room that its bytes need, or gives back what they need no more. Without room no more calls are taken: a client opens
    /// another channel, or calls without one.
    fn settle(&mut self) {
        let needed = self.frames.unread() + self.bytes;
        let held = self.room.amount();
        if needed <= held {
            self.room.shrink(held - needed);
        } else if self.room.grow(needed - held).is_err() {
            tracing::debug!("a channel is closed: its tenant has too many large bodies under way");
            self.closing = true;
        }
        if self.closing {
            self.unfinished = None;
        }
    }

    fn start_calls(&mut self) -> Result<(), Garbled> {
        while let Some(frame) = self.frames.next_frame()?.filter(|_| !self.closing) {
            if frame.call == ALIVE {
                continue;
            }
            let call = frame.as_call()?;
            let (number, bytes) = (frame.call, call.body.len());
            let request = std::str::from_utf8(call.body)
                .map_err(|_| LambdaError::new(ErrorName::InvalidRequestContent, "the body is not UTF-8"))
                .and_then(document::<CheckpointRequest>);
            let (app, tenant, arn) = (self.app.clone(), self.tenant.clone(), call.arn.to_owned());
            let (answers, news_only) = (self.answers.clone(), self.news_only);
            self.bytes += bytes;
            self.calls.push(Box::pin(async move {
                let began = Instant::now();
                let called =
                    AssertUnwindSafe(checkpoint((&app, news_only), &tenant, &arn, request)).catch_unwind().await;
                let failed = |_| Err(LambdaError::new(ErrorName::Service, "the service failed; try again"));
                let answer = called.unwrap_or_else(failed);
                match &answer {
                    Ok(_) => answers.note(began.elapsed()),
                    Err(error) => crate::metrics::request("POST", ROUTE, error.0.name.status(), began.elapsed()),
                }
                Answered { call: number, bytes, answer }
            }));
        }
        Ok(())
    }
}

/// Ready at that moment, if there is one.
async fn until(moment: Option<Instant>) {
    let Some(moment) = moment else { return std::future::pending().await };
    let _ = tokio::time::timeout_at(moment.into(), std::future::pending::<()>()).await;
}

async fn checkpoint(
    (app, news_only): (&App, bool),
    tenant: &TenantId,
    arn: &str,
    request: LambdaAnswer<CheckpointRequest>,
) -> LambdaAnswer<Vec<u8>> {
    let executions = app.runtime.executions();
    let response = match news_only {
        true => executions.checkpoint_for_news(tenant, arn, request?).await?,
        false => executions.checkpoint(tenant, arn, request?).await?,
    };
    let unwritten = |_| LambdaError::new(ErrorName::Service, "the answer could not be written");
    serde_json::to_vec(&response).map_err(unwritten)
}
