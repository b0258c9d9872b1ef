//! The files of the data folder are for their owner alone, whatever the folder and the umask allow, and none of them is
//! opened through a symbolic link: what is in them is payloads and keys, and a link could have another file overwritten.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use servo_store::Result;

use crate::error::unavailable;
use crate::{DATABASE_FILE, REDO_FILES};

const OWNER_ONLY: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Opens a file to read and write, making it if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY).custom_flags(no_follow());
    let file = options.open(path).map_err(|error| if is_link(path) { linked(path) } else { error })?;
    if file.metadata()?.mode() & 0o777 != OWNER_ONLY {
        narrowed(path, file.set_permissions(Permissions::from_mode(OWNER_ONLY)));
    }
    Ok(file)
}

/// As [`open`] needs it of the system.
pub(crate) fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

/// Before SQLite opens the database: it makes the files beside it with the database's own mode, and follows links. The file is
/// not opened here, because closing it would end SQLite's locks on it.
pub(crate) fn prepare(data_dir: &Path) -> Result<()> {
    let database = data_dir.join(DATABASE_FILE);
    let failed = |path: &Path, error: io::Error| unavailable(format!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    // Never through a link: a new file is new.
    match options.write(true).create_new(true).mode(OWNER_ONLY).open(&database) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(&database, error)),
    }
    let beside = ["-wal", "-shm", "-journal"].map(|suffix| data_dir.join(format!("{DATABASE_FILE}{suffix}")));
    let files = beside.into_iter().chain([database]).chain(REDO_FILES.map(|name| data_dir.join(name)));
    for path in files {
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(failed(&path, linked(&path))),
            Ok(found) if found.mode() & 0o777 != OWNER_ONLY => {
                narrowed(&path, std::fs::set_permissions(&path, Permissions::from_mode(OWNER_ONLY)));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    let folder = data_dir.metadata().map_err(|error| failed(data_dir, error))?;
    if folder.mode() & OTHERS != 0 {
        tracing::warn!(
            folder = %data_dir.display(),
            mode = format!("{:o}", folder.mode() & 0o777),
            "others may look into the data folder; its files are for their owner alone, and so should the folder be: chmod 700"
        );
    }
    Ok(())
}

/// Which file a path led to. Whoever opens it again by its path may find another one: the folder may have been moved, and another
/// store may stand in its place.
#[derive(Debug, Clone)]
pub(crate) struct Same {
    path: PathBuf,
    file: (u64, u64),
}

impl Same {
    pub(crate) fn of(path: PathBuf) -> Result<Self> {
        let found = path.metadata().map_err(|error| unavailable(format!("{}: {error}", path.display())))?;
        Ok(Self { file: (found.dev(), found.ino()), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error if the path leads to another file now, or to none.
    pub(crate) fn check(&self) -> Result<()> {
        let is_other = match self.path.metadata() {
            Ok(found) => (found.dev(), found.ino()) != self.file,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_other {
            return Ok(());
        }
        Err(unavailable("the data folder, or the database in it, was moved or replaced while the store was open"))
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

fn linked(path: &Path) -> io::Error {
    let name = path.file_name().unwrap_or_default().display();
    io::Error::other(format!("{name} is a symbolic link, and must be a file in the data folder"))
}

/// A file of somebody else's cannot be changed, and can be used nevertheless.
fn narrowed(path: &Path, done: io::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(path = %path.display(), %error, "the file is not for its owner alone");
    }
}
