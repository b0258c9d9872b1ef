//! The operating system account that database servers run as. Postgres refuses to run as root, so under root (in most
//! containers) it is given another account; everybody else runs it as themselves.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("give {} to {}", path.display(), self.name))
    }
}

/// The account to switch to, or `None` when this process is not root and needs no switch.
pub(crate) fn for_servers() -> Result<Option<Account>> {
    if !is_root()? {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let (Ok(uid), Ok(gid)) = (id(&["-u", name]), id(&["-g", name])) {
            return Ok(Some(Account { name: name.to_owned(), uid, gid }));
        }
    }
    bail!("run as root, but there is neither an account postgres nor nobody to run the database server as")
}

pub(crate) fn is_root() -> Result<bool> {
    Ok(id(&["-u"])? == 0)
}

/// A command that runs as `account` in `dir`. The caller's own Postgres settings (`PGPORT`, `PGSERVICE` …) are hidden
/// from it, so that nobody's real database is ever touched.
pub(crate) fn command(account: Option<&Account>, dir: &Path, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(dir).env("HOME", dir).env("LC_ALL", "C");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
    command
}

fn id(args: &[&str]) -> Result<u32> {
    let text = process::capture(Command::new("id").args(args))?;
    text.parse().with_context(|| format!("id {args:?} printed {text:?}"))
}
