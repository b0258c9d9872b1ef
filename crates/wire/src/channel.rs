//! The channel: many calls of the durable execution API over one long HTTP request, so that a checkpoint costs a frame and
//! not a request. The body of the request carries calls, the body of the answer their answers, in any order.
//!
//! A frame is the length of what follows (four bytes, big endian), the number of the call (four bytes), and its content. A call
//! is the ARN (two bytes of length before it) and the document of the request; an answer is the status (two bytes), the name
//! of the error (one byte of length before it, empty for a success) and the document of the answer. Call 0 is
//! never answered: it says that its sender is still there.

/// Where the channel is, and what it carries.
pub const PATH: &str = "/v1/channel";
pub const CONTENT_TYPE: &str = "application/vnd.servo.channel";
/// Call numbers begin behind it.
pub const ALIVE: u32 = 0;
/// A channel that is opened with this header, of any value, has answers without what their call has said itself: operations that
/// it has begun and ended (`OperationUpdate::says_all`). A service that does not know it leaves nothing out.
pub const NEWS_ONLY: &str = "servo-news-only";

const LENGTH_BYTES: usize = 4;
const HEAD_BYTES: usize = 4;

/// The bytes are no frames. What comes behind cannot be told apart any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Garbled {
    /// A frame is longer than the reader takes.
    TooLong { bytes: usize, most: usize },
    /// A frame is shorter than what it says that it holds.
    TooShort,
    /// A name or an ARN is not UTF-8.
    NotText,
}

impl std::fmt::Display for Garbled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { bytes, most } => {
                write!(f, "a frame has {bytes} bytes, more than the {most} that it may have")
            }
            Self::TooShort => f.write_str("a frame ends too early"),
            Self::NotText => f.write_str("a frame names something that is not UTF-8"),
        }
    }
}

impl std::error::Error for Garbled {}

/// One call or answer, borrowed from the bytes that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub call: u32,
    content: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFrame<'a> {
    pub arn: &'a str,
    pub body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerFrame<'a> {
    pub status: u16,
    /// The name of the error; empty for a success.
    pub name: &'a str,
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn as_call(&self) -> Result<CallFrame<'a>, Garbled> {
        let (length, rest) = self.content.split_first_chunk::<2>().ok_or(Garbled::TooShort)?;
        let (arn, body) = rest.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(Garbled::TooShort)?;
        Ok(CallFrame { arn: text(arn)?, body })
    }

    pub fn as_answer(&self) -> Result<AnswerFrame<'a>, Garbled> {
        let (status, rest) = self.content.split_first_chunk::<2>().ok_or(Garbled::TooShort)?;
        let ([length], rest) = rest.split_first_chunk::<1>().ok_or(Garbled::TooShort)?;
        let (name, body) = rest.split_at_checked((*length).into()).ok_or(Garbled::TooShort)?;
        Ok(AnswerFrame { status: u16::from_be_bytes(*status), name: text(name)?, body })
    }
}

fn text(bytes: &[u8]) -> Result<&str, Garbled> {
    std::str::from_utf8(bytes).map_err(|_| Garbled::NotText)
}

/// Appends a call. False, and nothing is appended, if the ARN or the document is too long for a frame.
pub fn put_call(out: &mut Vec<u8>, call: u32, arn: &str, body: &[u8]) -> bool {
    let Ok(arn_bytes) = u16::try_from(arn.len()) else { return false };
    put(out, call, &[&arn_bytes.to_be_bytes(), arn.as_bytes(), body])
}

/// Appends an answer. A name is cut off where it would be too long.
pub fn put_answer(out: &mut Vec<u8>, call: u32, status: u16, name: &str, body: &[u8]) -> bool {
    let end = name.floor_char_boundary(u8::MAX.into());
    let length = u8::try_from(end).unwrap_or(0);
    put(out, call, &[&status.to_be_bytes(), &[length], &name.as_bytes()[..usize::from(length)], body])
}

/// Appends a sign of life.
pub fn put_alive(out: &mut Vec<u8>) {
    put(out, ALIVE, &[]);
}

