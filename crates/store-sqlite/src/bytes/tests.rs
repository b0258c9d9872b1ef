//! What was put is taken again, and whatever does not fit is damage.

use proptest::prelude::*;

use super::*;

#[test]
fn numbers_are_as_short_as_they_can_be() {
    for (number, bytes) in [(0, 1), (127, 1), (128, 2), (u64::from(u32::MAX), 5), (u64::MAX, 10)] {
        let mut out = Vec::new();
        out.put_number(number);
        assert_eq!(out.len(), bytes, "{number}");
        let mut from = Take::new(&out);
        assert_eq!((from.number(), from.is_empty()), (Ok(number), true));
    }
    for (number, bytes) in [(0, 1), (-1, 1), (63, 1), (-64, 1), (64, 2), (i64::MAX, 10), (i64::MIN, 10)] {
        let mut out = Vec::new();
        out.put_signed(number);
        assert_eq!((out.len(), Take::new(&out).signed()), (bytes, Ok(number)));
    }
}

#[test]
fn what_does_not_fit_is_damage() {
    let too_large = Damage("has a number that is too large");
    let ones = |last: u8| [&[0xff; 9][..], &[last]].concat();
    assert_eq!(Take::new(&ones(1)).number(), Ok(u64::MAX));
    for last in [2, 0x7f, 0x80, 0x81, 0xff] {
        assert_eq!(Take::new(&ones(last)).number(), Err(too_large), "{last}");
    }
    assert_eq!(Take::new(&[0xff, 0xff, 0xff, 0xff, 0x10]).number_u32(), Err(too_large));
    assert_eq!(Take::new(&[0x80]).number(), Err(CUT));
    assert_eq!(Take::new(&[2]).flag(), Err(Damage("has something other than yes or no")));
    assert_eq!(Take::new(&[1, 0xff]).text(), Err(NO_TEXT));
    assert_eq!(Take::new(&[0; 15]).event_id(), Err(CUT));
    assert_eq!(Take::new(&[1]).time(), Err(Damage("has a time that nobody can write")), "before 1970");
}

#[test]
fn a_length_that_is_a_lie_is_damage() {
    for length in [3, u64::from(u32::MAX), u64::MAX] {
        let mut out = Vec::new();
        out.put_number(length);
        out.extend([b'a'; 2]);
        assert_eq!(Take::new(&out).bytes(), Err(CUT), "{length}");
    }
}

#[test]
fn a_reader_goes_on_where_another_was() {
    let mut out = Vec::new();
    out.put_text("one");
    out.put_text("two");
    let mut first = Take::new(&out);
    assert_eq!((first.text(), first.place(), first.left()), (Ok("one".to_owned()), 4, 4));
    let mut second = Take::at(&out, first.place());
    assert_eq!((second.text(), second.place()), (Ok("two".to_owned()), out.len()));
    assert_eq!(Take::at(&out, out.len() + 1).byte(), Err(CUT), "behind the end is nothing");
}

proptest! {
    #[test]
    fn what_is_put_comes_back(number in any::<u64>(), signed in any::<i64>(), text in ".{0,40}", flag in any::<bool>()) {
        let mut out = Vec::new();
        out.put_number(number);
        out.put_signed(signed);
        out.put_maybe(flag.then_some(&text), |out, text| out.put_text(text));
        out.put_time(Timestamp::from_millis(signed));
        let mut from = Take::new(&out);
        prop_assert_eq!((from.number(), from.signed()), (Ok(number), Ok(signed)));
        prop_assert_eq!(from.maybe(Take::text), Ok(flag.then_some(text)));
        prop_assert_eq!((from.time(), from.left()), (Ok(Timestamp::from_millis(signed)), 0));
    }
}
