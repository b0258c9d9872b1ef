//! One throw-away PostgreSQL cluster: created, started on a port of the system's choice, stopped through its guard.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::env::Durability;
use crate::env::account::{self, Account};
use crate::env::guard::Guard;
use crate::env::place;
use crate::process;

/// Another process may take the port between our choice and the server's start; that many times is no accident.
const PORT_ATTEMPTS_MAX: u32 = 5;
/// Tests run in parallel processes, each with a small pool.
const CONNECTIONS_MAX: u32 = 200;
const SUPERUSER: &str = "postgres";
const OWNER: &str = "servo_owner";
const DATABASE: &str = "servo";

pub(crate) struct Cluster {
    port: u16,
    guard: Guard,
}

impl Cluster {
    pub(crate) fn start(bin: &Path, account: Option<&Account>, durability: Durability) -> Result<Self> {
        let dir = place::create(durability)?;
        if let Some(account) = account {
            account.own(&dir)?;
        }
        let layout = Layout { bin, account, data: dir.join("data"), log: dir.join("postgres.log"), dir };
        let guard = Guard::start(&layout.dir, &layout.data, bin, account)?;
        layout.initialise(durability)?;
        let port = layout.launch()?;
        layout.create_owner(port)?;
        Ok(Self { port, guard })
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{}/{DATABASE}", self.port)
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.guard.stop()
    }
}

struct Layout<'a> {
    bin: &'a Path,
    account: Option<&'a Account>,
    dir: PathBuf,
    data: PathBuf,
    log: PathBuf,
}

impl Layout<'_> {
    fn command(&self, program: &str) -> Command {
        account::command(self.account, &self.dir, self.bin.join(program))
    }

    /// The collation is a natural language's, as in most production databases: with `C` here, a query that forgets to
    /// ask for byte order would pass its tests and misbehave at the customer's.
    fn initialise(&self, durability: Durability) -> Result<()> {
        let mut initdb = self.command("initdb");
        initdb.args(["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US"]);
        initdb.args(["--auth=trust", "--username", SUPERUSER]).arg("--pgdata").arg(&self.data);
        if durability == Durability::Fast {
            initdb.arg("--no-sync");
        }
        process::capture(&mut initdb)?;

        let file = self.data.join("postgresql.conf");
        let mut settings = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        settings.push_str(&settings_for(durability, &self.dir));
        std::fs::write(&file, settings).with_context(|| format!("write {}", file.display()))
    }

    fn launch(&self) -> Result<u16> {
        let mut last_error = None;
        for _ in 0..PORT_ATTEMPTS_MAX {
            let port = free_port()?;
            let mut start = self.command("pg_ctl");
            start.args(["start", "--wait", "--timeout=60", "--silent", "--pgdata"]).arg(&self.data);
            start.arg("--log").arg(&self.log).arg("--options").arg(format!("-p {port}"));
            match process::capture(&mut start) {
                Ok(_) => return Ok(port),
                Err(error) => last_error = Some(error),
            }
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            if !log.contains("could not bind") {
                bail!("PostgreSQL does not start; its log says:\n{log}");
            }
        }
        Err(last_error.context("no attempt to start")?).context("no free port for PostgreSQL")
    }

    /// Not a superuser: superusers pass every row security policy, so tests under one would prove nothing about them.
    fn create_owner(&self, port: u16) -> Result<()> {
        let mut psql = self.command("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--host=127.0.0.1"]);
        psql.args([format!("--port={port}"), format!("--username={SUPERUSER}"), "--dbname=postgres".to_owned()]);
        psql.arg("--command").arg(format!("CREATE ROLE {OWNER} LOGIN NOSUPERUSER CREATEDB CREATEROLE"));
        psql.arg("--command").arg(format!("CREATE DATABASE {DATABASE} OWNER {OWNER}"));
        process::capture(&mut psql).map(|_| ())
    }
}

fn settings_for(durability: Durability, socket_dir: &Path) -> String {
    let mut text = String::from("\n# set by xtask\n");
    let mut set = |name: &str, value: &str| {
        let quoted = value.replace('\'', "''");
        writeln!(text, "{name} = '{quoted}'").expect("writing to a string cannot fail");
    };
    set("listen_addresses", "127.0.0.1");
    set("unix_socket_directories", &socket_dir.to_string_lossy());
    set("max_connections", &CONNECTIONS_MAX.to_string());
    set("timezone", "UTC");
    if durability == Durability::Fast {
        set("fsync", "off");
        set("full_page_writes", "off");
    }
    text
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("ask the system for a free port")?;
    Ok(listener.local_addr().context("read the chosen port")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fast_cluster_gives_up_syncing() {
        let fast = settings_for(Durability::Fast, Path::new("/sockets"));
        let real = settings_for(Durability::Real, Path::new("/sockets"));
        assert!(fast.contains("fsync = 'off'"), "{fast}");
        assert!(!real.contains("fsync"), "{real}");
        assert!(!real.contains("full_page_writes"), "{real}");
    }

    #[test]
    fn a_quote_in_a_path_stays_inside_the_setting() {
        let text = settings_for(Durability::Real, Path::new("/it's"));
        assert!(text.contains("unix_socket_directories = '/it''s'"), "{text}");
    }
}
