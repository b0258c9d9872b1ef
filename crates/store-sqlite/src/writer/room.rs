//! Whether there is room for what is ahead of the database to become part of it.
//!
//! What was answered is in the redo file, but a full disk would keep the database from taking it. So where room is short,
//! or something else limits the file, nothing is answered that the database does not have.

use std::path::PathBuf;

/// Free bytes of the disk below which room is short. What is ahead of the database at any moment is a fraction of it.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Room {
    data_dir: PathBuf,
    /// The file has a largest size.
    is_limited: bool,
}

impl Room {
    pub(crate) fn new(data_dir: PathBuf, pages_max: Option<u32>) -> Self {
        let of_process = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        Self { data_dir, is_limited: pages_max.is_some() || of_process.is_some() }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_limited || self.free_bytes().is_some_and(|free| free < FREE_BYTES_MIN)
    }

    /// `None` where the system does not say: then the disk's own word, when it is full, has to do.
    fn free_bytes(&self) -> Option<u64> {
        let of_disk = rustix::fs::statvfs(&self.data_dir).ok()?;
        Some(of_disk.f_bavail.saturating_mul(of_disk.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_file_is_short_of_room_whatever_the_disk_says() {
        let dir = std::env::temp_dir();
        assert!(Room::new(dir.clone(), Some(200)).is_short());
        let unknown = Room { data_dir: dir.join("not-there"), is_limited: false };
        assert!(!unknown.is_short());
    }
}
