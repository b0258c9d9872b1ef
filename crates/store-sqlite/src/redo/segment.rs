//! One of the redo file's two files: its header, and the records of its current use, without a gap in their numbers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use servo_store::{Error, Result};

use super::direct::{BLOCK, Direct, Outcome};
use super::frame::{ALIGN, FileHeader, FirstBlock, RECORD_HEADER_BYTES, RECORD_MAGIC, RECORDS_AT, RecordHeader};
use crate::error::{corrupt, no_space, unavailable};
use crate::own;

/// The file grows ahead of its records, by this at first and then by twice as much each time, up to the second number.
const GROW_MIN: u64 = 256 * 1024;
const GROW_MAX: u64 = 2 * 1024 * 1024;
/// How much is looked at in one piece.
const LOOK_BYTES: usize = 64 * 1024;

/// Why a record was not written.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing has changed, and the next record may fit.
    Refused(io::Error),
    /// What is on the disk is unknown.
    Broken(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Broken(error)
    }
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The same file past the cache, for records. `None` where that is not possible.
    direct: Option<Direct>,
    sync: bool,
    /// Bytes of the file, with those that no record uses yet.
    length: u64,
    /// `None` if it holds no records.
    header: Option<FileHeader>,
    /// The last record: its number, or zero if there is none, and where it begins and ends.
    last: u64,
    last_at: u64,
    end: u64,
}

impl Segment {
    pub(super) fn open(path: PathBuf, sync: bool) -> Result<Self> {
        let opened = || -> io::Result<(File, u64, FirstBlock)> {
            let file = own::open(&path)?;
            let length = file.metadata()?.len();
            let mut block = vec![0; length.min(RECORDS_AT) as usize];
            file.read_exact_at(&mut block, 0)?;
            Ok((file, length, FileHeader::decode(&block)))
        };
        let (file, length, block) = opened().map_err(|error| unreadable(&path, &error))?;
        let header = match block {
            FirstBlock::Header(header) => Some(header),
            FirstBlock::Nothing => None,
            FirstBlock::OtherFormat(format) => {
                return Err(unavailable(format!("{}: format {format} is not known", path.display())));
            }
        };
        let direct = Direct::open(&path);
        Ok(Self { path, file, direct, sync, length, header, last: 0, last_at: RECORDS_AT, end: RECORDS_AT })
    }

    #[cfg(test)]
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    #[cfg(test)]
    pub(super) fn use_cache(&mut self) {
        self.direct = None;
    }

    /// Zero if it was never used.
    pub(super) fn generation(&self) -> u64 {
        self.header.map_or(0, |header| header.generation)
    }

    /// The number of the last record, or zero if there is none.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The number of the first record of its current use, which may not have been written.
    pub(super) fn first(&self) -> Option<u64> {
        self.header.map(|header| header.first)
    }

    pub(super) fn record_bytes(&self) -> u64 {
        self.end - RECORDS_AT
    }

    /// Reads every record, in order. What is not a record ends them, unless there is one behind it: each was durable before
    /// the next one was written, so only the last can be torn.
    pub(super) fn read(&mut self, mut take: impl FnMut(u64, Vec<u8>) -> std::result::Result<(), String>) -> Result<()> {
        let Some(FileHeader { generation, first }) = self.header else { return Ok(()) };
        let mut next = first;
        loop {
            let wanted = |header: &RecordHeader| header.generation == generation && header.lsn == next;
            let found = self.record_at(self.end, wanted).map_err(|error| unreadable(&self.path, &error))?;
            let Some((header, body)) = found else { break };
            take(next, body).map_err(|what| self.damaged(&what))?;
            (self.last, self.last_at) = (next, self.end);
            self.end += header.size();
            next += 1;
        }
        let behind = self.find(self.end, |header| header.generation == generation && header.lsn >= next)?;
        match behind {
            None => Ok(()),
            Some(lsn) => Err(self.damaged(&format!("the redo file lacks record {next}, and has record {lsn}"))),
        }
    }

    /// How many bytes stand behind the last record and are no whole one, as far as can be told: a record that was cut or has
    /// changed, or anything in the rest of the last block, which is zeros behind a record that was written to its end.
    pub(super) fn torn(&self) -> Result<Option<u64>> {
        let Some(FileHeader { generation, first }) = self.header else { return Ok(None) };
        let next = if self.last == 0 { first } else { self.last + 1 };
        let look = || -> io::Result<Option<u64>> {
            let room = self.length.saturating_sub(self.end);
            let mut head = [0; RECORD_HEADER_BYTES];
            if room >= head.len() as u64 {
                self.file.read_exact_at(&mut head, self.end)?;
                let header = RecordHeader::decode(&head);
                if let Some(header) = header.filter(|header| header.generation == generation && header.lsn == next) {
                    return Ok(Some(header.size().min(room)));
                }
            }
            let rest = (self.end.next_multiple_of(BLOCK as u64) - self.end).min(room);
            let mut rest = vec![0; rest as usize];
            self.file.read_exact_at(&mut rest, self.end)?;
            Ok(rest.iter().rposition(|byte| *byte != 0).map(|at| at as u64 + 1))
        };
        look().map_err(|error| unreadable(&self.path, &error))
    }

