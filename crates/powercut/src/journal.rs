//! Reading the recorder's journal.

use std::io;
use std::path::Path;

/// One operation on a file, in the order the program made them.
#[derive(Debug)]
pub(crate) struct Operation {
    pub file: String,
    /// The file's size before it.
    pub size_before: u64,
    pub kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// `before` is what the bytes were, as far as the file reached.
    Write {
        offset: u64,
        before: Vec<u8>,
        after: Vec<u8>,
    },
    Truncate {
        size: u64,
    },
    Sync,
}

const NAME_BYTES: usize = 64;
/// kind, name, offset, length, length of what was there, size before.
const HEADER_BYTES: usize = 8 + NAME_BYTES + 8 * 4;

/// Reads every complete record; the last one may be cut short by the kill.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Operation>> {
    let bytes = std::fs::read(path)?;
    let mut operations = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((operation, left)) = next(rest) {
        operations.push(operation);
        rest = left;
    }
    Ok(operations)
}

fn next(bytes: &[u8]) -> Option<(Operation, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let number = |at: usize| header.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let name = header.get(8..8 + NAME_BYTES)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    let file = String::from_utf8_lossy(&name[..end]).into_owned();
    let base = 8 + NAME_BYTES;
    let (offset, length) = (number(base)?, number(base + 8)?);
    let (before_length, size_before) = (number(base + 16)?, number(base + 24)?);
    let (kind, rest) = match number(0)? {
        1 => {
            let (before, rest) = rest.split_at_checked(usize::try_from(before_length).ok()?)?;
            let (after, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (Kind::Write { offset, before: before.to_vec(), after: after.to_vec() }, rest)
        }
        2 => (Kind::Truncate { size: offset }, rest),
        3 => (Kind::Sync, rest),
        _ => return None,
    };
    Some((Operation { file, size_before, kind }, rest))
}
