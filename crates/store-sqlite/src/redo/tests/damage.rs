//! What a power cut or a bad disk leaves in the files.

use std::os::unix::fs::FileExt;

use super::*;

/// Bytes of a record with a body of 100: no padding, which would be zeros.
const SIZE: u64 = 128;

/// Changes the last record in a file at a byte of it, or from there on.
type Tear<'t> = &'t dyn Fn(&File, u64);

fn file(dir: &TempDir, index: usize) -> File {
    OpenOptions::new().read(true).write(true).open(dir.path().join(REDO_FILES[index])).unwrap()
}

/// Where the record stands, if the file begins with the first.
fn place(nth: u64) -> u64 {
    frame::RECORDS_AT + nth * SIZE
}

fn flip(file: &File, at: u64) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

fn three() -> TempDir {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    append(&mut redo, 1..=3, 100);
    assert_eq!(redo.unreleased_bytes(), 3 * SIZE);
    dir
}

#[test]
fn a_last_record_torn_at_any_byte_is_no_record_and_is_overwritten() {
    let cut = |file: &File, at: u64| file.set_len(at).unwrap();
    let zero = |file: &File, at: u64| file.write_all_at(&vec![0; (place(3) - at) as usize], at).unwrap();
    // The end came to the disk, and the beginning did not.
    let zero_front =
        |file: &File, at: u64| file.write_all_at(&vec![0; (at + 1 - place(2)) as usize], place(2)).unwrap();
    let tears: [(&str, Tear<'_>); 4] = [("cut", &cut), ("zero", &zero), ("zero_front", &zero_front), ("flip", &flip)];
    for (how, tear) in tears {
        let dir = three();
        for at in place(2)..place(3) {
            tear(&file(&dir, 0), at);
            let (mut redo, records) = open(&dir, 0);
            assert_eq!(lsns(&records), [1, 2], "{how} at {at}");
            assert_eq!(redo.last(), 2);
            // Shorter than what is there.
            append(&mut redo, 3..=4, 20);
            drop(redo);
            let (_, records) = open(&dir, 0);
            assert_eq!(lsns(&records), [1, 2, 3, 4], "{how} at {at}");
            // And once more the record of before, for the next place.
            file(&dir, 0).set_len(place(2)).unwrap();
            append(&mut open(&dir, 0).0, 3..=3, 100);
        }
    }
}

#[test]
fn damage_in_front_of_a_record_is_not_a_torn_end() {
    for nth in 0..2 {
        for at in place(nth)..place(nth + 1) {
            let dir = three();
            flip(&file(&dir, 0), at);
            let detail = refusal(&dir, 0);
            let expected = format!("the redo file lacks record {}, and has record {}", nth + 1, nth + 2);
            assert!(detail.ends_with(&expected), "{at}: {detail}");
            assert!(detail.contains(REDO_FILES[0]), "{detail}");
        }
    }
}

/// Records 1 to 8 in the first file, the others in the second.
fn both_files() -> TempDir {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    append(&mut redo, 1..=10, 100);
    assert_eq!(uses(&redo), 2);
    drop(redo);
    dir
}

#[test]
fn damage_at_the_end_of_the_older_file_is_damage_if_the_database_needs_it() {
    let dir = both_files();
    flip(&file(&dir, 0), place(7));
    assert!(refusal(&dir, 6).ends_with("the redo file lacks record 8, and has record 9"));
    assert_eq!(lsns(&open(&dir, 8).1), [9, 10]);
}

#[test]
fn a_torn_record_may_stay_at_the_end_of_a_file_that_is_left() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 0);
    redo.switch_bytes = u64::MAX;
    append(&mut redo, 1..=9, 100);
    drop(redo);
    flip(&file(&dir, 0), place(8));
    let (mut redo, records) = open(&dir, 0);
    assert_eq!(records.len(), 8);
    // The file is full, so the record goes into the other one.
    append(&mut redo, 9..=10, 100);
    assert_eq!(uses(&redo), 2);
    drop(redo);
    assert_eq!(lsns(&open(&dir, 0).1), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_file_that_was_started_and_has_no_record_yet_changes_nothing() {
    for torn in [false, true] {
        let dir = folder();
        let (mut redo, _) = open(&dir, 0);
        append(&mut redo, 1..=16, 100);
        redo.release(8);
        let (index, header) = redo.place(17).unwrap();
        redo.segments[index].start(header.unwrap(), SIZE).unwrap();
        drop(redo);
        if torn {
            flip(&file(&dir, 0), 20);
        }
        for _ in 0..2 {
            let (redo, records) = open(&dir, 8);
            assert_eq!(lsns(&records), (9..=16).collect::<Vec<_>>());
            assert_eq!(redo.last(), 16);
        }
        let (mut redo, _) = open(&dir, 8);
        append(&mut redo, 17..=40, 100);
        drop(redo);
        assert_eq!(lsns(&open(&dir, 8).1), (9..=40).collect::<Vec<_>>());
    }
}

#[test]
fn a_damaged_header_does_not_hide_records() {
    for at in 0..32 {
        let dir = both_files();
        flip(&file(&dir, 1), at);
        let detail = refusal(&dir, 0);
        assert!(detail.ends_with("the header is damaged, and record 9 is behind it"), "{at}: {detail}");
        assert!(refusal(&dir, 9).ends_with("record 10 is behind it"));
        // The database has all of them.
        let (mut redo, records) = open(&dir, 10);
        assert!(records.is_empty());
        append(&mut redo, 11..=12, 100);
        drop(redo);
        assert_eq!(lsns(&open(&dir, 10).1), [11, 12]);
    }
    // Of the older file: there is only a gap.
    let dir = both_files();
    flip(&file(&dir, 0), 0);
    assert!(refusal(&dir, 0).ends_with("the redo file lacks record 1, and has record 9"));
    assert_eq!(lsns(&open(&dir, 8).1), [9, 10]);
}

#[test]
fn a_length_beyond_the_file_is_not_believed() {
    let dir = three();
    file(&dir, 0).write_all_at(&u32::MAX.to_le_bytes(), place(2) + 24).unwrap();
    assert_eq!(lsns(&open(&dir, 0).1), [1, 2]);
}

#[test]
fn a_record_twice_is_damage() {
    let dir = both_files();
    let (mut redo, _) = open(&dir, 8);
    redo.segments[1].start(FileHeader { generation: 9 << 32, first: 7 }, SIZE).unwrap();
    let mut record = Vec::new();
    frame::encode(&mut record, 9 << 32, 7, b"x").unwrap();
    redo.segments[1].append(7, &record).unwrap();
    drop(redo);
    assert!(refusal(&dir, 0).ends_with("record 7 comes after record 8"));
}

#[test]
fn records_of_another_generation_are_not_read_whatever_their_number() {
    let dir = three();
    let (mut redo, _) = open(&dir, 3);
    let index = redo.current.unwrap();
    redo.segments[index].start(FileHeader { generation: 9 << 32, first: 1 }, SIZE).unwrap();
    drop(redo);
    let (mut redo, records) = open(&dir, 0);
    assert!(records.is_empty());
    append(&mut redo, 1..=1, 100);
    drop(redo);
    assert_eq!(lsns(&open(&dir, 0).1), [1]);
}

#[test]
fn a_record_with_another_number_than_its_place_says_is_damage() {
    let dir = folder();
    let (mut redo, _) = open(&dir, 4);
    redo.segments[0].start(FileHeader { generation: 9 << 32, first: 5 }, SIZE).unwrap();
    let mut record = Vec::new();
    frame::encode(&mut record, 9 << 32, 7, b"x").unwrap();
    redo.segments[0].append(7, &record).unwrap();
    drop(redo);
    assert!(refusal(&dir, 4).ends_with("the redo file lacks record 5, and has record 7"));
}

#[test]
fn files_of_something_else_have_no_records() {
    let dir = folder();
    std::fs::write(dir.path().join(REDO_FILES[0]), "x".repeat(10_000)).unwrap();
    std::fs::write(dir.path().join(REDO_FILES[1]), "x").unwrap();
    let (mut redo, records) = open(&dir, 2);
    assert!(records.is_empty());
    append(&mut redo, 3..=20, 100);
    drop(redo);
    assert_eq!(open(&dir, 2).1.len(), 18);
}
