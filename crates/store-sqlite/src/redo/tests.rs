//! The redo file over orderly and disorderly ends. `damage` has what a disk may do to its files, `model` compares it with a
//! vector.

mod damage;
mod model;

use std::fs::OpenOptions;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// Small enough that a few records fill a file.
const SMALL: u64 = 1_000;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Without syncs: nobody cuts the power here.
fn open(dir: &TempDir, applied: u64) -> (Redo, Vec<Record>) {
    Redo::open_with(dir.path(), applied, false, SMALL).unwrap()
}

fn refusal(dir: &TempDir, applied: u64) -> String {
    match Redo::open_with(dir.path(), applied, false, SMALL) {
        Err(servo_store::Error::Corrupt { detail }) => detail,
        other => panic!("{other:?}"),
    }
}

/// Without a zero in it, so that zeros in its place are a change.
fn body(lsn: u64, length: usize) -> Vec<u8> {
    vec![lsn as u8 | 1; length]
}

fn append(redo: &mut Redo, lsns: std::ops::RangeInclusive<u64>, length: usize) {
    for lsn in lsns {
        assert_eq!(redo.append(&body(lsn, length)).unwrap(), lsn);
        assert_eq!(redo.last(), lsn);
    }
}

fn lsns(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.lsn).collect()
}

fn length(dir: &TempDir, file: usize) -> u64 {
    dir.path().join(REDO_FILES[file]).metadata().unwrap().len()
}

/// How often the files were started, by the generations in their headers.
fn uses(redo: &Redo) -> u64 {
    redo.segments.iter().map(Segment::generation).max().unwrap() >> 32
}

#[test]
fn records_of_every_size_are_read_back() {
    let dir = folder();
    let (mut redo, records) = Redo::open(dir.path(), 0, true).unwrap();
    assert!(records.is_empty());
    assert_eq!((redo.last(), redo.unreleased_bytes()), (0, 0));
    let sizes = [0, 1, 7, 8, 9, 64 * 1024, 3 * 1024 * 1024, 5];
    for (size, lsn) in sizes.into_iter().zip(1..) {
        append(&mut redo, lsn..=lsn, size);
    }
    let bytes = redo.unreleased_bytes();
    assert!(bytes > 3 * 1024 * 1024 && bytes.is_multiple_of(8));
    drop(redo);
    let (redo, records) = Redo::open(dir.path(), 0, true).unwrap();
    assert_eq!((redo.last(), redo.unreleased_bytes()), (8, bytes));
    assert_eq!(lsns(&records), [1, 2, 3, 4, 5, 6, 7, 8]);
    for (record, size) in records.iter().zip(sizes) {
        assert!(record.body == body(record.lsn, size), "{size}");
    }
}

/// A file system may not let a program past its cache; a folder may come from one that does.
#[test]
fn records_past_the_cache_and_through_it_follow_each_other() {
    // Beside this program: a folder in memory may not have files like these.
    let dir = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    for first in [1, 5, 9] {
        let (mut redo, records) = Redo::open(dir.path(), 0, true).unwrap();
        assert_eq!(lsns(&records), (1..first).collect::<Vec<_>>());
        assert_eq!(redo.segments[0].is_direct(), cfg!(target_os = "linux"));
        append(&mut redo, first..=first + 1, 3_000);
        redo.segments.iter_mut().for_each(Segment::use_cache);
        append(&mut redo, first + 2..=first + 3, 3_000);
    }
    let (_, records) = Redo::open(dir.path(), 0, true).unwrap();
    assert_eq!(records.len(), 12);
    assert!(records.iter().all(|record| record.body == body(record.lsn, 3_000)));
}

#[test]
fn files_are_for_their_owner_and_grow_ahead_of_the_records() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    let mode = |file: &str| dir.path().join(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(REDO_FILES.map(mode), [0o600, 0o600]);
    // So that all records stay in the first file.
    redo.switch_bytes = u64::MAX;
    let mut lengths = vec![length(&dir, 0)];
    for lsn in 1..=90 {
        append(&mut redo, lsn..=lsn, 100_000);
        if lengths.last() != Some(&length(&dir, 0)) {
            lengths.push(length(&dir, 0));
        }
    }
    let kib: Vec<_> = lengths.iter().map(|length| length / 1024).collect();
    assert_eq!(kib, [0, 256, 768, 1_792, 3_840, 5_888, 7_936, 9_984]);
}

#[test]
fn only_what_was_not_applied_is_given() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    append(&mut redo, 1..=5, 10);
    drop(redo);
    for applied in 0..=5 {
        let (redo, records) = open(&dir, applied);
        assert_eq!(lsns(&records), (applied + 1..=5).collect::<Vec<_>>());
        assert_eq!((redo.last(), redo.unreleased_bytes()), (5, (5 - applied) * 40));
    }
    // The database is ahead: numbers go on behind it, in the other file.
    let (mut redo, records) = open(&dir, 9);
    assert!(records.is_empty() && redo.last() == 9);
    append(&mut redo, 10..=11, 10);
    drop(redo);
    assert_eq!(lsns(&open(&dir, 9).1), [10, 11]);
    assert_eq!(lsns(&open(&dir, 10).1), [11]);
    assert!(refusal(&dir, 5).ends_with("the redo file lacks record 6, and has record 10"));
}

