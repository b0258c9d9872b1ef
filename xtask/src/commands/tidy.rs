//! `cargo xtask tidy`: house rules that neither the compiler nor clippy can see. One file per rule family under `tidy/`.
//!
//! It reads the files that git tracks or would track, so build output and local data are never looked at.

mod codes;
mod ledger;
mod rust;
mod spec;
mod words;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::commands::no_arguments;
use crate::{process, workspace};

/// A file as git names it, relative to the root with `/` between folders, and its text.
struct File {
    path: String,
    text: String,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let root = workspace::root()?;
    let files = read_files(&root)?;
    let mut problems = Vec::new();
    for file in &files {
        problems.extend(rust::check(file));
        problems.extend(words::check(file));
        problems.extend(spec::check(file));
    }
    problems.extend(codes::check(&files));
    problems.extend(ledger::check(&files));
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} untidy places", problems.len());
    }
    println!("{} files are tidy", files.len());
    Ok(())
}

/// Text files only: what is not UTF-8 has no lines to check.
fn read_files(root: &Path) -> Result<Vec<File>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = process::capture(&mut git).context("list the files of the project")?;
    let mut files = Vec::new();
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        let full = root.join(path);
        // A deleted file stays in the list until the deletion is recorded.
        if !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).with_context(|| format!("read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
