//! A folder of Starlark files, registered at the start and whenever one changes.
//!
//! Files are looked at, a few times a second: that works on every file system and in every container, and a folder of code is
//! small. A change counts once it has stood for one look, so that a file is not read while an editor writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use servo_cli::Failure;
use servo_runtime::{Clock as _, Shutdown, SystemClock};

use super::definition::{Definition, SOURCE, beside};
use super::printer::Colour;
use super::registrar::{Outcome, Registrar};

const LOOK: Duration = Duration::from_millis(250);
/// More are not watched.
const FILES_MAX: usize = 500;

/// Tells one state of a file and the one beside it from another.
pub(super) type Stamp = [Option<(SystemTime, u64)>; 2];
pub(super) type Seen = BTreeMap<String, Stamp>;

pub(super) struct Folder {
    path: PathBuf,
    registrar: Registrar,
    /// As they were when they were last dealt with.
    dealt: Seen,
    /// What stands for a file.
    addresses: BTreeMap<String, String>,
}

impl Folder {
    /// Registers what is there, and takes out of use what was there at an earlier start and is not any more.
    pub(super) async fn open(path: PathBuf, registrar: Registrar) -> Result<Self, Failure> {
        let seen = check(&path)?;
        let mut folder = Self { path, registrar, dealt: Seen::new(), addresses: BTreeMap::new() };
        let before = folder.registrar.tagged().await.map_err(|error| Failure::new(1, error.message))?;
        let all_registered = folder.deal(seen).await;
        // A file that cannot be read now may be one of theirs.
        for address in before.into_iter().filter(|_| all_registered) {
            if !folder.addresses.values().any(|known| same_entrypoint(known, &address)) {
                let line = folder.registrar.withdraw("its file", &address).await;
                folder.registrar.printer.line(line);
            }
        }
        Ok(folder)
    }

    pub(super) async fn watch(mut self, stop: Shutdown) {
        let mut last = self.dealt.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.triggered() => return,
                () = SystemClock.sleep(LOOK) => {}
            }
            let path = self.path.clone();
            // A folder that cannot be read now, as in the middle of a move, changes nothing.
            let Ok(Ok(now)) = tokio::task::spawn_blocking(move || look(&path)).await else { continue };
            if now == last && now != self.dealt {
                self.deal(now.clone()).await;
            }
            last = now;
        }
    }

    /// Deals with every file that is not as it was. Definitions may name each other, so whatever is refused is tried again as
    /// long as others succeed. False if something is still refused.
    async fn deal(&mut self, now: Seen) -> bool {
        let gone: Vec<_> = self.dealt.keys().filter(|file| !now.contains_key(*file)).cloned().collect();
        for file in gone {
            if let Some(address) = self.addresses.remove(&file) {
                let line = self.registrar.withdraw(&file, &address).await;
                self.registrar.printer.line(line);
            }
        }
        let changed = now.iter().filter(|(file, stamp)| self.dealt.get(*file) != Some(*stamp));
        let mut open: Vec<String> = changed.map(|(file, _)| file.clone()).collect();
        self.dealt = now;
        loop {
            let mut refused = Vec::new();
            let tried = open.len();
            for file in std::mem::take(&mut open) {
                match self.register(&file).await {
                    Outcome::Done { address, lines } => {
                        lines.into_iter().for_each(|line| self.registrar.printer.line(line));
                        let renamed = self.addresses.insert(file.clone(), address.clone());
                        if let Some(old) = renamed.filter(|old| !same_entrypoint(old, &address)) {
                            let line = self.registrar.withdraw(&file, &old).await;
                            self.registrar.printer.line(line);
                        }
                    }
                    Outcome::Refused(faults) => refused.push((file, faults)),
                }
            }
            if refused.is_empty() || refused.len() == tried {
                for (file, faults) in &refused {
                    self.report(file, faults);
                }
                return refused.is_empty();
            }
            open = refused.into_iter().map(|(file, _)| file).collect();
        }
    }

    async fn register(&self, file: &str) -> Outcome {
        match Definition::read(&self.path, file) {
            Ok(definition) => self.registrar.register(file, &definition).await,
            Err(fault) => Outcome::Refused(vec![fault]),
        }
    }

    fn report(&self, file: &str, faults: &[String]) {
        let printer = &self.registrar.printer;
        for fault in faults {
            printer.line(printer.paint(Colour::Red, &format!("{}/{fault}", self.path.display())));
        }
        let stays = match self.addresses.get(file) {
            Some(address) => format!("{file} is not registered; {} stays", super::line::short_address(address)),
            None => format!("{file} is not registered"),
        };
        printer.line(stays);
    }
}

/// Versions of one entrypoint have addresses that differ only in their last number.
fn same_entrypoint(one: &str, other: &str) -> bool {
    let stem = |address: &str| address.rsplit_once(".v").map(|(stem, _)| stem.to_owned());
    stem(one) == stem(other)
}

/// What is in the folder, or why it is none.
pub(super) fn check(path: &Path) -> Result<Seen, Failure> {
    look(path).map_err(|error| {
        Failure::usage(format!("--entrypoints {}: {error}", path.display())).hint("name a folder of .star files")
    })
}

/// Every source file with its stamp.
fn look(folder: &Path) -> std::io::Result<Seen> {
    let mut seen = Seen::new();
    for entry in std::fs::read_dir(folder)? {
        let Ok(file) = entry?.file_name().into_string() else { continue };
        // Editors keep copies under names that begin with a dot.
        if !file.ends_with(SOURCE) || file.starts_with('.') || seen.len() >= FILES_MAX {
            continue;
        }
        let stamp = [stamp(&folder.join(&file)), stamp(&folder.join(beside(&file)))];
        if stamp[0].is_some() {
            seen.insert(file, stamp);
        }
    }
    Ok(seen)
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_are_seen_and_a_file_beside_one_counts() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["greet.star", ".greet.star", "notes.txt", "order.workflow.star"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let before = look(folder.path()).unwrap();
        assert_eq!(before.keys().collect::<Vec<_>>(), ["greet.star", "order.workflow.star"]);
        std::fs::write(folder.path().join("order.workflow.json"), "{}").unwrap();
        let after = look(folder.path()).unwrap();
        assert_eq!(before["greet.star"], after["greet.star"]);
        assert_ne!(before["order.workflow.star"], after["order.workflow.star"]);
    }

    #[test]
    fn versions_are_of_one_entrypoint() {
        assert!(same_entrypoint("gts.a.b.c.v1~dev.local.x.v1~", "gts.a.b.c.v1~dev.local.x.v12~"));
        assert!(!same_entrypoint("gts.a.b.c.v1~dev.local.x.v1~", "gts.a.b.c.v1~dev.local.y.v1~"));
    }
}
