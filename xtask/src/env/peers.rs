//! AWS's own clients, SDKs and tools, which tests run against the binary: Python packages in a virtual environment and
//! Node packages in a folder, both below the build's folder and nowhere else on the machine.
//!
//! Beside them the server that benchmarks compare with, which only `cargo xtask bench compare` asks for.
//!
//! Versions are pinned in `bin/servo/tests/peers` and `bench/peers`. A stamp with the pins' text says what is installed, so a second run
//! installs nothing and needs no network.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

const PINS: &str = "bin/servo/tests/peers";
const BENCH_PINS: &str = "bench/peers";
const RESTATE_PACKAGES: &str = "node_modules/@restatedev";

#[derive(Debug)]
pub(crate) struct Peers {
    /// The interpreter of the virtual environment.
    pub(crate) python: PathBuf,
    /// A Node that the JavaScript SDK accepts, whatever the machine has.
    pub(crate) node: PathBuf,
    /// The folder that holds `node_modules`.
    pub(crate) node_dir: PathBuf,
}

/// Installs what is missing.
pub(crate) fn ensure() -> Result<Peers> {
    let root = workspace::root()?;
    let (pins, place) = (root.join(PINS), workspace::target(&root).join("peers"));
    let (python_dir, node_dir) = (place.join("python"), place.join("node"));
    let python = python_dir.join("bin/python");
    let node = node_dir.join("node_modules/node/bin/node");
    once(&python_dir, &[pins.join("requirements.txt")], || python_packages(&python_dir, &pins))?;
    let manifests = [pins.join("package.json"), pins.join("package-lock.json")];
    once(&node_dir, &manifests, || node_packages(&node_dir, &manifests, &[]))?;
    Ok(Peers { python, node, node_dir })
}

/// The Restate server, installed if it is missing. Its package for this platform is one program without dependencies.
pub(crate) fn restate() -> Result<PathBuf> {
    let root = workspace::root()?;
    let (pins, dir) = (root.join(BENCH_PINS), workspace::target(&root).join("peers/restate"));
    let manifests = [pins.join("package.json"), pins.join("package-lock.json")];
    // Its scripts only report the installation to somebody.
    once(&dir, &manifests, || node_packages(&dir, &manifests, &["--ignore-scripts"]))?;
    let packages = dir.join(RESTATE_PACKAGES);
    let entries = std::fs::read_dir(&packages).with_context(|| format!("list {}", packages.display()))?;
    let programs = entries.flatten().map(|entry| entry.path().join("bin/restate-server"));
    let missing = || format!("{} has no server for this platform", packages.display());
    programs.filter(|file| process::is_program(file)).max().with_context(missing)
}

/// Does the work into an empty folder unless the stamp there says that it was done from the same pins.
fn once(dir: &Path, pins: &[PathBuf], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()));
    let wanted = pins.iter().map(read).collect::<Result<String>>()?;
    let stamp = dir.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("remove {}", dir.display()))?;
    }
    std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    install().with_context(|| {
        "packages of peers could not be installed; the first run needs the network (PyPI and the npm registry, or \
         mirrors of them in the settings of pip and npm)"
    })?;
    // Last, so that an installation that was cut off is done again.
    std::fs::write(&stamp, wanted).with_context(|| format!("write {}", stamp.display()))
}

fn python_packages(dir: &Path, pins: &Path) -> Result<()> {
    println!("installing {}", pins.join("requirements.txt").display());
    process::capture(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--requirement"]);
    process::capture(pip.arg(pins.join("requirements.txt"))).map(drop)
}

fn node_packages(dir: &Path, manifests: &[PathBuf], options: &[&str]) -> Result<()> {
    println!("installing {}", manifests.first().context("a manifest")?.display());
    for manifest in manifests {
        let name = manifest.file_name().context("a manifest has a name")?;
        std::fs::copy(manifest, dir.join(name)).with_context(|| format!("copy {}", manifest.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.current_dir(dir).args(["ci", "--no-audit", "--no-fund"]);
    process::capture(npm.args(options)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_once_and_again_only_after_a_change_or_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, pin) = (folder.path().join("there"), folder.path().join("pins"));
        let count = std::cell::Cell::new(0);
        let install = || {
            count.set(count.get() + 1);
            Ok(())
        };
        let pins = [pin.clone()];
        std::fs::write(&pin, "one").unwrap();
        assert!(once(&dir, &pins, || anyhow::bail!("no network")).is_err());
        once(&dir, &pins, install).unwrap();
        once(&dir, &pins, install).unwrap();
        assert_eq!(count.get(), 1);
        std::fs::write(&pin, "two").unwrap();
        once(&dir, &pins, install).unwrap();
        assert_eq!(count.get(), 2);
    }
}
