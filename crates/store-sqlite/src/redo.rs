//! The redo file: what callers were answered for, before the database has it.
//!
//! A commit of the database writes many pages. A record of the redo file is one write behind the last one and one sync,
//! mostly into blocks that the file has already. So groups are made durable here, and go into the database later; what the
//! database does not have after a crash is read back from here.
//!
//! There are two files, used in turn. One takes records until it is large enough and the database has all records of the
//! other one; then the other one is overwritten from its beginning. The files are not cut, because a sync after
//! overwriting is cheaper than one after growing. Each use of a file has a generation, which stands in its header and in
//! each record, so that what an earlier use has left is never taken for a record.

mod direct;
mod frame;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use servo_store::Result;

use crate::REDO_FILES;
use crate::open::sync_folder;
use frame::FileHeader;
use segment::{Failure, Segment, unreadable};

/// A file with this many bytes of records is left for the other one.
const SWITCH_BYTES: u64 = 8 * 1024 * 1024;
/// What is kept of the buffer after a large record.
const BUFFER_KEEP: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Redo {
    data_dir: PathBuf,
    sync: bool,
    switch_bytes: u64,
    /// The older one first, as they were when the redo file was opened.
    segments: [Segment; 2],
    /// Which of the two takes records. `None` if the next record starts a file.
    current: Option<usize>,
    last: u64,
    /// The database has everything up to this record.
    released: u64,
    /// Bytes of each record that is not released, and of all of them.
    sizes: VecDeque<u64>,
    bytes: u64,
    buffer: Vec<u8>,
    /// Why no more records are taken.
    stopped: Option<String>,
}

/// One group that the database may not have yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) lsn: u64,
    pub(crate) body: Vec<u8>,
}

impl Redo {
    /// Opens the redo file in a data folder, making its files if they are not there, and gives the records after `applied`,
    /// in order and without a gap. `sync` is false only for broken variants in tests, which never sync.
    pub(crate) fn open(data_dir: &Path, applied: u64, sync: bool) -> Result<(Self, Vec<Record>)> {
        Self::open_with(data_dir, applied, sync, SWITCH_BYTES)
    }

    fn open_with(data_dir: &Path, applied: u64, sync: bool, switch_bytes: u64) -> Result<(Self, Vec<Record>)> {
        let [a, b] = REDO_FILES;
        let mut segments = [Segment::open(data_dir.join(a), sync)?, Segment::open(data_dir.join(b), sync)?];
        if sync {
            // Also if the files were there: whoever made them may have been ended before this.
            sync_folder(data_dir)?;
        }
        segments.sort_by_key(Segment::generation);
        let [older, newer] = &segments;
        older.check_header(newer.generation(), applied)?;
        newer.check_header(older.generation(), applied)?;
        let records = read(&mut segments, applied)?;
        let last = segments[0].last().max(segments[1].last()).max(applied);
        let current = segments.iter().position(|segment| segment.last() == last && last > 0);
        if let Some(index) = current {
            let segment = &segments[index];
            segment.settle().map_err(|error| unreadable(&segment.path, &error))?;
        }
        let sizes: VecDeque<_> = records.iter().map(|record| frame::size(record.body.len() as u64)).collect();
        let redo = Self {
            data_dir: data_dir.to_owned(),
            sync,
            switch_bytes,
            segments,
            current,
            last,
            released: applied,
            bytes: sizes.iter().sum(),
            sizes,
            buffer: Vec::new(),
            stopped: None,
        };
        Ok((redo, records))
    }

