//! The process that stops a cluster when its owner ends, however it ends.
//!
//! A destructor does not run on Ctrl-C or kill -9. So the owner starts this same program as a guard, in a process group
//! of its own that Ctrl-C does not reach, and holds the write end of a pipe to it. The kernel closes that end when
//! the owner is gone; the guard then stops the server and removes the folder. The ordinary stop takes the same way.

use std::io::{ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::env::account::{self, Account};
use crate::process;

pub(crate) const COMMAND: &str = "guard-cluster";

const CLEAN_UP_ATTEMPTS_MAX: u32 = 100;
const CLEAN_UP_PAUSE: Duration = Duration::from_millis(100);

/// The owner's side. Dropping it stops the cluster.
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Must be called before the server starts, so that there is no moment in which nobody watches it.
    pub(crate) fn start(dir: &Path, data: &Path, bin: &Path, account: Option<&Account>) -> Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let mut command = Command::new(program);
        command.arg(COMMAND).args([dir, data, bin]);
        if let Some(account) = account {
            command.args([account.uid.to_string(), account.gid.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn().context("start the cluster's guard")?;
        Ok(Self { child })
    }

    /// Closes the pipe and waits until the server is stopped and its folder is gone.
    pub(crate) fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("wait for the cluster's guard")?;
        if status.success() { Ok(()) } else { bail!("the cluster's guard ended with {status}") }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("warning: {error:#}");
        }
    }
}

/// The guard's own side: `guard-cluster DIR DATA BIN [UID GID]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let [dir, data, bin, ids @ ..] = args else { bail!("{COMMAND} is started by xtask itself") };
    let (dir, data, bin) = (PathBuf::from(dir), PathBuf::from(data), PathBuf::from(bin));
    let account = match ids {
        [] => None,
        [uid, gid] => Some(Account { name: uid.clone(), uid: uid.parse()?, gid: gid.parse()? }),
        other => bail!("{COMMAND}: unexpected {other:?}"),
    };
    std::io::stdin().read_to_end(&mut Vec::new()).context("wait for the owner")?;
    clean_up(&dir, || stop_server(&dir, &data, &bin, account.as_ref()))
}

/// An owner that dies while it still creates the cluster leaves `initdb` behind, which goes on writing for a moment;
/// so stopping and removing are repeated until the folder is gone.
fn clean_up(dir: &Path, stop: impl Fn() -> Result<()>) -> Result<()> {
    let mut attempts = 0;
    loop {
        let stopped = stop();
        let removed = match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        match stopped.and(removed.with_context(|| format!("remove {}", dir.display()))) {
            Ok(()) => return Ok(()),
            Err(error) if attempts == CLEAN_UP_ATTEMPTS_MAX => return Err(error),
            Err(_) => attempts += 1,
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "another program's end cannot be waited for unless it is our child")]
fn pause() {
    std::thread::sleep(CLEAN_UP_PAUSE);
}

/// `pg_ctl` signals the process whose id stands in the cluster's pid file. `immediate` because the data is thrown away.
fn stop_server(dir: &Path, data: &Path, bin: &Path, account: Option<&Account>) -> Result<()> {
    if !data.join("postmaster.pid").exists() {
        return Ok(());
    }
    let mut stop = account::command(account, dir, bin.join("pg_ctl"));
    stop.args(["stop", "--mode=immediate", "--wait", "--timeout=60", "--pgdata"]).arg(data);
    process::capture(&mut stop).map(|_| ())
}
