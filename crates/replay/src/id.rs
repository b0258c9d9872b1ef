//! Operation ids: minted where the operation is called, in program order, from the parent's id and a counter. They do not
//! depend on names, arguments or time, so the same program asks for the same ids on every replay.

use std::sync::atomic::{AtomicU64, Ordering};

use servo_canon::Digest;

/// The id of the `position`-th operation (from 1) of a context. 64 hexadecimal digits, which is all that the service takes.
pub fn operation_id(parent: Option<&str>, position: u64) -> String {
    let path = match parent {
        Some(parent) => format!("{parent}-{position}"),
        None => position.to_string(),
    };
    Digest::of(path.as_bytes()).to_string()
}

/// The ids of one context. Calls from several threads never get the same one.
#[derive(Debug)]
pub struct Ids {
    parent: Option<String>,
    minted: AtomicU64,
}

impl Ids {
    pub fn new(parent: Option<String>) -> Self {
        Self { parent, minted: AtomicU64::new(0) }
    }

    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    pub fn mint(&self) -> String {
        let position = self.minted.fetch_add(1, Ordering::Relaxed) + 1;
        operation_id(self.parent(), position)
    }
}
