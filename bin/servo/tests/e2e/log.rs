//! Nothing waits for the log: not for a pipe that nobody reads, a full disk, or a stderr that is closed. And the signal of log
//! rotation ends no server.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::api::Api;
use crate::support::process::{Servo, binary};
use crate::support::until;

fn configuration(folder: &Path, more: &str) -> PathBuf {
    let path = folder.join("servo.toml");
    let data = folder.join("data");
    let text = format!("[server]\nbind = \"127.0.0.1:0\"\n[store]\npath = {data:?}\n{more}");
    std::fs::write(&path, text).expect("a configuration file");
    path
}

fn server(config: &Path) -> Command {
    let mut command = binary();
    command.args(["server", "--ready-json", "--config"]).arg(config);
    command
}

async fn answers(servo: &Servo) {
    let (status, _) = Api::new().get(&servo.url, "/readyz").await.expect("an answer");
    assert_eq!(status, 200);
}

/// More lines than a pipe and the buffer hold, and every request is answered; then it stops in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_nobody_reads_stops_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = configuration(folder.path(), "[log]\nlevel = \"trace\"\n");
    let (unread, stderr) = std::io::pipe().expect("a pipe");
    let servo = Servo::with_stderr(server(&config), stderr);
    let api = Api::new();
    // A request leaves some kilobytes at this level.
    for _ in 0..2_000 {
        let (status, _) = api.get(&servo.url, "/v1/runs?limit=1").await.expect("an answer");
        assert_eq!(status, 200);
    }
    answers(&servo).await;
    assert!(servo.stop().success(), "a clean stop, with nobody to tell");
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stderr_that_takes_nothing_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = configuration(folder.path(), "[log]\nlevel = \"debug\"\n");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("there is one"));
    let servo = Servo::with_stderr(server(&config), full());
    answers(&servo).await;
    assert!(servo.stop().success());

    let (reader, stderr) = std::io::pipe().expect("a pipe");
    let servo = Servo::with_stderr(server(&config), stderr);
    drop(reader);
    answers(&servo).await;
    assert!(servo.stop().success());

    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(crate::support::process::this_program());
    closed.args(["server", "--ready-json", "--config"]).arg(&config);
    let servo = Servo::with_stderr(closed, Stdio::null());
    answers(&servo).await;
    assert!(servo.stop().success());

    // A start that fails says so by its exit code, whoever reads.
    let wrong = configuration(folder.path(), "[telemetry]\nsample_ratio = 2.0\n");
    let status = server(&wrong).stdout(Stdio::null()).stderr(full()).status().expect("it runs");
    assert_eq!(status.code(), Some(2));
}

/// `mv`, then SIGHUP, as logrotate does it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_log_goes_on_in_a_new_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (log, moved) = (folder.path().join("servo.log"), folder.path().join("servo.log.1"));
    let config = configuration(folder.path(), &format!("[log]\nfile = {log:?}\n"));
    let servo = Servo::with_stderr(server(&config), Stdio::null());
    let holds = async |path: &Path, words: &str| {
        until(words, async || {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.contains(words).then_some(())
        })
        .await;
    };
    holds(&log, "authority acquired").await;
    assert_eq!(std::fs::metadata(&log).expect("it is there").permissions().mode() & 0o777, 0o600);
    std::fs::rename(&log, &moved).expect("a rotation");
    servo.signal("HUP");
    holds(&log, "SIGHUP").await;
    answers(&servo).await;
    assert!(servo.stop().success());
    let (before, after) = (std::fs::read_to_string(&moved).expect("it"), std::fs::read_to_string(&log).expect("it"));
    assert!(before.contains("authority acquired") && !before.contains("SIGHUP"), "{before}");
    assert!(after.contains("Stopped."), "to its end: {after}");
}

/// The terminal of `servo dev` is closed: it stops in order. Whoever started it with `nohup` wants it to stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_terminal_stops_dev_unless_it_was_started_to_outlive_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dev = |mut command: Command| {
        command.args(["dev", "--port", "0", "--no-open", "--no-sample", "--ready-json", "--data-dir"]);
        command.arg(folder.path().join("data"));
        Servo::with_stderr(command, Stdio::null())
    };
    let servo = dev(binary());
    servo.signal("HUP");
    assert_eq!(servo.wait().code(), Some(0), "in order");

    let mut outliving = Command::new("sh");
    outliving.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(crate::support::process::this_program());
    let servo = dev(outliving);
    servo.signal("HUP");
    answers(&servo).await;
    assert!(servo.stop().success());
}