    /// A header is durable before the first record behind it is written. So a file that has no header, and records that are
    /// newer than those of the other file, had one. That matters if the database does not have them.
    pub(super) fn check_header(&self, other_generation: u64, applied: u64) -> Result<()> {
        if self.header.is_some() {
            return Ok(());
        }
        let wanted = |header: &RecordHeader| header.generation > other_generation && header.lsn > applied;
        match self.find(RECORDS_AT, wanted)? {
            None => Ok(()),
            Some(lsn) => Err(self.damaged(&format!("the header is damaged, and record {lsn} is behind it"))),
        }
    }

    /// Writes the last record once more. If a sync failed in the life before, the record may be in memory only, and the
    /// operating system takes it for written.
    pub(super) fn settle(&self) -> io::Result<()> {
        let mut bytes = vec![0; (self.end - self.last_at) as usize];
        self.file.read_exact_at(&mut bytes, self.last_at)?;
        self.file.write_all_at(&bytes, self.last_at)?;
        self.sync()
    }

    /// Begins a new use of the file, with room for the first record. The records in it are no more.
    pub(super) fn start(&mut self, header: FileHeader, first_bytes: u64) -> std::result::Result<(), Failure> {
        self.grow(RECORDS_AT + first_bytes)?;
        self.file.write_all_at(&header.encode(), 0).map_err(unwritten)?;
        // Of its own, and not with the first record: see `check_header`.
        self.sync()?;
        crashpoint!("sqlite.redo.switched");
        (self.header, self.last, self.last_at, self.end) = (Some(header), 0, RECORDS_AT, RECORDS_AT);
        Ok(())
    }

    /// Writes a whole record behind the last one and makes it durable.
    pub(super) fn append(&mut self, lsn: u64, record: &[u8]) -> std::result::Result<(), Failure> {
        let end = self.end + record.len() as u64;
        self.grow(end.next_multiple_of(BLOCK as u64))?;
        self.write(record).map_err(unwritten)?;
        self.sync()?;
        (self.last, self.last_at, self.end) = (lsn, self.end, end);
        Ok(())
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if let Some(direct) = &mut self.direct {
            match direct.write(record, self.end, &self.file)? {
                Outcome::Written => return Ok(()),
                Outcome::Impossible => self.direct = None,
            }
        }
        // Zeros up to the next block, as behind a record that is written past the cache: see `torn`.
        let end = self.end + record.len() as u64;
        let rest = vec![0; (end.next_multiple_of(BLOCK as u64) - end) as usize];
        self.file.write_all_at(&rest, end)?;
        self.file.write_all_at(record, self.end)
    }

    /// Makes the file at least so long, with zeros that are written and not left out: later records then change nothing but
    /// blocks that the file has. No sync of its own: that of the record covers the zeros and the new length, which
    /// `fdatasync` writes too, as the record could not be read without it.
    fn grow(&mut self, needed: u64) -> std::result::Result<(), Failure> {
        while self.length < needed {
            let target = self.length + (self.length + GROW_MIN).min(GROW_MAX);
            let zeros = vec![0; GROW_MIN as usize];
            while self.length < target {
                let piece = &zeros[..(target - self.length).min(GROW_MIN) as usize];
                self.file.write_all_at(piece, self.length).map_err(unwritten)?;
                self.length += piece.len() as u64;
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }

    /// The whole record at this place, if there is one that is wanted.
    fn record_at(
        &self,
        at: u64,
        wanted: impl Fn(&RecordHeader) -> bool,
    ) -> io::Result<Option<(RecordHeader, Vec<u8>)>> {
        let room = self.length.saturating_sub(at);
        let mut bytes = [0; RECORD_HEADER_BYTES];
        if room < bytes.len() as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut bytes, at)?;
        let header = RecordHeader::decode(&bytes).filter(|header| header.size() <= room && wanted(header));
        let Some(header) = header else { return Ok(None) };
        let mut rest = vec![0; header.size() as usize - bytes.len()];
        self.file.read_exact_at(&mut rest, at + bytes.len() as u64)?;
        let is_whole = header.matches(&bytes, &rest);
        rest.truncate(header.length as usize);
        Ok(is_whole.then_some((header, rest)))
    }

    /// The number of the first wanted record at this place or anywhere behind it.
    fn find(&self, from: u64, wanted: impl Fn(&RecordHeader) -> bool) -> Result<Option<u64>> {
        let look = || -> io::Result<Option<u64>> {
            let mut piece = vec![0; LOOK_BYTES];
            let mut at = from;
            while at < self.length {
                piece.truncate((self.length - at).min(LOOK_BYTES as u64) as usize);
                self.file.read_exact_at(&mut piece, at)?;
                for word in piece.chunks(ALIGN) {
                    if word.starts_with(&RECORD_MAGIC)
                        && let Some((header, _)) = self.record_at(at, &wanted)?
                    {
                        return Ok(Some(header.lsn));
                    }
                    at += word.len() as u64;
                }
            }
            Ok(None)
        };
        look().map_err(|error| unreadable(&self.path, &error))
    }

    fn damaged(&self, what: &str) -> Error {
        corrupt(format!("{}: {what}", self.path.display()))
    }
}

/// A disk may have no room also for what is written over (one that copies on writing, or that promised more than it has).
/// Then a part of the bytes is missing, so that they are no record, and the next record takes their place.
fn unwritten(error: io::Error) -> Failure {
    if no_space(&error) { Failure::Refused(error) } else { Failure::Broken(error) }
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    unavailable(format!("{}: {error}", path.display()))
}
