//! The child's end of the pipes. A broken pipe means that the parent is gone or has lost interest: the child ends.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::os::fd::FromRawFd as _;
use std::sync::Arc;

use super::outbox::Outbox;
use crate::protocol::{FromChild, PREFIX_BYTES, TO_CHILD_BYTES_MAX, ToChild, lengths};

#[derive(Debug)]
pub(crate) struct Link {
    /// A frame comes with one read, if it is small.
    input: BufReader<File>,
    pub(crate) outbox: Arc<Outbox>,
}

impl Link {
    /// Takes over standard input; nothing else in a child uses it.
    #[expect(unsafe_code, reason = "a child owns its standard input; std's own handle buffers and locks")]
    pub(crate) fn standard(outbox: Arc<Outbox>) -> Self {
        // SAFETY: the descriptor is an open pipe that the parent made, and this is called once.
        let input = unsafe { File::from_raw_fd(0) };
        Self { input: BufReader::new(input), outbox }
    }

    pub(crate) fn send(&self, head: &FromChild, body: &[u8]) {
        self.outbox.send(head, body);
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
