//! Errors of a disk for a program under test: no room, or an error of reading and writing.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile;

/// No room on the disk.
pub const ENOSPC: i32 = 28;
/// The disk could not read or write.
pub const EIO: i32 = 5;

/// What lets files fail, compiled once per test process.
#[derive(Debug)]
pub struct Faults {
    library: PathBuf,
    _folder: tempfile::TempDir,
}

/// What fails now. Dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct Rules {
    path: PathBuf,
}

impl Faults {
    /// Compiles it with the system's C compiler.
    pub fn build() -> io::Result<Self> {
        let (library, folder) = compile("faults", include_str!("faults.c"))?;
        Ok(Self { library, _folder: folder })
    }

    /// Lets a command meet what the rules say below `folder`, which must not have the file of rules in it.
    pub fn attach(&self, command: &mut Command, folder: &Path, rules: &Path) -> Rules {
        for (name, value) in self.variables(folder, rules) {
            command.env(name, value);
        }
        Rules { path: rules.to_owned() }
    }

    /// The same as variables of the environment.
    pub fn variables(&self, folder: &Path, rules: &Path) -> [(&'static str, PathBuf); 3] {
        [("LD_PRELOAD", self.library.clone()), ("FAULTS_FOLDER", folder.to_owned()), ("FAULTS_RULES", rules.to_owned())]
    }
}

impl Rules {
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// From now on these operations fail: what (`write`, `sync` or `truncate`), the file (`*` at its end stands for anything), the
    /// error, and how often (0: always). Nothing else does.
    pub fn set(&self, rules: &[(&str, &str, i32, u32)]) -> io::Result<()> {
        let text: String =
            rules.iter().map(|(what, file, error, times)| format!("{what} {file} {error} {times}\n")).collect();
        // At once, or the program would read a half of it.
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, text)?;
        std::fs::rename(beside, &self.path)
    }
}
