//! The servers that tests talk to: one throw-away PostgreSQL cluster per command, and the paths of programs for tests
//! that start servers of their own. Dropping the [`Environment`] stops everything; so does the death of this process.
//!
//! What the tests see:
//!
//! | variable | meaning |
//! |---|---|
//! | `SERVO_TEST_POSTGRES_URL` | a database whose owner may create databases and roles but is no superuser |
//! | `SERVO_TEST_PG_BIN` | folder with `initdb`, `pg_ctl`, `postgres`, `psql`, `pgbench` |
//! | `SERVO_TEST_PG_ACCOUNT` | only when run as root: the account that servers must run as, since Postgres refuses root |
//! | `SERVO_TEST_NATS_SERVER` | path of the `nats-server` program |
//! | `SERVO_TEST_PYTHON` | Python with AWS's own packages, see `peers.rs` |
//! | `SERVO_TEST_NODE` | Node for AWS's JavaScript SDK |
//! | `SERVO_TEST_PREVIOUS` | optional: the `servo` program of an earlier release, to change to and fro with |
//! | `SERVO_TEST_NODE_DIR` | the folder that holds `node_modules` with that SDK |

mod account;
pub(crate) mod guard;
mod install;
pub(crate) mod peers;
mod place;
mod postgres;

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::env::postgres::Cluster;

/// What a test may conclude from a write that Postgres acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Memory file system and no fsync: fast, and says nothing about durability.
    Fast,
    /// A real disk with fsync, as in production: crash campaigns and measurements.
    Real,
}

pub(crate) struct Environment {
    variables: Vec<(&'static str, OsString)>,
    cluster: Cluster,
}

impl Environment {
    /// Installs what is missing and starts the cluster.
    pub(crate) fn start(durability: Durability) -> Result<Self> {
        let tools = install::ensure()?;
        let account = account::for_servers()?;
        let cluster = Cluster::start(&tools.postgres_bin, account.as_ref(), durability)?;
        let mut variables = vec![
            ("SERVO_TEST_POSTGRES_URL", OsString::from(cluster.url())),
            ("SERVO_TEST_PG_BIN", tools.postgres_bin.into_os_string()),
            ("SERVO_TEST_NATS_SERVER", tools.nats_server.into_os_string()),
        ];
        match peers::ensure() {
            Ok(peers) => variables.extend([
                ("SERVO_TEST_PYTHON", peers.python.into_os_string()),
                ("SERVO_TEST_NODE", peers.node.into_os_string()),
                ("SERVO_TEST_NODE_DIR", peers.node_dir.into_os_string()),
            ]),
            // Everything else can be tested without the network.
            Err(error) => println!("warning: {error:#}; tests with AWS's packages will fail"),
        }
        if let Some(account) = account {
            variables.push(("SERVO_TEST_PG_ACCOUNT", account.name.into()));
        }
        for (name, value) in &variables {
            println!("{name}={}", value.display());
        }
        Ok(Self { variables, cluster })
    }

    /// Gives the variables above to `command`.
    pub(crate) fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Stops the servers and tells whether that worked; dropping does the same but can only complain.
    pub(crate) fn stop(self) -> Result<()> {
        self.cluster.stop()
    }
}
