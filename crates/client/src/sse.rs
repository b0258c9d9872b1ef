//! Server-sent events as a parser without IO: bytes in, events out, whatever the chunks look like.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The last id seen so far, as the standard has it: an event without one keeps the earlier.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: String,
}

/// Bytes of one event. A stream that exceeds it is no stream of ours.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Parser {
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    id: Option<String>,
    name: String,
    data: String,
    has_data: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("an event is longer than {EVENT_BYTES_MAX} bytes")]
    TooLong,
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

impl Parser {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.buffer.len() + self.data.len() + bytes.len() > EVENT_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole event, if it is there.
    pub(crate) fn next_event(&mut self) -> Result<Option<SseEvent>, Malformed> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.field(&line);
            } else if self.has_data {
                self.has_data = false;
                let name = std::mem::take(&mut self.name);
                let data = std::mem::take(&mut self.data);
                return Ok(Some(SseEvent { id: self.id.clone(), name, data }));
            } else {
                self.name.clear();
            }
        }
        Ok(None)
    }

    /// Lines end with LF or CRLF. A lone CR, which the standard also allows, is not used by any server we talk to, and
    /// waiting for what follows it would hold back the last event.
    fn next_line(&mut self) -> Result<Option<String>, Malformed> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let end = self.searched + end;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        self.searched = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|_| Malformed::NotUtf8)
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // Comments begin with a colon, so their name is empty.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": keep-alive\n\nid: 1\nevent: RunQueued\ndata: {\"a\":\ndata: 1}\n\n\
                          data:zwei\r\nunknown: x\r\n\r\nevent: dropped\n\nid: 9\nevent: end\ndata\n\ndata: half";

    fn event(id: &str, name: &str, data: &str) -> SseEvent {
        SseEvent { id: Some(id.to_owned()), name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_the_same_however_the_bytes_arrive() {
        let expected = [event("1", "RunQueued", "{\"a\":\n1}"), event("1", "", "zwei"), event("9", "end", "")];
        for size in 1..=STREAM.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for chunk in STREAM.as_bytes().chunks(size) {
                parser.push(chunk).unwrap();
                while let Some(event) = parser.next_event().unwrap() {
                    events.push(event);
                }
            }
            assert_eq!(events, expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_character_may_be_split_but_must_be_one() {
        let mut parser = Parser::default();
        let bytes = "data: ü\n\n".as_bytes();
        parser.push(&bytes[..7]).unwrap();
        assert_eq!(parser.next_event(), Ok(None));
        parser.push(&bytes[7..]).unwrap();
        assert_eq!(parser.next_event().unwrap().unwrap().data, "ü");
        parser.push(b"data: \xff\n\n").unwrap();
        assert_eq!(parser.next_event(), Err(Malformed::NotUtf8));
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; EVENT_BYTES_MAX / 2];
        parser.push(&chunk).unwrap();
        assert_eq!(parser.next_event(), Ok(None));
        parser.push(&chunk).unwrap();
        assert_eq!(parser.push(b"x"), Err(Malformed::TooLong));
    }
}
