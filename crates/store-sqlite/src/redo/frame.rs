//! The bytes of the redo file's files. A file has its header in a block of its own, and then records, each at a multiple of
//! eight bytes. All numbers are little-endian.

use std::io;

/// Where the records of a file begin: whoever overwrites the first of them does not touch the header's block.
pub(super) const RECORDS_AT: u64 = 4096;
pub(super) const RECORD_HEADER_BYTES: usize = 28;
/// Records begin at multiples of this.
pub(super) const ALIGN: usize = 8;
pub(super) const RECORD_MAGIC: [u8; 4] = *b"sjr\x01";

const FILE_MAGIC: [u8; 8] = *b"servojnl";
const FORMAT: u32 = 1;
const FILE_HEADER_BYTES: usize = 32;

/// What a file says of the records in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Grows with each use of a file.
    pub(super) generation: u64,
    /// The number of the first record.
    pub(super) first: u64,
}

/// What the first block of a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FirstBlock {
    Header(FileHeader),
    /// The file is new, or was not started to the end, or its header is damaged.
    Nothing,
    /// The file is of a program that knows more.
    OtherFormat(u32),
}

impl FileHeader {
    /// Magic, checksum of the rest, format, generation, first number; and zeros.
    pub(super) fn encode(self) -> Vec<u8> {
        let mut rest = Vec::with_capacity(FILE_HEADER_BYTES - 12);
        rest.extend(FORMAT.to_le_bytes());
        rest.extend(self.generation.to_le_bytes());
        rest.extend(self.first.to_le_bytes());
        let mut block = Vec::with_capacity(RECORDS_AT as usize);
        block.extend(FILE_MAGIC);
        block.extend(crc32fast::hash(&rest).to_le_bytes());
        block.extend(rest);
        block.resize(RECORDS_AT as usize, 0);
        block
    }

    pub(super) fn decode(block: &[u8]) -> FirstBlock {
        let Some(header) = block.get(..FILE_HEADER_BYTES) else { return FirstBlock::Nothing };
        if !header.starts_with(&FILE_MAGIC) || u32_at(header, 8) != crc32fast::hash(&header[12..]) {
            return FirstBlock::Nothing;
        }
        match u32_at(header, 12) {
            FORMAT => FirstBlock::Header(Self { generation: u64_at(header, 16), first: u64_at(header, 24) }),
            other => FirstBlock::OtherFormat(other),
        }
    }
}

/// What stands in front of a record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// Of everything behind it, with the padding.
    pub(super) checksum: u32,
    /// That of the file at the time: what an earlier use left is no record of this one.
    pub(super) generation: u64,
    pub(super) lsn: u64,
    pub(super) length: u32,
}

impl RecordHeader {
    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES]) -> Option<Self> {
        bytes.starts_with(&RECORD_MAGIC).then(|| Self {
            checksum: u32_at(bytes, 4),
            generation: u64_at(bytes, 8),
            lsn: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
        })
    }

    pub(super) fn size(&self) -> u64 {
        size(u64::from(self.length))
    }

    /// Whether these are the bytes that were written: `header` as it was decoded, and `rest` up to the next record.
    pub(super) fn matches(&self, header: &[u8; RECORD_HEADER_BYTES], rest: &[u8]) -> bool {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[8..]);
        hasher.update(rest);
        hasher.finalize() == self.checksum
    }
}

/// The bytes that a record takes in the file.
pub(super) fn size(body_length: u64) -> u64 {
    (RECORD_HEADER_BYTES as u64 + body_length).next_multiple_of(ALIGN as u64)
}

/// Puts a whole record into a buffer, in place of what is in it.
pub(super) fn encode(buffer: &mut Vec<u8>, generation: u64, lsn: u64, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a record of the redo file has at most 4 GiB"))?;
    buffer.clear();
    buffer.extend(RECORD_MAGIC);
    buffer.extend([0; 4]);
    buffer.extend(generation.to_le_bytes());
    buffer.extend(lsn.to_le_bytes());
    buffer.extend(length.to_le_bytes());
    buffer.extend(body);
    buffer.resize(buffer.len().next_multiple_of(ALIGN), 0);
    let checksum = crc32fast::hash(&buffer[8..]);
    buffer[4..8].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_header_is_read_back_and_every_flipped_bit_is_noticed() {
        let header = FileHeader { generation: 7, first: 9 };
        let block = header.encode();
        assert_eq!(block.len() as u64, RECORDS_AT);
        assert_eq!(FileHeader::decode(&block), FirstBlock::Header(header));
        assert_eq!(FileHeader::decode(&block[..FILE_HEADER_BYTES - 1]), FirstBlock::Nothing);
        for bit in 0..FILE_HEADER_BYTES * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&damaged), FirstBlock::Nothing, "bit {bit}");
        }
    }

    #[test]
    fn another_format_is_told_from_damage() {
        let mut block = FileHeader { generation: 7, first: 9 }.encode();
        block[12..16].copy_from_slice(&2_u32.to_le_bytes());
        let checksum = crc32fast::hash(&block[12..FILE_HEADER_BYTES]);
        block[8..12].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(FileHeader::decode(&block), FirstBlock::OtherFormat(2));
    }
}