fn put(out: &mut Vec<u8>, call: u32, parts: &[&[u8]]) -> bool {
    let content: usize = parts.iter().map(|part| part.len()).sum();
    let Ok(length) = u32::try_from(HEAD_BYTES + content) else { return false };
    out.reserve(LENGTH_BYTES + HEAD_BYTES + content);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&call.to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    true
}

/// Puts frames together from pieces that end anywhere.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// What was read of the buffer.
    read: usize,
    most: usize,
}

/// What is kept for the next frame when a large one was read.
const KEPT_BYTES: usize = 64 * 1024;

impl Frames {
    /// `most` is the longest frame that is taken.
    pub fn new(most: usize) -> Self {
        Self { buffer: Vec::new(), read: 0, most }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
            self.read = 0;
        } else if self.read > self.buffer.len() / 2 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes of frames that were not read yet.
    pub fn unread(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// The next whole frame, if it is there.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Garbled> {
        let Some((length, rest)) = self.buffer[self.read..].split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let bytes = u32::from_be_bytes(*length) as usize;
        if bytes > self.most {
            return Err(Garbled::TooLong { bytes, most: self.most });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        let (call, content) = rest[..bytes].split_first_chunk::<HEAD_BYTES>().ok_or(Garbled::TooShort)?;
        self.read += LENGTH_BYTES + bytes;
        Ok(Some(Frame { call: u32::from_be_bytes(*call), content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        let mut out = Vec::new();
        assert!(put_call(&mut out, 7, "arn:a/ä", b"{}"));
        put_alive(&mut out);
        assert!(put_answer(&mut out, 8, 400, "InvalidParameterValueException", b"{\"message\":\"no\"}"));
        out
    }

    /// Wherever the pieces end, the same frames come out.
    #[test]
    fn frames_survive_any_cut() {
        let whole = bytes();
        for size in 1..=whole.len() {
            let mut frames = Frames::new(1_000);
            let mut seen = Vec::new();
            for piece in whole.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.next_frame().unwrap() {
                    seen.push((frame.call, frame.content.to_vec()));
                }
            }
            assert_eq!(seen.iter().map(|(call, _)| *call).collect::<Vec<_>>(), [7, ALIVE, 8], "pieces of {size}");
            let call = Frame { call: 7, content: &seen[0].1 }.as_call().unwrap();
            assert_eq!((call.arn, call.body), ("arn:a/ä", b"{}".as_slice()));
            let answer = Frame { call: 8, content: &seen[2].1 }.as_answer().unwrap();
            assert_eq!((answer.status, answer.name), (400, "InvalidParameterValueException"));
            assert_eq!(answer.body, b"{\"message\":\"no\"}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut frames = Frames::new(16);
        frames.push(&17_u32.to_be_bytes());
        assert_eq!(frames.next_frame(), Err(Garbled::TooLong { bytes: 17, most: 16 }));
        let mut frames = Frames::new(16);
        frames.push(&[0, 0, 0, 3, 1, 2, 3]);
        assert_eq!(frames.next_frame(), Err(Garbled::TooShort));
        for content in [&[][..], &[0], &[0, 9, b'a'], &[0, 1, 0xff]] {
            assert!(Frame { call: 1, content }.as_call().is_err(), "{content:?}");
        }
        for content in [&[][..], &[0, 200], &[0, 200, 4, b'a'], &[0, 200, 1, 0xff]] {
            assert!(Frame { call: 1, content }.as_answer().is_err(), "{content:?}");
        }
        assert!(!put_call(&mut Vec::new(), 1, &"a".repeat(70_000), b""));
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        let mut out = Vec::new();
        assert!(put_answer(&mut out, 1, 500, &"ä".repeat(200), b"{}"));
        let mut frames = Frames::new(1_000);
        frames.push(&out);
        let frame = frames.next_frame().unwrap().unwrap();
        assert_eq!(frame.as_answer().unwrap().name, "ä".repeat(127));
    }
}
