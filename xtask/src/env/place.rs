//! Chooses the folder that a cluster lives in: memory for speed, a real disk where syncing must mean something.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::env::Durability;
use crate::process;

/// A fresh cluster takes about 50 MB, and each database created by a test about 8 MB more. Containers often have
/// 64 MB of shared memory, on which tests would die half-way.
const MEMORY_FREE_MIN_KB: u64 = 2 * 1024 * 1024;

/// Creates a new, empty folder that other accounts may enter.
pub(crate) fn create(durability: Durability) -> Result<PathBuf> {
    let parent = match durability {
        Durability::Fast => memory_parent().unwrap_or_else(std::env::temp_dir),
        Durability::Real => disk_parent()?,
    };
    let pid = std::process::id();
    // A killed process leaves its folder behind, and process ids are used again.
    for attempt in 0..1000 {
        let dir = parent.join(format!("servo-{pid}-{attempt}"));
        match std::fs::create_dir(&dir) {
            Ok(()) => return dir.canonicalize().with_context(|| format!("resolve {}", dir.display())),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("create {}", dir.display())),
        }
    }
    bail!("{} is full of old servo-{pid}-* folders, remove them", parent.display())
}

fn memory_parent() -> Option<PathBuf> {
    let shared = Path::new("/dev/shm");
    let roomy = shared.is_dir() && free_kb(shared).is_some_and(|free| free >= MEMORY_FREE_MIN_KB);
    roomy.then(|| shared.to_owned())
}

/// `SERVO_TEST_DISK` names the disk to measure; otherwise the first usual place that is not held in memory.
fn disk_parent() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("SERVO_TEST_DISK") {
        return Ok(PathBuf::from(dir));
    }
    let usual = [PathBuf::from("/var/tmp"), std::env::temp_dir()];
    let on_disk = usual.into_iter().find(|dir| dir.is_dir() && !is_memory(dir));
    on_disk.context("no temporary folder is on a real disk; name one with SERVO_TEST_DISK=DIR")
}

/// Where `stat` cannot tell (it has no such option outside Linux), the folder is taken for a disk.
fn is_memory(dir: &Path) -> bool {
    let kind = process::capture(Command::new("stat").args(["--file-system", "--format=%T"]).arg(dir));
    kind.is_ok_and(|kind| kind == "tmpfs" || kind == "ramfs")
}

fn free_kb(dir: &Path) -> Option<u64> {
    let table = process::capture(Command::new("df").args(["-P", "-k"]).arg(dir)).ok()?;
    table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}
