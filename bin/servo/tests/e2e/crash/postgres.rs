//! R8: the database itself dies, again and again, under load. Nothing acknowledged is lost, nothing is recorded twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::check::{Entry, Ledger, check};
use super::pause::configuration;
use crate::support::api::{Api, Start, random_plan};
use crate::support::dice::Dice;
use crate::support::process::Servo;
use crate::support::{full, variable};

/// A cluster of the test's own, with fsync on, that may be killed.
struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a temporary folder on disk");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let cluster = Self { folder, port };
        cluster.give_away();
        cluster.run(
            "initdb",
            &["-D", cluster.data().to_str().expect("utf-8"), "-U", "servo_owner", "-A", "trust", "--no-sync"],
        );
        let settings = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nfsync = on\n\
             synchronous_commit = on\nmax_connections = 60\n",
            cluster.folder.path().display()
        );
        let file = cluster.data().join("postgresql.auto.conf");
        std::fs::write(&file, settings).expect("settings");
        cluster.ctl("start", "fast");
        cluster
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn url(&self) -> String {
        format!("postgres://servo_owner@127.0.0.1:{}/postgres", self.port)
    }

    /// Postgres refuses to run as root; the test command names the account to use then.
    fn account() -> Option<String> {
        #[expect(clippy::disallowed_methods, reason = "the test command sets it")]
        std::env::var("SERVO_TEST_PG_ACCOUNT").ok().filter(|name| !name.is_empty())
    }

    fn give_away(&self) {
        if let Some(account) = Self::account() {
            let status = Command::new("chown").arg(&account).arg(self.folder.path()).status();
            assert!(status.is_ok_and(|status| status.success()), "chown to {account}");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = Path::new(&variable("SERVO_TEST_PG_BIN")).join(program);
        let mut command = match Self::account() {
            Some(account) => {
                let mut command = Command::new("runuser");
                command.args(["-u", &account, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let log = std::fs::File::create(self.folder.path().join("ctl.log")).expect("a log file");
        let status = command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .status()
            .expect("the program runs");
        let said = std::fs::read_to_string(self.folder.path().join("ctl.log")).unwrap_or_default();
        assert!(status.success(), "{arguments:?}: {said}");
    }

    fn ctl(&self, what: &str, mode: &str) {
        let (data, log) = (self.data(), self.folder.path().join("server.log"));
        let (data, log) = (data.to_str().expect("utf-8"), log.to_str().expect("utf-8"));
        self.run("pg_ctl", &[what, "-D", data, "-m", mode, "-w", "-t", "60", "-l", log]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ctl("stop", "immediate");
            return;
        }
        // Already failing: stop what we started and leave the message to the test.
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(pid) = pid.lines().next() {
            let _ = Command::new("kill").args(["-QUIT", pid.trim()]).status();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_the_database_loses_nothing_and_doubles_nothing() {
    let restarts = if full() { 500 } else { 6 };
    let cluster = Cluster::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = configuration(folder.path(), &cluster.url(), "servo_restarts");
    let servo = Servo::server(&config, &[]).expect("it starts");
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..4u64 {
        let (url, ledger, stop) = (servo.url.clone(), ledger.clone(), stop.clone());
        clients.spawn(async move {
            let (api, mut dice, mut count) = (Api::new(), Dice::new(number), 0);
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                let request_id = format!("request-{number}-{count}");
                let plan = random_plan(&mut dice);
                let entry = Entry { plan: plan.clone(), acked: None };
                ledger.lock().await.requests.insert(request_id.clone(), entry);
                // An unknown outcome is tried again under the same id, as a careful client does.
                while let Start::Unknown = {
                    let outcome = api.start(&url, &request_id, &plan).await;
                    if let Start::Acked { run_id, .. } = &outcome
                        && let Some(entry) = ledger.lock().await.requests.get_mut(&request_id)
                    {
                        entry.acked = Some(run_id.clone());
                    }
                    assert!(!matches!(outcome, Start::Refused(..)), "{outcome:?}");
                    outcome
                } {}
            }
        });
    }
    let mut dice = Dice::new(8);
    for _ in 0..restarts {
        let pause = Duration::from_millis(100 + dice.below(400));
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        tokio::task::block_in_place(|| cluster.ctl("restart", "immediate"));
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client");
    }
    let ledger = ledger.lock().await;
    let findings = check(&Api::new(), &servo.url, &ledger).await;
    println!("{restarts} restarts, {} requests, {} findings", ledger.requests.len(), findings.len());
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(ledger.requests.len() > restarts, "the campaign must have worked");
    servo.stop();
}
