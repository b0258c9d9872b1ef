//! Finds the programs that tests need, and installs by package name what is missing where apt-get can.
//!
//! It changes nothing when all is there, and never upgrades anything.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::env::account;
use crate::process;

/// The oldest major version that the Postgres store supports.
const POSTGRES_MAJOR_MIN: u32 = 15;
const POSTGRES_PROGRAMS: [&str; 5] = ["initdb", "pg_ctl", "postgres", "psql", "pgbench"];

#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) postgres_bin: PathBuf,
    pub(crate) nats_server: PathBuf,
}

/// One thing tests need: how to recognise it, and which Debian packages bring it.
struct Need {
    what: &'static str,
    packages: &'static [&'static str],
    is_there: fn() -> bool,
}

const NEEDS: [Need; 8] = [
    Need { what: "PostgreSQL server 15 or newer", packages: &["postgresql"], is_there: || postgres_bin().is_some() },
    Need { what: "nats-server", packages: &["nats-server"], is_there: || nats_server().is_some() },
    // Compiles the library that drops unsynced writes in power-cut tests.
    Need {
        what: "C compiler",
        packages: &["gcc", "libc6-dev"],
        is_there: || process::find_program("gcc").or_else(|| process::find_program("cc")).is_some(),
    },
    // Both only install AWS's packages into the build's folder.
    Need {
        what: "Python 3 with venv",
        packages: &["python3", "python3-venv"],
        is_there: || process::succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])),
    },
    Need { what: "npm", packages: &["npm"], is_there: || process::find_program("npm").is_some() },
    // The guides call the API with it, and every command of the guides is run.
    Need { what: "curl", packages: &["curl"], is_there: || process::find_program("curl").is_some() },
    // Makes the certificates of databases with TLS.
    Need { what: "openssl", packages: &["openssl"], is_there: || process::find_program("openssl").is_some() },
    // Tests of the console open its pages in it.
    Need {
        what: "Chromium",
        packages: &["chromium", "fonts-dejavu-core"],
        is_there: || {
            ["chromium", "chromium-browser", "google-chrome"].iter().any(|name| process::find_program(name).is_some())
        },
    },
];

/// Every program that tests need, installed if it was missing.
pub(crate) fn ensure() -> Result<Tools> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.is_there)()).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    for need in missing {
        if !(need.is_there)() {
            bail!("{} is still missing after installing {}", need.what, need.packages.join(" "));
        }
    }
    let postgres_bin = postgres_bin().context("find the PostgreSQL programs")?;
    let nats_server = nats_server().context("find nats-server")?;
    Ok(Tools { postgres_bin, nats_server })
}

fn install(missing: &[&Need]) -> Result<()> {
    let what: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if process::find_program("apt-get").is_none() {
        bail!("missing: {}; there is no apt-get here, install them yourself (on Debian: {by_hand})", what.join(", "));
    }
    let Some(prefix) = root_prefix()? else {
        bail!("missing: {}; installing needs root, run: sudo {by_hand}", what.join(", "));
    };
    println!("installing {}", packages.join(" "));
    process::run(apt_get(&prefix).arg("update"))?;
    process::run(apt_get(&prefix).args(["install", "--yes", "--no-install-recommends"]).args(&packages))
}

/// What to write before a command that needs root: nothing, sudo, or `None` when there is no way. Without a terminal
/// sudo must not ask for a password, since nobody could answer.
fn root_prefix() -> Result<Option<Vec<&'static str>>> {
    if account::is_root()? {
        return Ok(Some(Vec::new()));
    }
    if process::succeeds(Command::new("sudo").args(["-n", "true"])) {
        return Ok(Some(vec!["sudo", "-n"]));
    }
    let can_ask = std::io::stdin().is_terminal() && process::find_program("sudo").is_some();
    Ok(can_ask.then(|| vec!["sudo"]))
}

fn apt_get(prefix: &[&'static str]) -> Command {
    let line = prefix.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    let line = line.chain(&["--quiet", "--option", "DPkg::Lock::Timeout=120"]);
    let mut words = line.copied();
    let mut command = Command::new(words.next().unwrap_or("env"));
    command.args(words);
    command
}

fn nats_server() -> Option<PathBuf> {
    process::find_program("nats-server")
}

/// The folder of the newest complete PostgreSQL installation. Debian keeps the server programs off `PATH`, one folder
/// per major version, so the known places are searched beside `PATH`.
fn postgres_bin() -> Option<PathBuf> {
    let mut candidates = Vec::new();
    for (parent, inside) in [("/usr/lib/postgresql", "bin"), ("/usr", "bin"), ("/opt/homebrew/opt", "bin")] {
        let Ok(entries) = std::fs::read_dir(parent) else { continue };
        let versions = entries.flatten().map(|entry| entry.path());
        candidates.extend(versions.map(|dir| dir.join(inside)));
    }
    if let Some(program) = process::find_program("pg_ctl") {
        let real = program.canonicalize().unwrap_or(program);
        candidates.extend(real.parent().map(Path::to_owned));
    }
    let complete = candidates.into_iter().filter(|bin| has_all_programs(bin));
    let versions = complete.filter_map(|bin| Some((postgres_major(&bin)?, bin)));
    versions.filter(|(major, _)| *major >= POSTGRES_MAJOR_MIN).max().map(|(_, bin)| bin)
}

fn has_all_programs(bin: &Path) -> bool {
    POSTGRES_PROGRAMS.iter().all(|name| process::is_program(&bin.join(name)))
}

fn postgres_major(bin: &Path) -> Option<u32> {
    major_of(&process::capture(Command::new(bin.join("postgres")).arg("--version")).ok()?)
}

/// Reads `postgres (PostgreSQL) 15.14 (Debian …)`, also in the form `17beta1`.
fn major_of(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL)")?.1.trim_start();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major_of;

    #[test]
    fn the_major_version_is_read_from_what_postgres_prints() {
        assert_eq!(major_of("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"), Some(15));
        assert_eq!(major_of("postgres (PostgreSQL) 18beta2"), Some(18));
        assert_eq!(major_of("postgres 15.14"), None);
    }
}
