//! One process per store: an operating system lock on the data folder itself. It ends with the process, however that ends, so
//! nobody ever has to remove it by hand; and it stays with the folder, whatever is done to the files in it or to its name.
//!
//! A file in the folder is locked as well. It says to people which process has the store, and it is what earlier versions lock.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use servo_store::{Error, Result};

use crate::error::unavailable;
use crate::own;

const LOCK_FILE: &str = "servo.lock";
/// A program that is started at the moment at which the owner is killed still has the owner's files, until it comes to its
/// own code. So the lock may outlive its owner, by as long as a busy machine lets a new process wait.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Held while the store is open.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
    _file: File,
}

impl Lock {
    /// Takes the lock, or says which process has it.
    pub(crate) fn take(data_dir: &Path) -> Result<Self> {
        let start = Instant::now();
        Self::take_with(data_dir, || {
            let goes_on = start.elapsed() < PATIENCE;
            if goes_on {
                std::thread::park_timeout(LOOK_EVERY);
            }
            goes_on
        })
    }

    /// `wait` is called while another process has the lock, and says whether to look again.
    fn take_with(data_dir: &Path, mut wait: impl FnMut() -> bool) -> Result<Self> {
        let path = data_dir.join(LOCK_FILE);
        let failed = |error: std::io::Error| unavailable(format!("{}: {error}", path.display()));
        let folder = File::open(data_dir).map_err(|error| unavailable(format!("{}: {error}", data_dir.display())))?;
        let mut file = own::open(&path).map_err(failed)?;
        for lock in [&folder, &file] {
            loop {
                match lock.try_lock() {
                    Ok(()) => break,
                    Err(TryLockError::WouldBlock) => {
                        (&file).rewind().map_err(failed)?;
                        let pid = owner(&file);
                        if pid == std::process::id().to_string() || !wait() {
                            return Err(Error::InUse { pid });
                        }
                    }
                    // Some file systems of other machines lock files and no folders.
                    Err(TryLockError::Error(error)) if std::ptr::eq(lock, &raw const folder) => {
                        tracing::warn!(folder = %data_dir.display(), %error, "the folder cannot be locked, only the file in it");
                        break;
                    }
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                }
            }
        }
        // The pid is for people who meet the lock; the lock itself is the operating system's.
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _folder: folder, _file: file })
    }
}

fn owner(file: &File) -> String {
    let mut text = String::new();
    let read = file.take(32).read_to_string(&mut text);
    match text.trim() {
        pid if read.is_ok() && !pid.is_empty() => pid.to_owned(),
        // The owner has the lock and has not written its pid yet, or the file is not the one that it wrote to.
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a killed owner leaves: the lock, in the hands of a process that has not come to its own code.
    fn left_behind(data_dir: &Path) -> File {
        let mut file = File::create(data_dir.join(LOCK_FILE)).unwrap();
        file.lock().unwrap();
        writeln!(file, "1").unwrap();
        file
    }

    #[test]
    fn a_lock_that_outlives_its_owner_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut left = Some(left_behind(dir.path()));
        let mut looks = 0;
        let taken = Lock::take_with(dir.path(), || {
            looks += 1;
            if looks == 3 {
                drop(left.take());
            }
            looks < 10
        });
        assert!(taken.is_ok(), "{taken:?}");
        assert_eq!(looks, 3);
    }

    #[test]
    fn a_lock_that_stays_is_told_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let _left = left_behind(dir.path());
        let refused = Lock::take_with(dir.path(), || false);
        assert!(matches!(&refused, Err(Error::InUse { pid }) if pid == "1"), "{refused:?}");
    }

    #[test]
    fn whatever_becomes_of_the_lock_file_the_folder_stays_locked() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = (dir.path().join("data"), dir.path().join("data").join(LOCK_FILE));
        std::fs::create_dir(&data).unwrap();
        let _held = Lock::take(&data).unwrap();
        let refused = |data: &Path| matches!(Lock::take_with(data, || false), Err(Error::InUse { .. }));
        std::fs::remove_file(&file).unwrap();
        assert!(refused(&data), "removed");
        assert!(refused(&data), "made again by the one that was refused");
        std::fs::rename(&file, data.join("other")).unwrap();
        assert!(refused(&data), "renamed");
        std::fs::write(&file, "1").unwrap();
        assert!(refused(&data), "replaced");
        let moved = dir.path().join("moved");
        std::fs::rename(&data, &moved).unwrap();
        assert!(refused(&moved), "the folder was moved");
        std::os::unix::fs::symlink(&moved, &data).unwrap();
        assert!(refused(&data), "by another name");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "do not touch").unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join(LOCK_FILE)).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("servo.lock is a symbolic link"), "{refused}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "do not touch");
    }

    #[test]
    fn this_process_does_not_wait_for_itself() {
        let dir = tempfile::tempdir().unwrap();
        let _held = Lock::take(dir.path()).unwrap();
        let mut waited = false;
        let refused = Lock::take_with(dir.path(), || {
            waited = true;
            false
        });
        assert!(matches!(refused, Err(Error::InUse { .. })) && !waited);
    }
}
