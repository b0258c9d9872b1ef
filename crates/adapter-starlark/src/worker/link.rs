//! The child's end of the pipes. A broken pipe means that the parent is gone or has lost interest: the child ends.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;

use crate::protocol::{FromChild, PREFIX_BYTES, TO_CHILD_BYTES_MAX, ToChild, encode, lengths};

#[derive(Debug)]
pub(crate) struct Link {
    input: File,
    output: File,
}

impl Link {
    /// Takes over standard input and output; nothing else in a child uses them.
    #[expect(unsafe_code, reason = "a child owns its standard input and output; std's own handles buffer and lock")]
    pub(crate) fn standard() -> Self {
        // SAFETY: both descriptors are open pipes that the parent made, and this is called once.
        unsafe { Self { input: File::from_raw_fd(0), output: File::from_raw_fd(1) } }
    }

    pub(crate) fn send(&mut self, head: &FromChild, body: &[u8]) {
        let Ok(mut frame) = encode(head, body.len()) else { super::broken("a frame cannot be written") };
        // One write for small frames: the parent wakes once.
        let sent = if body.len() < 64 * 1024 {
            frame.extend_from_slice(body);
            self.output.write_all(&frame)
        } else {
            self.output.write_all(&frame).and_then(|()| self.output.write_all(body))
        };
        if sent.is_err() {
            std::process::exit(0);
        }
    }

    pub(crate) fn receive(&mut self) -> (ToChild, Vec<u8>) {
        let mut prefix = [0; PREFIX_BYTES];
        if self.input.read_exact(&mut prefix).is_err() {
            std::process::exit(0);
        }
        let Some((head, body)) = lengths(prefix, TO_CHILD_BYTES_MAX) else { super::broken("a frame is too large") };
        let mut bytes = vec![0; head + body];
        if self.input.read_exact(&mut bytes).is_err() {
            std::process::exit(0);
        }
        let body = bytes.split_off(head);
        match serde_json::from_slice(&bytes) {
            Ok(head) => (head, body),
            Err(error) => super::broken(&format!("a frame cannot be read: {error}")),
        }
    }
}
