//! The body of an action: whole, or an error. A connection that ends closes the body, too, and on HTTP/2 a reset looks like its end; a
//! handler that goes on without its caller must not take what has come so far for all there is.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::Version;
use axum::http::header::CONTENT_LENGTH;
use futures_util::Stream;

use super::Note;

struct Whole {
    body: BodyDataStream,
    note: Note,
    /// On HTTP/2 only the stream's own mark says that this is the end.
    marked: bool,
    /// Bytes that were announced and have not come.
    owed: Option<u64>,
    over: bool,
}

/// The request with a body that ends only where its caller has ended it.
pub(super) fn whole(request: Request, note: &Note) -> Request {
    let marked = request.version() == Version::HTTP_2;
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    request.map(|body| {
        if body.is_end_stream() {
            return body;
        }
        let body = body.into_data_stream();
        Body::from_stream(Whole { body, note: note.clone(), marked, owed: announced, over: false })
    })
}

impl Stream for Whole {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let piece = match self.note.is_left() {
            true => None,
            false => ready!(Pin::new(&mut self.body).poll_next(context)),
        };
        if let Some(Ok(bytes)) = &piece {
            let came = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.owed = self.owed.map(|owed| owed.saturating_sub(came));
            return Poll::Ready(piece);
        }
        self.over = true;
        let ended = piece.is_none()
            && !self.note.is_left()
            && (!self.marked || self.body.is_end_stream())
            && self.owed.is_none_or(|owed| owed == 0);
        if ended {
            return Poll::Ready(None);
        }
        self.note.cut_short();
        Poll::Ready(Some(Err(axum::Error::new("the body ended early"))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// What a handler reads of a body that comes in these pieces: `None` if it is told that it ended early.
    async fn read(
        version: Version,
        announced: Option<u64>,
        left: bool,
        pieces: &[&'static str],
    ) -> (Option<String>, bool) {
        let pieces: Vec<Result<Bytes, axum::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let mut request = Request::new(Body::from_stream(stream::iter(pieces)));
        *request.version_mut() = version;
        if let Some(length) = announced {
            request.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        let note = Note::default();
        if left {
            note.leave_caller();
        }
        let body = axum::body::to_bytes(whole(request, &note).into_body(), 1_000).await.ok();
        (body.map(|body| String::from_utf8(body.to_vec()).unwrap()), note.is_cut_short())
    }

    #[tokio::test]
    async fn a_body_is_whole_or_an_error() {
        let one = Version::HTTP_11;
        assert_eq!(read(one, Some(4), false, &["ab", "cd"]).await, (Some("abcd".to_owned()), false));
        assert_eq!(read(one, None, false, &["ab", "cd"]).await, (Some("abcd".to_owned()), false));
        assert_eq!(read(one, Some(5), false, &["ab", "cd"]).await, (None, true), "fewer than announced");
        assert_eq!(read(one, None, true, &["ab", "cd"]).await, (None, true), "its caller has gone");
        // This one has no mark of its end, as a stream that was reset.
        assert_eq!(read(Version::HTTP_2, None, false, &["ab"]).await, (None, true), "reset");
    }
}
