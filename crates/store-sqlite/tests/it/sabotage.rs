//! The broken variants are broken: each does what it says, so a test that passes on one of them proves nothing.

use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Append, Error, Expected, Fence, LogStore, Scope};
use servo_store_sqlite::SqliteStore;

use crate::support::{config, events, folder, many, one_more, open, start, wait};

fn broken(dir: &std::path::Path, variant: &str) -> SqliteStore {
    let mut config = config(dir);
    config.sabotage = Some(variant.to_owned());
    SqliteStore::open(config).unwrap()
}

#[test]
fn an_unknown_variant_is_refused() {
    let dir = folder();
    let mut config = config(dir.path());
    config.sabotage = Some("no-such-variant".to_owned());
    assert!(matches!(SqliteStore::open(config), Err(Error::Invalid { .. })));
}

#[test]
fn sync_variants_show_in_the_settings() {
    for (variant, level) in [("synchronous-normal", "1"), ("synchronous-off", "0")] {
        let dir = folder();
        let settings = wait(broken(dir.path(), variant).info()).unwrap().settings;
        assert!(settings.contains(&("synchronous".to_owned(), level.to_owned())), "{settings:?}");
    }
}

#[test]
fn no_seq_check_takes_a_stale_append() {
    for (variant, taken) in [(None, false), (Some("no-seq-check"), true)] {
        let dir = folder();
        let store = variant.map_or_else(|| open(dir.path()), |variant| broken(dir.path(), variant));
        let (run, tenant) = start(&store);
        let stale = fixtures::add(&run, &tenant, Expected::Seq(7), vec![fixtures::fresh_event(&run)]);
        assert_eq!(wait(store.append(Append::one(stale))).is_ok(), taken);
    }
}

#[test]
fn no_fence_takes_a_deposed_writer() {
    for (variant, taken) in [(None, false), (Some("no-fence"), true)] {
        let dir = folder();
        let store = variant.map_or_else(|| open(dir.path()), |variant| broken(dir.path(), variant));
        let (run, tenant) = start(&store);
        let mut append = many(&run, &tenant, 1);
        append.fence = Some(Fence { epoch: 3 });
        assert_eq!(wait(store.append(append)).is_ok(), taken);
    }
}

/// Whether an answered append was not yet in the redo file. The payload is large, so that writing it takes a while.
fn answers_early(store: &SqliteStore, dir: &std::path::Path) -> bool {
    let (run, tenant) = start(store);
    (0..10).any(|number| {
        let mut append = one_more(&run, &tenant, 3_000_000);
        let mark = format!("the mark of append {number}");
        append.streams[0].events[0].event_type = mark.clone().into();
        wait(store.append(append)).unwrap();
        let files = ["servo.redo-a", "servo.redo-b"].map(|name| std::fs::read(dir.join(name)).unwrap_or_default());
        !files.iter().any(|file| file.windows(mark.len()).any(|bytes| bytes == mark.as_bytes()))
    })
}

#[test]
fn an_answer_comes_after_the_commit_unless_sabotaged() {
    let dir = folder();
    assert!(!answers_early(&open(dir.path()), dir.path()));
    let dir = folder();
    assert!(answers_early(&broken(dir.path(), "ack-before-commit"), dir.path()));
}

/// Whether a read of one run misses what was answered before it. The database catches up every 100 ms by itself.
fn misses_a_start(store: &SqliteStore) -> bool {
    (0..50).any(|number| {
        let (run, tenant) = (fixtures::run_id(&format!("run-{number}")), fixtures::tenant("acme"));
        wait(store.append(fixtures::start_append(&run, &tenant))).unwrap();
        wait(store.load_run(&Scope::System, &run, 10)).is_err()
    })
}

#[test]
fn a_read_of_one_run_misses_nothing_unless_sabotaged() {
    let dir = folder();
    assert!(!misses_a_start(&open(dir.path())));
    let dir = folder();
    assert!(misses_a_start(&broken(dir.path(), "stale-reads")));
}

#[test]
fn an_error_of_the_disk_stops_all_writing_and_leaves_the_outcome_open() {
    let dir = folder();
    let store = open(dir.path());
    let (run, tenant) = start(&store);
    drop(store);
    let store = broken(dir.path(), "commit-io-error");
    let first = wait(store.append(many(&run, &tenant, 1))).unwrap_err();
    assert!(first.may_have_happened(), "{first}");
    for _ in 0..2 {
        let later = wait(store.append(many(&run, &tenant, 1))).unwrap_err();
        assert!(
            matches!(&later, Error::Unavailable { detail, maybe_written: false } if detail.contains("has stopped")),
            "{later}"
        );
    }
    // What was committed can still be read, and closing does not hang.
    assert!(!events(&store, &run).is_empty());
    wait(store.close()).unwrap();
    // It had happened.
    assert_eq!(events(&open(dir.path()), &run).len(), 2);
}
