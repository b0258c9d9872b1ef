//! A file that is there whole or not at all: written beside its place, synced, then renamed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::Error;

/// A file that is not whole yet has a name like this, with anything in between. The store's own copies are named so, too.
const PREFIX: &str = ".servo-";
const SUFFIX: &str = ".partial";

/// What to do when the file is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    Refuse,
    Replace,
}

/// A file being written. Dropped before [`commit`](AtomicFile::commit), it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    temp: NamedTempFile,
    path: PathBuf,
    if_exists: IfExists,
}

impl AtomicFile {
    pub fn create(path: &Path, if_exists: IfExists) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        // Before anything is transferred; `commit` makes sure.
        if if_exists == IfExists::Refuse && path.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "is there already")));
        }
        remove_left(folder(path));
        // Readable by its owner only: backups and runs are as confidential as the store.
        let temp = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder(path)).map_err(failed)?;
        // Says that it is in use. Where files cannot be locked, nothing is taken for left.
        let _ = temp.as_file().try_lock();
        Ok(Self { temp, path: path.to_owned(), if_exists })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.temp.write_all(bytes).map_err(|source| Error::File { path: self.path.clone(), source })
    }

    /// Makes it durable and puts it in its place.
    pub fn commit(self) -> Result<(), Error> {
        let Self { temp, path, if_exists } = self;
        let failed = |source| Error::File { path: path.clone(), source };
        temp.as_file().sync_all().map_err(failed)?;
        match if_exists {
            IfExists::Refuse => temp.persist_noclobber(&path).map_err(|error| failed(error.error))?,
            IfExists::Replace => temp.persist(&path).map_err(|error| failed(error.error))?,
        };
        // The rename is durable when the folder is.
        std::fs::File::open(folder(&path)).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// Removes what was left by somebody who was ended before the file was whole. Whoever still writes one has it locked.
fn remove_left(folder: &Path) {
    let Ok(found) = std::fs::read_dir(folder) else { return };
    for path in found.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_meant = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
        if is_meant
            && path.symlink_metadata().is_ok_and(|found| found.is_file())
            && std::fs::File::open(&path).is_ok_and(|file| file.try_lock().is_ok())
        {
            // The next one tries again.
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut file = AtomicFile::create(&path, IfExists::Refuse).unwrap();
        file.write(b"half").unwrap();
        drop(file);
        assert_eq!(names(dir.path()), Vec::<String>::new());

        let mut file = AtomicFile::create(&path, IfExists::Refuse).unwrap();
        file.write(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_on_demand() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let late = AtomicFile::create(&path, IfExists::Refuse).unwrap();
        std::fs::write(&path, b"old").unwrap();
        assert!(AtomicFile::create(&path, IfExists::Refuse).is_err());
        assert!(late.commit().is_err(), "it came up while we wrote");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");

        let mut file = AtomicFile::create(&path, IfExists::Replace).unwrap();
        file.write(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn what_was_left_goes_and_what_is_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (left, other) = (dir.path().join(".servo-left.partial"), dir.path().join("other.partial"));
        std::fs::write(&left, b"left").unwrap();
        std::fs::write(&other, b"mine").unwrap();
        let mut first = AtomicFile::create(&dir.path().join("first"), IfExists::Refuse).unwrap();
        assert!(!left.exists() && other.exists());
        let second = AtomicFile::create(&dir.path().join("second"), IfExists::Refuse).unwrap();
        first.write(b"whole").unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(std::fs::read(dir.path().join("first")).unwrap(), b"whole");
    }
}
