//! What is left to a child, as the kernel tells it.

use std::time::Duration;

use serde_json::json;
use servo_adapter_starlark::Settings;

use crate::hostile::children;
use crate::support::{World, settings};

const ONE: &str = "def main(ctx, input):\n    return 1\n";

fn read(pid: u32, what: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap()
}

fn line<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().collect()
}

/// S9: no rights, no files, no environment, and limits that the parent has set.
#[tokio::test]
async fn a_child_has_no_rights_left() {
    let world = World::new();
    assert_eq!(world.result(ONE, "null").await, json!(1));
    let [child] = children()[..] else { panic!("one child") };
    let status = read(child, "status");
    assert_eq!((line(&status, "NoNewPrivs:"), line(&status, "Seccomp:")), (vec!["1"], vec!["2"]));
    // Nothing to begin with, nothing to get back, also where the server is root.
    for kind in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(&status, kind), ["0000000000000000"], "{kind}");
    }
    let server = std::fs::read_to_string("/proc/self/status").unwrap();
    if line(&server, "CapEff:") != ["0000000000000000"] {
        assert_eq!(line(&status, "CapBnd:"), ["0000000000000000"]);
    }
    let threads = std::fs::read_dir(format!("/proc/{child}/task")).unwrap();
    for thread in threads.flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        assert_eq!(line(&status, "CapEff:"), ["0000000000000000"], "of every thread");
    }
    let limits = read(child, "limits");
    let soft = |name: &str| line(&limits, name)[0].to_owned();
    assert_eq!((soft("Max file size"), soft("Max core file size")), ("0".to_owned(), "0".to_owned()));
    assert_eq!(soft("Max open files"), "16");
    let memory: u64 = soft("Max address space").parse().unwrap();
    assert!(memory < 400 * 1024 * 1024, "{memory}");
    let cpu: u64 = soft("Max cpu time").parse().unwrap();
    assert!((20..=23).contains(&cpu), "{cpu}");
    assert_eq!(read(child, "environ"), "");
    assert_eq!(std::fs::read_link(format!("/proc/{child}/cwd")).unwrap().to_str(), Some("/"));
    let files = std::fs::read_dir(format!("/proc/{child}/fd")).unwrap();
    let files: Vec<String> =
        files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()?.to_str().map(str::to_owned)).collect();
    let foreign = |file: &&String| !file.starts_with("pipe:") && !file.starts_with(&format!("/proc/{child}/"));
    assert_eq!(files.iter().find(foreign), None, "{files:?}");
}

/// The smallest memory that an entrypoint may ask for is enough to run at all, again and again.
#[tokio::test]
async fn the_smallest_memory_is_enough_for_a_small_program() {
    let world = World::new();
    for _ in 0..20 {
        let code = servo_model::function::Code { memory_mb: 1, cpu_milli: 100, ..crate::support::code(ONE) };
        let call = crate::support::call_of(code, false, r#"{"amount": 1}"#);
        assert_eq!(servo_adapter::Handlers::call(&world.starlark, Box::new(call)).await.unwrap().text, "1");
    }
    assert_eq!(children().len(), 1);
}

#[tokio::test]
async fn idle_children_are_ended() {
    let world = World::with(Settings { idle: Duration::from_millis(20), ..settings() });
    assert_eq!(world.result(ONE, "null").await, json!(1));
    while !children().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.result(ONE, "null").await, json!(1));
}

#[tokio::test]
async fn spare_children_wait_for_a_first_call() {
    let world = World::with(Settings { spare: 1, ..settings() });
    world.starlark.warm_up();
    while children().is_empty() {
        tokio::task::yield_now().await;
    }
    let spare = children();
    assert_eq!(world.result(ONE, "null").await, json!(1));
    assert!(children().contains(&spare[0]));
    // Another one takes its place.
    while children().len() < 2 {
        tokio::task::yield_now().await;
    }
}

/// A child that is used up is replaced.
#[tokio::test]
async fn children_serve_a_number_of_calls() {
    let world = World::with(Settings { calls_per_child_max: 1, ..settings() });
    for _ in 0..3 {
        assert_eq!(world.result(ONE, "null").await, json!(1));
    }
    while !children().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_told_apart_from_a_bad_source() {
    let world = World::with(Settings { program: "/bin/true".into(), ..settings() });
    let failure = world.call(ONE, "null").await.unwrap_err();
    assert_eq!(failure.kind, servo_adapter::FailureKind::Crashed);
    let issues = world.starlark.check(ONE).await.unwrap_err();
    assert!(issues[0].message.contains("could not be checked"), "{issues:?}");
}