    /// Begins the first file before there is a record for it, so that it can be missed from then on. Where there is no room, the
    /// first record tries again.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.current.is_some() {
            return Ok(());
        }
        let begun = self.place(self.last + 1).map_err(Failure::from).and_then(|(index, start)| {
            start.into_iter().try_for_each(|header| self.segments[index].start(header, 0))?;
            Ok(index)
        });
        match begun {
            Ok(index) => self.current = Some(index),
            Err(Failure::Refused(_)) => {}
            Err(Failure::Broken(error)) => return Err(error),
        }
        Ok(())
    }

    /// Writes one record and makes it durable. Gives its number, one more than the last.
    ///
    /// An error of a kind that means no space (`StorageFull`, `QuotaExceeded`, `FileTooLarge`) has written nothing, and a
    /// later record may find space again. So has `InvalidInput`, for a body that is too large. After any other error nobody
    /// knows what is on the disk, and no more records are taken.
    pub(crate) fn append(&mut self, body: &[u8]) -> io::Result<u64> {
        if let Some(reason) = &self.stopped {
            return Err(io::Error::other(reason.clone()));
        }
        let appended = self.try_append(body);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEEP);
        match appended {
            Ok(lsn) => Ok(lsn),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Broken(error)) => {
                let reason = format!("the redo file has stopped: {error}");
                self.stopped = Some(reason.clone());
                // Of a kind of its own: a sync that finds the disk full has lost what was handed over before.
                Err(io::Error::other(reason))
            }
        }
    }

    /// The number of the last record, or of the last that the database has if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The newest use of a file. Zero if there was none.
    pub(crate) fn generation(&self) -> u64 {
        self.segments.iter().map(Segment::generation).max().unwrap_or(0)
    }

    /// What the files lack of what a database knows of them that has all records up to `applied`, and has noted this
    /// generation: each record was here before it was there.
    pub(crate) fn lacks(&self, generation: u64, applied: u64) -> Option<String> {
        if self.generation() < generation {
            return Some("neither of the redo files is the one that was written last".to_owned());
        }
        let [zero, one] = &self.segments;
        let newest = if zero.generation() > one.generation() { zero } else { one };
        let first = newest.first()?;
        // Up to the first record of the newest use the database may have had them before there was this redo file.
        let needed = if first <= applied { applied } else { first - 1 };
        let last = zero.last().max(one.last());
        let is_short = last < needed && (first <= applied || needed > applied);
        is_short.then(|| format!("the redo files end with record {last} and lack record {needed}"))
    }

    /// What stands behind the last record and is no whole one, in words.
    pub(crate) fn torn(&self) -> Result<Option<String>> {
        let [zero, one] = &self.segments;
        let is_zero = (zero.last(), zero.generation()) > (one.last(), one.generation());
        let written = if is_zero { zero } else { one };
        Ok(written.torn()?.map(|bytes| {
            let (path, last) = (written.path.display(), self.last);
            format!("{path}: behind record {last} there are {bytes} bytes that are no whole record")
        }))
    }

    /// The database has everything up to this record on its disk: the space of those records may be used again.
    pub(crate) fn release(&mut self, lsn: u64) {
        while self.released < lsn
            && let Some(size) = self.sizes.pop_front()
        {
            self.released += 1;
            self.bytes -= size;
        }
    }

    /// Bytes of the records that are not released.
    pub(crate) fn unreleased_bytes(&self) -> u64 {
        self.bytes
    }

    /// Everything is in the database and it is closed in order: removes the files.
    pub(crate) fn remove(self) -> io::Result<()> {
        for segment in self.segments {
            std::fs::remove_file(&segment.path)?;
        }
        if self.sync { File::open(&self.data_dir)?.sync_all() } else { Ok(()) }
    }

    fn try_append(&mut self, body: &[u8]) -> std::result::Result<u64, Failure> {
        let lsn = self.last + 1;
        let (index, start) = self.place(lsn)?;
        let segment = &mut self.segments[index];
        let generation = start.map_or(segment.generation(), |header| header.generation);
        frame::encode(&mut self.buffer, generation, lsn, body).map_err(Failure::Refused)?;
        let size = self.buffer.len() as u64;
        if let Some(header) = start {
            segment.start(header, size)?;
            self.current = Some(index);
        }
        segment.append(lsn, &self.buffer)?;
        self.last = lsn;
        self.sizes.push_back(size);
        self.bytes += size;
        Ok(lsn)
    }

    /// Which file takes the next record, and the new header of a file that is started for it.
    fn place(&self, first: u64) -> io::Result<(usize, Option<FileHeader>)> {
        let [zero, one] = &self.segments;
        let index = match self.current {
            Some(index) => {
                let (segment, other) = if index == 0 { (zero, one) } else { (one, zero) };
                if segment.record_bytes() < self.switch_bytes || other.last() > self.released {
                    return Ok((index, None));
                }
                1 - index
            }
            None => 0,
        };
        let generation = next_generation(zero.generation().max(one.generation()))?;
        Ok((index, Some(FileHeader { generation, first })))
    }
}

/// The records after `applied`, of both files. Those in front of them are only checked.
fn read(segments: &mut [Segment; 2], applied: u64) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let mut last = 0;
    for segment in segments {
        segment.read(|lsn, body| {
            let expected = applied.max(last) + 1;
            if lsn <= last {
                return Err(format!("record {lsn} comes after record {last}"));
            }
            if lsn > expected {
                return Err(format!("the redo file lacks record {expected}, and has record {lsn}"));
            }
            last = lsn;
            if lsn > applied {
                records.push(Record { lsn, body });
            }
            Ok(())
        })?;
    }
    Ok(records)
}

/// Greater than the last one by its upper half, which counts. The lower half is drawn, so that nobody can write a body
/// with something in it that looks like a record.
fn next_generation(last: u64) -> io::Result<u64> {
    let mut drawn = [0; 4];
    getrandom::fill(&mut drawn).map_err(|error| io::Error::other(format!("no randomness: {error}")))?;
    Ok((((last >> 32) + 1) << 32) | u64::from(u32::from_le_bytes(drawn)))
}
