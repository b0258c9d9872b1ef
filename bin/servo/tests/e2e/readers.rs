//! A transaction that somebody left open on the database, and the alert about it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::api::{Api, finished_run};
use crate::support::cluster::Cluster;
use crate::support::postgres::configuration;
use crate::support::process::Servo;
use crate::support::{until, variable};

/// A session with an open transaction that has written something, until it is ended.
struct Forgotten {
    psql: Child,
}

impl Forgotten {
    fn begin(url: &str) -> Self {
        let mut psql = Command::new(Path::new(&variable("SERVO_TEST_PG_BIN")).join("psql"))
            .args(["-X", "-q", "-A", "-t", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        let stdin = psql.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "BEGIN; SELECT pg_current_xact_id();").expect("psql listens");
        let mut id = String::new();
        let stdout = psql.stdout.as_mut().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut id).expect("psql answers");
        assert!(id.trim().parse::<u64>().is_ok(), "{id:?}");
        Self { psql }
    }

    fn end(mut self) {
        drop(self.psql.stdin.take());
        assert!(self.psql.wait().is_ok_and(|status| status.success()));
    }
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}

async fn is_raised(api: &Api, url: &str) -> Option<bool> {
    let (status, alerts) = api.get(url, "/v1/alerts").await?;
    (status == 200).then(|| alerts.to_string().contains("LOG_READERS_HELD_BACK"))
}

/// The alert stands while the transaction is open, also for a server that is started meanwhile, and goes with it. Runs go
/// on all the time: only readers of the whole log wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_transaction_is_told_and_its_end_as_well() {
    let cluster = Cluster::start();
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path(), &cluster.url(), "servo_readers");
    let limit = [("SERVO__RUNTIME__READERS_HELD_BACK_MS", "300")];
    let server = Servo::server(&config, &limit).expect("it starts");
    let api = Api::new();
    finished_run(&server.url, "before").await;
    assert_eq!(is_raised(&api, &server.url).await, Some(false));

    let forgotten = Forgotten::begin(&cluster.url());
    finished_run(&server.url, "during").await;
    until("the alert", async || is_raised(&api, &server.url).await?.then_some(())).await;
    server.kill();
    let server = Servo::server(&config, &limit).expect("it starts");
    assert_eq!(is_raised(&api, &server.url).await, Some(true));
    forgotten.end();
    until("the end of the alert", async || (!is_raised(&api, &server.url).await?).then_some(())).await;
    assert!(server.stop().success());
}
