//! Simulated power cuts for programs under test.
//!
//! `kill -9` does not test durability: what a process has written stays in the operating system's cache and reaches the
//! disk later. A power cut loses it. Here a program runs with `recorder.c` preloaded, which writes down every write, every
//! truncation and every sync of the files in one folder. After the program is killed, [`Recording::cut`] rebuilds the
//! files as a disk might hold them: everything up to each file's last sync is there, and of what came after, any subset
//! of 512-byte sectors.
//!
//! [`faults`] is for disks that go on and fail: no room, or an error.
//!
//! Not modelled: lost directory entries, and order between files beyond "each since its own last sync".

pub mod faults;
mod image;
mod journal;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use image::Cut;

/// The recorder, compiled once per test process.
#[derive(Debug)]
pub struct Recorder {
    library: PathBuf,
    _folder: tempfile::TempDir,
}

impl Recorder {
    /// Compiles the recorder with the system's C compiler.
    pub fn build() -> io::Result<Self> {
        let (library, folder) = compile("recorder", include_str!("recorder.c"))?;
        Ok(Self { library, _folder: folder })
    }

    /// Makes a command record what it writes below `folder`. The journal must lie outside of it.
    pub fn attach(&self, command: &mut Command, folder: &Path, journal: &Path) -> Recording {
        command.env("LD_PRELOAD", &self.library).env("POWERCUT_FOLDER", folder).env("POWERCUT_JOURNAL", journal);
        Recording { folder: folder.to_owned(), journal: journal.to_owned() }
    }
}

/// A library to preload, made with the system's C compiler, and the folder that it goes with.
fn compile(name: &str, source: &str) -> io::Result<(PathBuf, tempfile::TempDir)> {
    let folder = tempfile::tempdir()?;
    let written = folder.path().join(format!("{name}.c"));
    std::fs::write(&written, source)?;
    let library = folder.path().join(format!("{name}.so"));
    let output = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&written)
        .args(["-ldl", "-lpthread"])
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok((library, folder))
}

/// Lets the program die just before its n-th sync, so that something is surely not synced yet.
pub fn die_at_sync(command: &mut Command, number: u64) {
    command.env("POWERCUT_DIE_AT_SYNC", number.to_string());
}

/// What a program wrote, once it is dead.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    journal: PathBuf,
}

impl Recording {
    /// Rewrites the folder's files as they might be after a power cut at the moment the program died.
    pub fn cut(&self, seed: u64) -> io::Result<Cut> {
        let operations = journal::read(&self.journal)?;
        image::rebuild(&self.folder, operations, seed)
    }
}
