//! One connection of the load: HTTP/1.1 with as little as it takes. The load runs on the cores of what it measures, and a
//! general client costs as much per call as a fast server does.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::load::{Call, NUMBER};

const HEADERS_MAX: usize = 64;
const READ_AT_ONCE: usize = 16 * 1024;
const ANSWER_MAX: usize = 8 * 1024 * 1024;

pub(super) struct Lane {
    stream: TcpStream,
    /// All of a request before the length of its body.
    head: String,
    body: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Lane {
    pub(super) async fn connect(address: SocketAddr, call: &Call) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        let mut head = format!("POST {} HTTP/1.1\r\nhost: {address}\r\n", call.path);
        if !call.body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in &call.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("content-length: ");
        Ok(Self {
            stream,
            head,
            body: call.body.clone(),
            request: Vec::new(),
            answer: Vec::with_capacity(READ_AT_ONCE),
        })
    }

    /// Sends the call with its number, and reads the whole answer. Whatever is no success is an error.
    pub(super) async fn call(&mut self, number: usize) -> Result<()> {
        self.request.clear();
        let numbered;
        let body = if self.body.contains(NUMBER) {
            numbered = self.body.replace(NUMBER, &number.to_string());
            &numbered
        } else {
            &self.body
        };
        self.request.extend_from_slice(self.head.as_bytes());
        self.request.extend_from_slice(format!("{}\r\n\r\n{body}", body.len()).as_bytes());
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            ensure!(self.answer.len() <= ANSWER_MAX, "an answer of over {ANSWER_MAX} bytes");
            self.answer.reserve(READ_AT_ONCE);
            ensure!(self.stream.read_buf(&mut self.answer).await? > 0, "the connection was closed before the answer");
            match whole(&self.answer)? {
                Some(true) => return Ok(()),
                Some(false) => bail!("answered {}", String::from_utf8_lossy(&self.answer)),
                None => {}
            }
        }
    }
}

/// Whether an answer is a success, once it is whole.
fn whole(answer: &[u8]) -> Result<Option<bool>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(answer)? else { return Ok(None) };
    let header = |name: &str| head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    let body = answer.get(length..).unwrap_or_default();
    let ended = match header("content-length") {
        Some(length) => body.len() >= std::str::from_utf8(length.value)?.trim().parse()?,
        None if header("transfer-encoding").is_some() => chunks_end(body)?,
        None => true,
    };
    let good = matches!(head.code, Some(200..=299)) && header("x-amz-function-error").is_none();
    Ok(ended.then_some(good))
}

/// Whether the last chunk is there; no subject sends trailers.
fn chunks_end(mut body: &[u8]) -> Result<bool> {
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(body) else {
            ensure!(body.len() < READ_AT_ONCE, "not the size of a chunk");
            return Ok(false);
        };
        let end = start + usize::try_from(size)? + 2;
        match body.get(end..) {
            Some(_) if size == 0 => return Ok(true),
            Some(rest) => body = rest,
            None => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_by_its_length_or_its_last_chunk_and_good_by_its_status() {
        let table: [(&str, Option<bool>); 9] = [
            ("HTTP/1.1 200 OK\r\ncontent-le", None),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{", None),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", Some(true)),
            ("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", Some(true)),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some(true)),
            ("HTTP/1.1 200 OK\r\nx-amz-function-error: Unhandled\r\ncontent-length: 0\r\n\r\n", Some(false)),
            ("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", Some(false)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", None),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", Some(true)),
        ];
        for (answer, expected) in table {
            assert_eq!(whole(answer.as_bytes()).unwrap(), expected, "{answer:?}");
        }
        assert!(whole(b"nonsense\r\n\r\n").is_err());
    }
}
