//! Writing whole blocks past the operating system's cache. A record that goes through the cache is copied into it, marked,
//! looked for by the sync and marked clean again, which is a quarter of what the write and the sync cost the writer's thread.
//!
//! What is written still needs a sync: the disk has a cache of its own.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;

/// Writes begin and end at its multiples, in the file and in memory. Most disks have blocks of this size or smaller ones.
pub(super) const BLOCK: usize = 4096;
/// What is kept of the memory after a large record.
const KEEP: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    blocks: Blocks,
    /// Where the next write begins if the front of `blocks` is what the file has before it in the same block.
    next: Option<u64>,
}

/// How a write went that was no error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    /// The file must be written through the cache, these bytes as well, whatever of them is there by now.
    Impossible,
}

impl Direct {
    /// `None` where files cannot be opened so.
    #[cfg(target_os = "linux")]
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed() | crate::own::no_follow();
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        let file = options.read(true).write(true).open(path).ok()?;
        Some(Self { file, blocks: Blocks::default(), next: None })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open(_path: &Path) -> Option<Self> {
        None
    }

    /// Writes bytes at any place of a file, and zeros behind them up to the next block. `cached` is the same file through the
    /// cache, to read what is before them in their first block.
    pub(super) fn write(&mut self, bytes: &[u8], at: u64, cached: &File) -> io::Result<Outcome> {
        let before = (at % BLOCK as u64) as usize;
        let (block, end) = (at - before as u64, before + bytes.len());
        let is_known = self.next.take() == Some(at);
        let blocks = self.blocks.of(end.next_multiple_of(BLOCK), if is_known { before } else { 0 });
        if !is_known {
            cached.read_exact_at(&mut blocks[..before], block)?;
        }
        blocks[before..end].copy_from_slice(bytes);
        blocks[end..].fill(0);
        match self.file.write_all_at(blocks, block) {
            Err(error) if is_unable(&error) => return Ok(Outcome::Impossible),
            written => written?,
        }
        // What follows in the last block is written together with what is there now.
        blocks.copy_within(end - end % BLOCK..end, 0);
        self.blocks.shrink(end % BLOCK);
        self.next = Some(at + bytes.len() as u64);
        Ok(Outcome::Written)
    }
}

/// A disk with larger blocks answers so for some places, a file system that was opened so and cannot write so for all.
fn is_unable(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|code| code == Errno::INVAL || code == Errno::OPNOTSUPP)
}

/// Memory at a multiple of a block.
#[derive(Debug, Default)]
struct Blocks {
    bytes: Vec<u8>,
}

impl Blocks {
    /// So many bytes, the first of which are those from before.
    fn of(&mut self, size: usize, kept: usize) -> &mut [u8] {
        if self.bytes.len() < size + BLOCK {
            let mut larger = Self { bytes: vec![0; size + BLOCK] };
            let kept = &self.bytes[self.start()..][..kept];
            let start = larger.start();
            larger.bytes[start..][..kept.len()].copy_from_slice(kept);
            *self = larger;
        }
        let start = self.start();
        &mut self.bytes[start..][..size]
    }

    fn shrink(&mut self, kept: usize) {
        if self.bytes.len() > KEEP {
            let mut smaller = Self::default();
            let start = self.start();
            smaller.of(BLOCK, 0)[..kept].copy_from_slice(&self.bytes[start..][..kept]);
            *self = smaller;
        }
    }

    fn start(&self) -> usize {
        let address = self.bytes.as_ptr().addr();
        if self.bytes.is_empty() { 0 } else { address.next_multiple_of(BLOCK) - address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_front_when_it_grows_and_shrinks() {
        let mut blocks = Blocks::default();
        for (size, kept) in [(BLOCK, 0), (3 * BLOCK, 7), (KEEP * 2, 9), (BLOCK, 11)] {
            let bytes = blocks.of(size, kept);
            assert_eq!((bytes.as_ptr().addr() % BLOCK, bytes.len()), (0, size));
            assert!(bytes[..kept].iter().all(|byte| *byte == 5), "{size}");
            bytes.fill(5);
            blocks.shrink(11);
            assert!(blocks.bytes.len() <= KEEP);
        }
    }

    #[cfg(target_os = "linux")]
    const BACKGROUND: u8 = 0xee;

    /// Beside this program: a folder in memory may not have files like these.
    #[cfg(target_os = "linux")]
    fn file(length: usize) -> (tempfile::NamedTempFile, Direct) {
        let program = std::env::current_exe().unwrap();
        let file = tempfile::NamedTempFile::new_in(program.parent().unwrap()).unwrap();
        file.as_file().write_all_at(&vec![BACKGROUND; length], 0).unwrap();
        let direct = Direct::open(file.path()).expect("a file system that lets files past its cache");
        (file, direct)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_written_stands_behind_what_was_there_and_zeros_stand_behind_it() {
        for is_known in [true, false] {
            let length = 2 * KEEP;
            let (file, mut direct) = file(length);
            let mut expected = vec![BACKGROUND; length];
            let mut at = 100;
            for (length, fill) in [8, 16, BLOCK - 124, BLOCK, 5, BLOCK + 1, KEEP, 7].into_iter().zip(1..) {
                let (bytes, end) = (vec![fill; length], at + length);
                assert_eq!(direct.write(&bytes, at as u64, file.as_file()).unwrap(), Outcome::Written);
                assert_eq!(direct.next, Some(end as u64));
                expected[at..end].copy_from_slice(&bytes);
                expected[end..end.next_multiple_of(BLOCK)].fill(0);
                assert!(std::fs::read(file.path()).unwrap() == expected, "{length}, {is_known}");
                at = end;
                if !is_known {
                    direct.next = None;
                }
            }
        }
    }

    /// No file has such a place, which is the same answer as that of a disk with larger blocks. Any other is an error.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_place_that_cannot_be_written_so_is_told_from_an_error() {
        let (file, mut direct) = file(BLOCK);
        assert_eq!(direct.write(b"record", 0, file.as_file()).unwrap(), Outcome::Written);
        assert_eq!(direct.write(b"record", 1 << 63, file.as_file()).unwrap(), Outcome::Impossible);
        direct.file = File::open(file.path()).unwrap();
        assert!(direct.write(b"record", 0, file.as_file()).is_err());
        assert_eq!(direct.next, None, "nobody knows what is there");
    }
}