#[test]
fn a_gap_after_what_was_applied_is_damage() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 5);
    append(&mut redo, 6..=7, 10);
    drop(redo);
    let detail = refusal(&dir, 4);
    assert!(
        detail.contains(REDO_FILES[0]) && detail.ends_with("the redo file lacks record 5, and has record 6"),
        "{detail}"
    );
    assert_eq!(lsns(&open(&dir, 5).1), [6, 7]);
}

#[test]
fn a_full_file_is_left_once_the_other_is_released() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    append(&mut redo, 1..=2, 500);
    assert_eq!(uses(&redo), 1);
    append(&mut redo, 3..=3, 500);
    assert_eq!(uses(&redo), 2, "the second file had no records");
    append(&mut redo, 4..=9, 500);
    assert_eq!(uses(&redo), 2, "the first file has records that are not released");
    redo.release(1);
    append(&mut redo, 10..=10, 500);
    assert_eq!(uses(&redo), 2, "it has one still");
    redo.release(2);
    append(&mut redo, 11..=11, 500);
    assert_eq!(uses(&redo), 3);
    assert_eq!(redo.unreleased_bytes(), 9 * 528);
    assert_eq!((length(&dir, 0), length(&dir, 1)), (256 * 1024, 256 * 1024), "they are overwritten in place");
    drop(redo);
    let (_, records) = open(&dir, 2);
    assert_eq!(lsns(&records), (3..=11).collect::<Vec<_>>());
    assert!(refusal(&dir, 1).ends_with("the redo file lacks record 2, and has record 3"));
}

#[test]
fn what_an_earlier_use_left_is_not_read() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    // All of one size, so that the old ones stand where new ones are expected.
    for lsn in 1..=40 {
        append(&mut redo, lsn..=lsn, 100);
        redo.release(lsn);
    }
    assert!(uses(&redo) >= 4);
    drop(redo);
    for applied in 30..=40 {
        let (redo, records) = open(&dir, applied);
        assert_eq!(lsns(&records), (applied + 1..=40).collect::<Vec<_>>());
        assert_eq!(redo.last(), 40);
    }
}

#[test]
fn releasing_more_than_there_is_releases_what_there_is() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 3);
    redo.release(2);
    redo.release(100);
    append(&mut redo, 4..=5, 8);
    assert_eq!(redo.unreleased_bytes(), 80);
    redo.release(4);
    assert_eq!(redo.unreleased_bytes(), 40);
    redo.release(100);
    assert_eq!((redo.unreleased_bytes(), redo.last()), (0, 5));
}

#[test]
fn a_removed_redo_file_leaves_no_files_and_its_numbers_go_on() {
    let dir = folder();
    let (mut redo, _) = Redo::open(dir.path(), 0, true).unwrap();
    append(&mut redo, 1..=3, 10);
    redo.release(3);
    redo.remove().unwrap();
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    let (mut redo, records) = open(&dir, 3);
    assert!(records.is_empty() && redo.last() == 3);
    append(&mut redo, 4..=4, 10);
}

#[test]
fn a_removal_that_was_cut_short_loses_nothing() {
    for left in 0..2 {
        let dir = folder();
        let (mut redo, _) = open(&dir, 0);
        append(&mut redo, 1..=4, 500);
        assert_eq!(uses(&redo), 2);
        drop(redo);
        std::fs::remove_file(dir.path().join(REDO_FILES[1 - left])).unwrap();
        let (mut redo, records) = open(&dir, 4);
        assert!(records.is_empty());
        append(&mut redo, 5..=9, 500);
        drop(redo);
        assert_eq!(lsns(&open(&dir, 4).1), [5, 6, 7, 8, 9]);
    }
}

#[test]
fn a_full_disk_refuses_a_record_and_a_later_one_fits() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 7);
    redo.segments[0].file = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    redo.segments.iter_mut().for_each(Segment::use_cache);
    for _ in 0..2 {
        assert_eq!(redo.append(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((redo.last(), redo.unreleased_bytes()), (7, 0));
    }
    let mut options = OpenOptions::new();
    redo.segments[0].file = options.read(true).write(true).open(dir.path().join(REDO_FILES[0])).unwrap();
    append(&mut redo, 8..=8, 10);
    drop(redo);
    assert_eq!(lsns(&open(&dir, 7).1), [8]);
}

#[test]
fn nothing_is_taken_after_an_error_of_the_disk() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    append(&mut redo, 1..=1, 10);
    // Only through the cache, so that there is one descriptor to take away.
    redo.segments.iter_mut().for_each(Segment::use_cache);
    // The file has room, so this is no error of growing.
    let closed = File::open(dir.path().join(REDO_FILES[0])).unwrap();
    let working = std::mem::replace(&mut redo.segments[0].file, closed);
    let first = redo.append(b"x").unwrap_err();
    redo.segments[0].file = working;
    let second = redo.append(b"x").unwrap_err();
    assert_eq!(first.to_string(), second.to_string());
    assert_eq!(second.kind(), io::ErrorKind::Other);
    assert_eq!((redo.last(), redo.unreleased_bytes()), (1, 40));
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let dir = folder();
    std::fs::create_dir(dir.path().join(REDO_FILES[1])).unwrap();
    let error = Redo::open(dir.path(), 0, true).unwrap_err();
    assert!(matches!(error, servo_store::Error::Unavailable { .. }));
    assert!(error.to_string().contains(REDO_FILES[1]), "{error}");
}
