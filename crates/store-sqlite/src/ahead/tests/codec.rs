//! Changes through bytes and back.

use std::collections::HashSet;
use std::mem::discriminant;

use proptest::collection::vec;
use proptest::prelude::*;

use super::samples::{changes, edges};
use crate::ahead::change::Change;
use crate::ahead::codec::{put, take_all};
use crate::bytes::{Damage, Put};

fn body(changes: &[Change]) -> Vec<u8> {
    let mut body = Vec::new();
    changes.iter().for_each(|change| put(&mut body, change));
    body
}

/// Whether two readings say the same. Either may be damage.
fn says(found: &Result<Vec<Change>, Damage>, expected: &[Change]) -> bool {
    found.as_ref().is_ok_and(|found| found == expected)
}

#[test]
fn every_kind_of_change_comes_back_unchanged_at_its_edges() {
    let edges = edges();
    for change in &edges {
        let one = std::slice::from_ref(change);
        assert!(says(&take_all(&body(one)), one), "{:.300}", format!("{change:?}"));
    }
    assert!(says(&take_all(&body(&edges)), &edges), "all of them in one record");
    let kinds: HashSet<_> = edges.iter().map(discriminant).collect();
    assert_eq!(kinds.len(), 11, "the table has every kind");
    assert_eq!(take_all(&[]), Ok(Vec::new()), "a record may be empty");
}

#[test]
fn a_cut_within_a_change_is_damage() {
    for change in edges() {
        let whole = body(std::slice::from_ref(&change));
        // Long texts are cut at some places, and everything around them at all.
        let ends = (1..whole.len()).filter(|end| *end < 500 || whole.len() - end < 500 || end.is_multiple_of(977));
        for end in ends {
            assert!(take_all(&whole[..end]).is_err(), "{end} {:.300}", format!("{change:?}"));
        }
    }
}

#[test]
fn other_bytes_are_damage_or_other_changes() {
    for change in edges() {
        let one = std::slice::from_ref(&change);
        let whole = body(one);
        if whole.len() > 1_000 {
            continue;
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut garbled = whole.clone();
                garbled[at] ^= 1 << bit;
                assert!(!says(&take_all(&garbled), one), "{at} {bit} {change:?}");
            }
        }
    }
}

#[test]
fn unknown_kinds_and_values_are_named() {
    let mut unknown = Vec::new();
    unknown.put_number(13);
    assert_eq!(take_all(&unknown), Err(Damage("has a change of a kind that this program does not know")));
    let mut nobody = Vec::new();
    nobody.put_number(4);
    nobody.put_text("not a run");
    assert_eq!(take_all(&nobody), Err(Damage("has a value that this program does not know")));
}

/// A count or a length is believed only as far as there are bytes: otherwise these would ask for more memory than there is.
#[test]
fn counts_and_lengths_that_are_lies_allocate_nothing() {
    let mut lines = Vec::new();
    lines.put_number(7);
    lines.put_text("run");
    lines.put_text("acme");
    lines.put_number(u64::MAX);
    assert_eq!(take_all(&lines), Err(Damage("ends too early")));
    for length in [u64::from(u32::MAX), 1 << 62, u64::MAX] {
        let mut text = Vec::new();
        text.put_number(9);
        text.put_number(length);
        text.extend([b'a'; 100]);
        assert_eq!(take_all(&text), Err(Damage("ends too early")), "{length}");
    }
}

proptest! {
    #[test]
    fn changes_come_back_unchanged(changes in vec(changes(), 0..8)) {
        prop_assert_eq!(take_all(&body(&changes)), Ok(changes));
    }

    #[test]
    fn a_cut_record_is_damage_or_its_first_changes(changes in vec(changes(), 1..5), cut in any::<prop::sample::Index>()) {
        let mut whole = body(&changes);
        whole.truncate(cut.index(whole.len()));
        if let Ok(found) = take_all(&whole) {
            prop_assert!(found.len() < changes.len() && changes.starts_with(&found));
        }
    }

    #[test]
    fn a_garbled_record_never_makes_a_reader_panic(
        changes in vec(changes(), 1..5),
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut whole = body(&changes);
        for (place, byte) in places {
            let at = place.index(whole.len());
            whole[at] = byte;
        }
        let found = take_all(&whole).map_or(0, |found| found.len());
        prop_assert!(found <= whole.len() / 4, "never more than the bytes can hold");
    }

    #[test]
    fn no_bytes_at_all_make_a_reader_panic(kind in 0..14_u8, bytes in vec(any::<u8>(), 0..300)) {
        let _ = take_all(&bytes);
        let _ = take_all(&[&[kind][..], &bytes].concat());
    }
}
