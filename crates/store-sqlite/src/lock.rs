//! One process per store: an operating system lock on a file in the data folder. It ends with the process, however that
//! ends, so nobody ever has to remove it by hand.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use servo_store::{Error, Result};

use crate::error::unavailable;

const LOCK_FILE: &str = "servo.lock";

/// Held while the store is open.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or says which process has it.
    pub(crate) fn take(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(LOCK_FILE);
        let failed = |error: std::io::Error| unavailable(format!("{}: {error}", path.display()));
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { pid: owner(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The pid is for people who meet the lock; the lock itself is the operating system's.
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn owner(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(32).read_to_string(&mut text);
    match text.trim() {
        pid if read.is_ok() && !pid.is_empty() => pid.to_owned(),
        // The owner has the lock and has not written its pid yet.
        _ => "unknown".to_owned(),
    }
}
