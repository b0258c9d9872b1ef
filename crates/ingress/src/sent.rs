//! The body of an answer that carries something along until it has been sent, or given up.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

#[derive(Debug)]
pub struct Sent<B, T> {
    body: B,
    _until: T,
}

impl<B, T> Sent<B, T> {
    /// `until` is dropped with the body.
    pub fn new(body: B, until: T) -> Self {
        Self { body, _until: until }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Sent<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
