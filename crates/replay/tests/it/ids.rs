//! Operation ids.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use servo_replay::{Ids, operation_id};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// DX-052: an id is a function of the parent's id and the position, and of nothing else.
    #[test]
    fn ids_depend_on_parent_and_position(parent in proptest::option::of("[a-f0-9]{1,64}"), count in 1_u64..50) {
        let (first, second) = (Ids::new(parent.clone()), Ids::new(parent.clone()));
        let mut seen = BTreeSet::new();
        for position in 1..=count {
            let id = first.mint();
            prop_assert_eq!(&id, &second.mint());
            prop_assert_eq!(&id, &operation_id(parent.as_deref(), position));
            prop_assert_eq!(id.len(), 64);
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            prop_assert!(seen.insert(id));
        }
    }

    /// Contexts have ids of their own: no position of one parent is a position of another.
    #[test]
    fn contexts_do_not_share_ids(a in "[a-f0-9]{64}", b in "[a-f0-9]{64}", m in 1_u64..1000, n in 1_u64..1000) {
        prop_assume!(a != b);
        prop_assert_ne!(operation_id(Some(&a), m), operation_id(Some(&b), n));
        prop_assert_ne!(operation_id(Some(&a), m), operation_id(None, n));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// DX-054: several threads on one context never get the same id.
    #[test]
    fn concurrent_ids_are_unique(threads in 2_usize..6, each in 1_usize..60) {
        let ids = Arc::new(Ids::new(None));
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                let ids = ids.clone();
                std::thread::spawn(move || (0..each).map(|_| ids.mint()).collect::<Vec<_>>())
            })
            .collect();
        let minted: Vec<String> = handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect();
        let unique: BTreeSet<&String> = minted.iter().collect();
        prop_assert_eq!(unique.len(), threads * each);
    }
}
