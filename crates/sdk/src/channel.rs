//! The client's end of a channel (`servo_wire::channel`): calls of all executions of this process go out together over one
//! request, as frames of its body, and their answers come back as frames of the answer.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use reqwest::{Body, Response, StatusCode};
use servo_wire::channel::{ALIVE, CONTENT_TYPE, Frames, NEWS_ONLY, put_call};
use tokio::sync::oneshot;

use crate::service::ServiceError;

/// Opening takes a round trip, so anything slower is as good as no answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// The server says every quarter of a minute that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
}

/// What a client knows about its channel.
#[derive(Debug, Clone, Default)]
pub(crate) enum Known {
    #[default]
    Nothing,
    Open(Channel),
    /// The service has none: every call is a request of its own.
    Absent,
}

/// Clones are the same channel.
#[derive(Debug, Clone)]
pub(crate) struct Channel(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    /// Frames that wait to be sent.
    out: Vec<u8>,
    last_call: u32,
    waiting: HashMap<u32, oneshot::Sender<Answer>>,
    /// Who sends them.
    sender: Option<Waker>,
    /// The sender has let others go first.
    has_yielded: bool,
    /// Why the channel is over.
    ended: Option<String>,
}

impl Channel {
    /// Opens a channel with this request.
    pub(crate) async fn open(request: reqwest::RequestBuilder, answer_max: usize) -> Result<Known, ServiceError> {
        let channel = Self(Arc::default());
        let request = request
            .header(reqwest::header::CONTENT_TYPE, CONTENT_TYPE)
            .header(NEWS_ONLY, "1")
            .body(Body::wrap_stream(Outgoing(channel.clone())));
        let opened = tokio::time::timeout(OPEN_TIMEOUT, request.send()).await;
        let response = match opened {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(crate::http::unreachable(&error)),
            // Something in between may wait for the end of the request.
            Err(_) => return Ok(Known::Absent),
        };
        let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
        if !response.status().is_success() || kind.is_none_or(|kind| kind != CONTENT_TYPE) {
            let busy = response.status().is_server_error() || response.status() == StatusCode::TOO_MANY_REQUESTS;
            return Ok(if busy { Known::Nothing } else { Known::Absent });
        }
        channel.listen(response, answer_max);
        Ok(Known::Open(channel))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.with(|shared| shared.ended.is_none())
    }

    /// Makes a call. Without an answer it may have been carried out.
    pub(crate) async fn call(&self, arn: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let (sender, answer) = oneshot::channel();
        let waker = self.with(|shared| {
            if let Some(reason) = &shared.ended {
                return Err(ServiceError::Unreachable(reason.clone()));
            }
            shared.last_call = shared.last_call.checked_add(1).unwrap_or(ALIVE + 1);
            let call = shared.last_call;
            if !put_call(&mut shared.out, call, arn, body) {
                return Err(ServiceError::Unreadable("the call is too long for a channel".to_owned()));
            }
            shared.waiting.insert(call, sender);
            Ok(shared.sender.take())
        })?;
        if let Some(waker) = waker {
            waker.wake();
        }
        answer.await.map_err(|_| {
            let reason = self.with(|shared| shared.ended.clone());
            ServiceError::Unreachable(reason.unwrap_or_else(|| "the channel is closed".to_owned()))
        })
    }

    #[expect(clippy::disallowed_methods, reason = "answers have to be taken in whoever waits for one at the moment")]
    fn listen(&self, mut response: Response, answer_max: usize) {
        let channel = self.clone();
        tokio::spawn(async move {
            let mut frames = Frames::new(answer_max);
            let reason = loop {
                match tokio::time::timeout(SILENCE_MAX, response.chunk()).await {
                    Ok(Ok(Some(chunk))) => {
                        frames.push(&chunk);
                        if let Err(reason) = channel.hand_over(&mut frames) {
                            break reason;
                        }
                    }
                    Ok(Ok(None)) => break "the service has closed the channel".to_owned(),
                    Ok(Err(error)) => break error.to_string(),
                    Err(_) => break "the service has fallen silent".to_owned(),
                }
            };
            channel.end(&reason);
        });
    }

    fn hand_over(&self, frames: &mut Frames) -> Result<(), String> {
        while let Some(frame) = frames.next_frame().map_err(|garbled| garbled.to_string())? {
            if frame.call == ALIVE {
                continue;
            }
            let answer = frame.as_answer().map_err(|garbled| garbled.to_string())?;
            let (status, name, body) = (answer.status, answer.name.to_owned(), answer.body.to_vec());
            if let Some(caller) = self.with(|shared| shared.waiting.remove(&frame.call)) {
                // The caller may have gone.
                let _ = caller.send(Answer { status, name, body });
            }
        }
        Ok(())
    }

    /// Whoever still waits learns that no answer comes.
    fn end(&self, reason: &str) {
        let (waker, waiting) = self.with(|shared| {
            shared.ended.get_or_insert_with(|| reason.to_owned());
            shared.out = Vec::new();
            (shared.sender.take(), std::mem::take(&mut shared.waiting))
        });
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Shared) -> T) -> T {
        // Nothing in here panics halfway.
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The request's body: whatever waits to be sent, as long as the channel is open.
struct Outgoing(Channel);

impl Stream for Outgoing {
    type Item = Result<Vec<u8>, std::convert::Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.with(|shared| {
            if shared.ended.is_some() {
                return Poll::Ready(None);
            }
            if shared.out.is_empty() {
                shared.sender = Some(cx.waker().clone());
                return Poll::Pending;
            }
            // Answers come many at a time, and so do the next calls: whoever is about to make one goes first, and all of
            // them leave in one write.
            shared.has_yielded = !shared.has_yielded;
            if shared.has_yielded {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(std::mem::take(&mut shared.out))))
        })
    }
}

/// The connection is gone: so is the channel.
impl Drop for Outgoing {
    fn drop(&mut self) {
        self.0.end("the connection was closed");
    }
}
