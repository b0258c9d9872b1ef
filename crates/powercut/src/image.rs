//! Rebuilding files as a disk might hold them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::journal::{Kind, Operation};

/// The unit that a disk writes whole.
const SECTOR: usize = 512;

/// What the cut did, for the report: a campaign that lost nothing proved nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub sectors_lost: u64,
    pub sectors_kept: u64,
    pub syncs: u64,
}

/// A small generator of its own, so that a seed means the same on every machine.
struct Dice(u64);

impl Dice {
    fn toss(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) & 1 == 1
    }
}

pub(crate) fn rebuild(folder: &Path, operations: Vec<Operation>, seed: u64) -> io::Result<Cut> {
    let mut cut = Cut::default();
    let mut unsynced: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        let pending = unsynced.entry(operation.file.clone()).or_default();
        if matches!(operation.kind, Kind::Sync) {
            cut.syncs += 1;
            pending.clear();
        } else {
            pending.push(operation);
        }
    }
    let mut dice = Dice(seed);
    for (file, pending) in unsynced {
        let path = folder.join(&file);
        if pending.is_empty() || !path.exists() {
            continue;
        }
        let mut bytes = std::fs::read(&path)?;
        rewind(&mut bytes, &pending);
        for operation in &pending {
            replay(&mut bytes, operation, &mut dice, &mut cut);
        }
        std::fs::write(&path, bytes)?;
    }
    Ok(cut)
}

/// Back to the last sync, newest operation first.
fn rewind(bytes: &mut Vec<u8>, pending: &[Operation]) {
    for operation in pending.iter().rev() {
        let size = usize_of(operation.size_before);
        if let Kind::Write { offset, before, .. } = &operation.kind {
            put(bytes, usize_of(*offset), before);
        }
        bytes.resize(size, 0);
    }
}

/// Forward again, losing sectors. A truncation counts as done: the model keeps it simple where nothing depends on it.
fn replay(bytes: &mut Vec<u8>, operation: &Operation, dice: &mut Dice, cut: &mut Cut) {
    match &operation.kind {
        Kind::Write { offset, after, .. } => {
            let mut at = usize_of(*offset);
            let mut rest = after.as_slice();
            while !rest.is_empty() {
                // Sectors lie on the disk's grid, not on the write's.
                let length = (SECTOR - at % SECTOR).min(rest.len());
                let (sector, left) = rest.split_at(length);
                if dice.toss() {
                    put(bytes, at, sector);
                    cut.sectors_kept += 1;
                } else {
                    cut.sectors_lost += 1;
                }
                at += length;
                rest = left;
            }
        }
        Kind::Truncate { size } => bytes.truncate(usize_of(*size)),
        Kind::Sync => {}
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    if what.is_empty() {
        return;
    }
    if bytes.len() < at + what.len() {
        bytes.resize(at + what.len(), 0);
    }
    bytes[at..at + what.len()].copy_from_slice(what);
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).expect("test files are far smaller than the address space")
}
