//! Processes that the server starts as workers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::process::Servo;
use crate::support::until;

/// Gone, or dead and only not yet waited for by whoever inherited it.
fn is_dead(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// A server that is killed takes its workers with it: nobody else would end them, and the next server starts its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_do_not_outlive_a_server_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (script, pid) = (folder.path().join("worker"), folder.path().join("pid"));
    let text = format!("#!/bin/sh\necho $$ > {0}.fresh; mv {0}.fresh {0}\nexec sleep 600\n", pid.display());
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let function = format!("--function=f={}", script.display());
    let servo = Servo::dev_with(&folder.path().join("data"), &[&function], &[]).expect("it starts");
    let worker = until("the worker runs", async || std::fs::read_to_string(&pid).ok()).await;
    let worker = worker.trim();
    assert!(!is_dead(worker));
    servo.kill();
    until("the worker is gone", async || is_dead(worker).then_some(())).await;
}
