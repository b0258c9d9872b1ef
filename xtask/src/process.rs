//! Three ways to run another program: watch it, read it, or only ask whether it succeeds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs with our own standard streams; an error unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {}", describe(command)))?;
    if status.success() { Ok(()) } else { bail!("{} ended with {status}", describe(command)) }
}

/// Its standard output without surrounding white space; on failure the error carries what it wrote to standard error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start {}", describe(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", describe(command), output.status, stderr.trim());
    }
    let stdout = String::from_utf8(output.stdout).with_context(|| format!("{} wrote no UTF-8", describe(command)))?;
    Ok(stdout.trim().to_owned())
}

/// Runs silently; a program that cannot be started counts as a failure.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// The full path of a program on `PATH` or in a folder where servers live but which ordinary users do not search.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let searched = std::env::split_paths(&path);
    let beside = ["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    searched.chain(beside).map(|dir| dir.join(name)).find(|file| is_program(file))
}

pub(crate) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn describe(command: &Command) -> String {
    let mut text = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
