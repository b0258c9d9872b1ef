//! R2: power cuts. Nothing acknowledged is lost, no file is damaged, no transaction is torn.
//!
//! The worker is this test binary itself, started again with a recorder preloaded. `kill -9` alone would prove nothing
//! here: what the killed process wrote is still in the system's cache. The cut takes away what was not synced.

mod worker;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rusqlite::Connection;
use servo_powercut::Recorder;
use servo_store::{LogStore as _, Scope};
use servo_store_sqlite::{Config, DATABASE_FILE, SqliteStore};

/// Sum over all rounds.
#[derive(Debug, Default)]
struct Totals {
    cuts: u64,
    acked: u64,
    lost: u64,
    torn: u64,
    damaged: u64,
    sectors_lost: u64,
}

/// How many cuts: as in CI, or the part of the full number that the campaign asks for.
#[expect(clippy::disallowed_methods, reason = "the campaign's command sets it")]
fn size(short: u64, full: u64) -> u64 {
    let percent: Option<u64> = std::env::var("SERVO_CRASH_PERCENT").ok().and_then(|text| text.parse().ok());
    percent.map_or(short, |percent| (full * percent / 100).max(short))
}

/// Starts a worker, lets it acknowledge some appends, kills it, and says what it acknowledged per run.
fn work(
    recorder: &Recorder,
    data: &Path,
    redo: &Path,
    seed: u64,
    variant: &str,
) -> (BTreeMap<String, u64>, servo_powercut::Recording) {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["worker::worker", "--exact", "--nocapture", "--test-threads=1"])
        .env(worker::FOLDER, data)
        .env(worker::VARIANT, variant)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let recording = recorder.attach(&mut command, data, redo);
    let chosen = seed.wrapping_mul(2_654_435_761) % 150;
    // Every other time the cut comes between a write and its sync, else whenever it comes. The controls seldom sync.
    let at_sync = seed % 2 == 1 && variant.is_empty();
    if at_sync {
        servo_powercut::die_at_sync(&mut command, 1 + chosen);
    }
    let mut child = command.spawn().expect("the worker starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut acked: BTreeMap<String, u64> = BTreeMap::new();
    let mut note = |line: String| -> bool {
        // The test harness prints on the same line as the first of ours.
        let Some((_, ack)) = line.rsplit_once("ack ") else { return false };
        if let Some((run, seq)) = ack.split_once(' ')
            && let Ok(seq) = seq.trim().parse()
        {
            acked.insert(run.to_owned(), seq);
            return true;
        }
        false
    };
    let wanted = if at_sync { u64::MAX } else { 1 + chosen };
    let mut seen = 0;
    while seen < wanted {
        match lines.next() {
            Some(Ok(line)) => seen += u64::from(note(line)),
            _ => break,
        }
    }
    child.kill().expect("the worker is ours");
    // What was printed before the kill was acknowledged, also if it is read only now.
    for line in lines.map_while(Result::ok) {
        note(line);
    }
    child.wait().expect("the worker is ours");
    (acked, recording)
}

fn check(data: &Path, acked: &BTreeMap<String, u64>, totals: &mut Totals) {
    totals.acked += acked.values().sum::<u64>() / 2;
    let _ = std::fs::remove_file(data.join(format!("{DATABASE_FILE}-shm")));
    let whole = Connection::open(data.join(DATABASE_FILE))
        .and_then(|connection| connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)));
    if !whole.is_ok_and(|verdict| verdict == "ok") {
        totals.damaged += 1;
        totals.lost += acked.values().sum::<u64>() / 2;
        return;
    }
    let Ok(store) = SqliteStore::open(Config::new(data, Arc::new(worker::now))) else {
        totals.damaged += 1;
        return;
    };
    for (run, seq) in acked {
        let run_id = servo_model::RunId::parse(run).expect("the worker's own ids");
        let head = worker::block_on(store.read_run(&Scope::System, &run_id, 0, 1)).map_or(0, |page| page.head_seq);
        totals.lost += seq.saturating_sub(head) / 2;
        // Each append holds two events: an odd head is half a transaction.
        totals.torn += head % 2;
    }
}

fn campaign(cuts: u64, variant: &str) -> Totals {
    let recorder = Recorder::build().expect("a C compiler; `cargo xtask test` installs one");
    let mut totals = Totals::default();
    for seed in 0..cuts {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("a data folder");
        let redo = folder.path().join("redo");
        let (acked, recording) = work(&recorder, &data, &redo, seed, variant);
        let cut = recording.cut(seed).expect("the files can be rebuilt");
        totals.cuts += 1;
        totals.sectors_lost += cut.sectors_lost;
        check(&data, &acked, &mut totals);
    }
    totals
}

/// R2 with what the store ships with.
#[test]
fn crash_power_cut_loses_nothing_acknowledged() {
    let cuts = size(300, 10_000);
    let totals = campaign(cuts, "");
    println!("{totals:?} (rate below {:.4} per cut at 95 %)", 3.0 / cuts as f64);
    assert_eq!((totals.lost, totals.torn, totals.damaged), (0, 0, 0), "{totals:?}");
    assert!(totals.acked > cuts, "the campaign must have worked: {totals:?}");
    assert!(totals.sectors_lost > 0, "no cut lost anything unsynced: the campaign proved nothing");
}

/// The control: without a sync per commit, acknowledged appends are lost, and the suite says so.
#[cfg(feature = "sabotage")]
#[test]
fn crash_power_cut_control_finds_lost_commits() {
    let totals = campaign(60, "synchronous-normal");
    assert!(totals.lost > 0, "{totals:?}");
}

/// The control: without any sync, files are damaged, and the suite says so.
#[cfg(feature = "sabotage")]
#[test]
fn crash_power_cut_control_finds_damaged_files() {
    let totals = campaign(60, "synchronous-off");
    assert!(totals.damaged + totals.lost > 0, "{totals:?}");
}
