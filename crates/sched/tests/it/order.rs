//! The order in which small crowds are served.

use std::collections::BTreeMap;

use servo_sched::{Fair, Share, Shares};

fn shares(named: &[(char, u32, Option<usize>)]) -> Shares<char> {
    let named = named.iter().map(|&(key, weight, slots)| (key, Share { weight, slots })).collect();
    Shares { others: Share::default(), named }
}

/// Pushes a piece of work for each letter, in this order.
fn crowd(fair: &mut Fair<char, usize>, keys: &str) {
    for (number, key) in keys.chars().enumerate() {
        fair.push(&key, number);
    }
}

/// Serves up to `most`, each at once done.
fn served(fair: &mut Fair<char, usize>, most: usize) -> String {
    let mut order = String::new();
    while order.len() < most
        && let Some((key, _)) = fair.take()
    {
        fair.release(&key);
        order.push(key);
    }
    order
}

#[test]
fn tenants_take_turns_by_weight() {
    for (name, weights, pushed, expected) in [
        ("alone", vec![], "aaa", "aaa"),
        ("in turn", vec![], "aaaabb", "ababaa"),
        ("late comers are next, not last", vec![], "aaaaaaaab", "abaaaaaaa"),
        ("three", vec![], "aaabbc", "abcaba"),
        ("weight 2", vec![('a', 2, None)], "aaaaabbb", "aabaabab"),
        ("weight 3 against 2", vec![('a', 3, None), ('b', 2, None)], "aaaaaabbbbcc", "aaabbcaaabbc"),
        ("no weight is weight 1", vec![('a', 0, None)], "aabb", "abab"),
    ] {
        let mut fair = Fair::new(1, shares(&weights));
        crowd(&mut fair, pushed);
        assert_eq!(served(&mut fair, 100), expected, "{name}");
        assert_eq!((fair.waiting(), fair.busy()), (0, 0), "{name}: nothing is left behind");
    }
}

#[test]
fn work_of_one_tenant_keeps_its_order() {
    let mut fair = Fair::new(1, Shares::default());
    crowd(&mut fair, "ababab");
    let mut seen = BTreeMap::<char, Vec<usize>>::new();
    while let Some((key, number)) = fair.take() {
        fair.release(&key);
        seen.entry(key).or_default().push(number);
    }
    assert_eq!(seen, BTreeMap::from([('a', vec![0, 2, 4]), ('b', vec![1, 3, 5])]));
}

#[test]
fn slots_are_limited_in_total_and_by_tenant() {
    let mut fair = Fair::new(3, shares(&[('a', 1, Some(2))]));
    crowd(&mut fair, "aaaa");
    assert_eq!((fair.take(), fair.take(), fair.take()), (Some(('a', 0)), Some(('a', 1)), None), "its own limit");
    assert!(!fair.has_room(&'a') && fair.has_room(&'b') && !fair.is_ready());
    crowd(&mut fair, "bb");
    assert_eq!((fair.take(), fair.take()), (Some(('b', 0)), None), "the common limit");
    assert!(fair.has_room(&'b') && !fair.is_ready());
    fair.release(&'a');
    assert!(fair.is_ready());
    assert_eq!((fair.take(), fair.take()), (Some(('a', 2)), None), "b had its turn");
    fair.release(&'b');
    assert_eq!(fair.take(), Some(('b', 1)));
    assert_eq!((fair.busy(), fair.waiting(), fair.waiting_of(&'a')), (3, 1, 1));
}

#[test]
fn a_slot_is_given_back_once() {
    let mut fair = Fair::new(1, Shares::default());
    crowd(&mut fair, "aa");
    fair.take().unwrap();
    fair.release(&'b');
    assert_eq!(fair.take(), None, "somebody who holds none gives none back");
    fair.release(&'a');
    fair.release(&'a');
    assert_eq!(fair.busy(), 0);
    assert!(fair.take().is_some());
    assert_eq!(fair.take(), None);
}

#[test]
fn forgetting_what_waits_keeps_the_slots() {
    let mut fair = Fair::new(2, Shares::default());
    crowd(&mut fair, "aabb");
    assert_eq!(fair.take(), Some(('a', 0)));
    fair.clear();
    assert_eq!((fair.take(), fair.busy(), fair.waiting()), (None, 1, 0));
    crowd(&mut fair, "aab");
    assert_eq!((fair.take(), fair.take()), (Some(('a', 0)), None));
    fair.release(&'a');
    assert_eq!(fair.take(), Some(('b', 2)));
}

#[test]
fn a_slot_past_the_order_is_given_only_where_nobody_waits() {
    let mut fair: Fair<char, usize> = Fair::new(3, shares(&[('a', 1, Some(1))]));
    assert!(fair.occupy(&'a'));
    assert!(!fair.occupy(&'a'), "it has all it may have");
    assert!(fair.occupy(&'b'));
    crowd(&mut fair, "c");
    assert!(!fair.occupy(&'b'), "another waits");
    assert_eq!(fair.take(), Some(('c', 0)));
    assert!(!fair.occupy(&'b'), "no slot is left");
    fair.release(&'b');
    assert!(fair.occupy(&'d'));
    for key in ['a', 'c', 'd'] {
        fair.release(&key);
    }
    assert_eq!(fair.busy(), 0);
}
