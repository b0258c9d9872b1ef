//! No space left: the write is refused, everything else goes on, and so do writes once there is space again.

use std::process::Command;

use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Error, LogStore, Scope};
use servo_store_sqlite::SqliteStore;

use crate::support::{config, events, folder, names, one_more, open, start, wait};

#[test]
fn a_full_store_refuses_keeps_and_recovers() {
    let dir = folder();
    let mut config = config(dir.path());
    config.pages_max = Some(200);
    let store = SqliteStore::open(config).unwrap();
    let (run, tenant) = start(&store);
    let other = fixtures::run_id("other");
    wait(store.append(fixtures::start_append(&other, &tenant))).unwrap();
    let mut written = 1;
    let refused = loop {
        match wait(store.append(one_more(&run, &tenant, 8_000))) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused}");
    assert!(written > 10);
    assert_eq!(events(&store, &run).len(), written, "what was answered is there, and nothing else");
    assert!(matches!(wait(store.append(one_more(&run, &tenant, 50_000))), Err(Error::Full { .. })));
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    for _ in 0..10 {
        wait(store.append(one_more(&other, &tenant, 8_000))).unwrap();
    }
    assert_eq!(events(&store, &other).len(), 11);
    drop(store);
    let store = open(dir.path());
    assert_eq!(events(&store, &other).len(), 11);
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

/// The folder of the process that meets the limit; unset everywhere else.
const LIMITED: &str = "SERVO_TEST_LIMITED_DIR";

#[test]
fn a_limit_on_file_sizes_is_as_good_as_a_full_disk() {
    let dir = folder();
    drop(open(dir.path()));
    // 2,048 blocks are 1 or 2 MB, by the shell; too large a write is to be answered, not punished.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact full::limited --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(LIMITED, dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success(), "{text}{}", String::from_utf8_lossy(&limited.stderr));
    let written: usize = text.split("written ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(written > 10, "{written}");
    let store = open(dir.path());
    let (run, tenant) = names();
    assert_eq!(events(&store, &run).len(), written);
    wait(store.append(one_more(&run, &tenant, 8_000))).unwrap();
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
}

/// Runs inside the limit, in a process of its own.
#[test]
fn limited() {
    let Some(dir) = std::env::var_os(LIMITED) else { return };
    let store = open(dir.as_ref());
    let (run, tenant) = start(&store);
    let mut written = 1;
    let refused = loop {
        match wait(store.append(one_more(&run, &tenant, 8_000))) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused}");
    // Refused, not stopped: the next one is judged anew.
    assert!(matches!(wait(store.append(one_more(&run, &tenant, 8_000))), Err(Error::Full { .. })));
    assert_eq!(events(&store, &run).len(), written);
    println!("written {written} events");
}
