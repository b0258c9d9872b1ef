//! Events survive a pack as they are, and damage to one is found.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ahead::tests::samples::{event, names};

fn decoded(first_seq: u64, bytes: &[u8]) -> Result<Vec<StoredEvent>, Damage> {
    let (run_id, tenant) = names();
    decode(&run_id, &tenant, first_seq, bytes)
}

/// Events of one pack: consecutive, and otherwise anything.
fn events() -> impl Strategy<Value = Vec<StoredEvent>> {
    let one = (
        1..1_u64 << 40,
        any::<[u8; 16]>(),
        any::<[u8; 32]>(),
        any::<i64>(),
        proptest::option::of(any::<i64>()),
        (".{0,20}", "[ab]{0,2}", ".{0,200}"),
        prop_oneof![3 => Just(1), 1 => 0..4_u32],
    );
    let max = (i64::MAX - 100).unsigned_abs();
    (1..max, proptest::collection::vec(one, 1..20)).prop_map(|(first_seq, parts)| {
        let mut position = 0;
        let made = parts.into_iter().enumerate().map(|(index, (distance, id, key, at, occurred, texts, format))| {
            position += distance;
            StoredEvent {
                format,
                event_id: EventId::from_bytes(id),
                event_type: texts.0.into(),
                idempotency_key: Digest::from_bytes(key),
                emitted_at: Timestamp::from_millis(at),
                emitted_by: texts.1.into(),
                occurred_at: occurred.map(Timestamp::from_millis),
                payload: texts.2,
                ..event(first_seq + index as u64, position)
            }
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(events in events()) {
        let shared: Vec<_> = events.iter().cloned().map(Arc::new).collect();
        let bytes = encode(&shared);
        prop_assert_eq!(&bytes, &encode(&events));
        let found: Result<Vec<_>, _> = keys(&bytes).unwrap().collect();
        prop_assert_eq!(found.unwrap(), events.iter().map(|event| event.idempotency_key).collect::<Vec<_>>());
        prop_assert_eq!(decoded(events[0].run_seq, &bytes), Ok(events));
    }

    #[test]
    fn nothing_makes_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), first_seq in any::<u64>()) {
        let _ = decoded(first_seq, &bytes);
        let mut headed = vec![VERSION, 2];
        headed.extend(bytes);
        let _ = decoded(first_seq, &headed);
        if let Ok(keys) = keys(&headed) {
            let _ = keys.collect::<Result<Vec<_>, _>>();
        }
    }
}

#[test]
fn every_cut_and_every_other_byte_is_an_error_or_other_events() {
    let events = [event(1, 7), event(2, 9), StoredEvent { occurred_at: Some(Timestamp::EPOCH), ..event(3, 300) }];
    let bytes = encode(&events);
    for end in 0..bytes.len() {
        assert!(decoded(1, &bytes[..end]).is_err(), "{end}");
        assert!(keys(&bytes[..end]).and_then(|keys| keys.collect::<Result<Vec<_>, _>>()).is_err(), "{end}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decoded(1, &longer), Err(Damage("goes on behind its last event")));
    for at in 0..bytes.len() {
        for other in 1..=u8::MAX {
            let mut garbled = bytes.clone();
            garbled[at] ^= other;
            assert_ne!(decoded(1, &garbled).as_deref(), Ok(&events[..]), "{at} {other}");
        }
    }
}

#[test]
fn a_pack_says_what_is_wrong_with_it() {
    let bytes = encode(&[event(1, 7), event(2, 9)]);
    let of = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        decoded(1, &bytes).unwrap_err().to_string()
    };
    assert_eq!(of(&|bytes| bytes[0] = 2), "has a version that this program does not know");
    assert_eq!(of(&|bytes| bytes[1] = 0), "has no events");
    assert_eq!(of(&|bytes| bytes[1] = 100), "is too short for its events");
    assert_eq!(of(&|bytes| bytes[2] = 0), "has positions that do not grow");
    assert_eq!(of(&|bytes| bytes[3] = 8), "has an event of a kind that this program does not know");
    assert_eq!(of(&|bytes| bytes.truncate(bytes.len() - 1)), "ends too early");
    assert_eq!(of(&|bytes| *bytes.last_mut().unwrap() = 0xff), "has a text that is no text");
    assert_eq!(decoded(u64::MAX, &bytes), Err(Damage("has a sequence that is too large")));
    let fault = Fault::from(decoded(1, &[]).unwrap_err());
    assert!(matches!(fault, Fault::Refused(servo_store::Error::Corrupt { .. })), "{fault:?}");
}

#[test]
fn a_count_that_is_a_lie_allocates_nothing() {
    let mut bytes = vec![VERSION];
    bytes.put_number(u64::MAX);
    bytes.extend([0; 100]);
    assert_eq!(decoded(1, &bytes), Err(Damage("is too short for its events")));
}

#[test]
fn a_cursor_tells_what_is_next_and_what_it_has() {
    let bytes = encode(&[event(5, 7), event(6, 200)]);
    let mut cursor = Cursor::open(5, &bytes).unwrap();
    assert!(cursor.check_last_seq(6).is_ok() && cursor.check_last_seq(7).is_err());
    assert!(cursor.check_position(&bytes, 7).is_ok() && cursor.check_position(&bytes, 8).is_err());
    assert_eq!((cursor.next_seq(), cursor.next_position(&bytes), cursor.left()), (5, Ok(Some(7)), 2));
    cursor.next(&bytes).unwrap();
    assert_eq!((cursor.next_seq(), cursor.next_position(&bytes), cursor.left()), (6, Ok(Some(200)), 1));
    cursor.next(&bytes).unwrap();
    assert_eq!((cursor.next_position(&bytes), cursor.left()), (Ok(None), 0));
    assert!(cursor.next(&bytes).unwrap().is_none());
}
