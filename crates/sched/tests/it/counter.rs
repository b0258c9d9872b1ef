//! What is counted comes out even, and however many take all they can, the next one finds room.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use servo_sched::{Bounds, Counter, Full, Held};

/// Takes one unit for each letter in turn and says what became of it: taken, or which bound was in the way.
fn story(bounds: Bounds, scopes: &str) -> String {
    let counter = Counter::new(bounds);
    let mut held = Vec::new();
    let tell = |taken: Result<Held<char>, Full>| match taken {
        Ok(unit) => {
            held.push(unit);
            '+'
        }
        Err(Full::Total) => 'T',
        Err(Full::Scope) => 'S',
    };
    let scopes: Vec<char> = scopes.chars().collect();
    let told = scopes.iter().map(|scope| counter.take(scope, 1)).map(tell).collect();
    // Given back only now.
    drop(held);
    told
}

#[test]
fn a_unit_is_given_or_the_bound_is_named() {
    let bounds = |total, scope| Bounds { total, scope };
    for (name, bounds, scopes, expected) in [
        ("nothing to have", bounds(0, 0), "a", "S"),
        ("the only one", bounds(1, 1), "aab", "+ST"),
        ("no rooms of their own", bounds(3, 3), "aaab", "+++T"),
        ("alone, as many as a scope may", bounds(4, 3), "aaaa", "+++S"),
        ("and the next finds one", bounds(4, 3), "aaab", "++++"),
        ("the last is for one who holds nothing", bounds(4, 3), "aaabb", "++++T"),
        ("two who hold something leave it", bounds(4, 3), "abababc", "+++SSS+"),
        ("a room of one", bounds(2, 1), "aabb", "+S+S"),
    ] {
        assert_eq!(story(bounds, scopes), expected, "{name}");
    }
}

#[test]
fn what_is_held_grows_shrinks_and_is_given_back() {
    let counter = Counter::new(Bounds { total: 100, scope: 75 });
    let mut held = counter.take(&"a", 10).unwrap();
    held.grow(60).unwrap();
    assert_eq!((held.amount(), counter.used(), counter.used_by(&"a")), (70, 70, 70));
    assert_eq!(held.grow(6), Err(Full::Scope));
    assert_eq!((held.amount(), counter.used()), (70, 70), "what is refused is not taken in part");
    held.shrink(30);
    held.grow(0).unwrap();
    let other = counter.take(&"b", 30).unwrap();
    assert_eq!((counter.used(), counter.used_by(&"b")), (70, 30));
    drop(held);
    held = counter.take(&"a", 1).unwrap();
    held.shrink(usize::MAX);
    drop((held, other));
    assert_eq!((counter.used(), counter.used_by(&"a")), (0, 0));
    assert_eq!(counter.take(&"a", usize::MAX).map(|held| held.amount()), Err(Full::Scope));
}

#[test]
fn shares_follow_from_the_total() {
    for (total, scope) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (512, 384)] {
        assert_eq!(Bounds::shared(total), Bounds { total, scope });
    }
    let scope = |scope| Bounds::shared(8).with_scope(scope).scope;
    assert_eq!((scope(None), scope(Some(2)), scope(Some(9))), (6, 2, 8));
}

#[test]
fn several_threads_lose_nothing() {
    let counter = Counter::new(Bounds { total: 64, scope: 48 });
    std::thread::scope(|threads| {
        for scope in 0..4 {
            let counter = counter.clone();
            threads.spawn(move || {
                for round in 0..2_000 {
                    let held: Vec<_> = (0..round % 7).filter_map(|_| counter.take(&scope, 1).ok()).collect();
                    assert!(counter.used() <= 64 && counter.used_by(&scope) == held.len());
                }
            });
        }
    });
    assert_eq!(counter.used(), 0);
}

proptest! {
    /// Whatever is taken, grown and given back: no bound is passed, and the sums are right.
    #[test]
    fn the_sums_are_right(
        total in 1_usize..60,
        part in 1_usize..60,
        steps in proptest::collection::vec((0_usize..4, 0_usize..4, 0_usize..20), 1..120),
    ) {
        let bounds = Bounds { total, scope: part.min(total) };
        let counter = Counter::new(bounds);
        let mut held: Vec<(usize, Held<usize>)> = Vec::new();
        for (what, scope, amount) in steps {
            match what {
                0 if !held.is_empty() => drop(held.swap_remove(amount % held.len())),
                1 if !held.is_empty() => {
                    let index = amount % held.len();
                    let before = held[index].1.amount();
                    let grown = held[index].1.grow(scope);
                    prop_assert_eq!(held[index].1.amount(), before + if grown.is_ok() { scope } else { 0 });
                }
                _ => held.extend(counter.take(&scope, amount).ok().map(|unit| (scope, unit))),
            }
            let mut sums = BTreeMap::new();
            held.iter().for_each(|(scope, unit)| *sums.entry(*scope).or_insert(0) += unit.amount());
            prop_assert_eq!(counter.used(), sums.values().sum::<usize>());
            for scope in 0..4 {
                let sum = sums.get(&scope).copied().unwrap_or(0);
                prop_assert_eq!(counter.used_by(&scope), sum);
                prop_assert!(sum <= bounds.scope);
            }
            prop_assert!(counter.used() <= bounds.total);
        }
    }

    /// Greedy scopes take turns, in any proportion, until none gets any more. The next scope finds about what the rule says.
    #[test]
    fn the_next_one_finds_room(
        total in 8_usize..400,
        quarters in 1_usize..4,
        turns in proptest::collection::vec(0_usize..5, 1..40),
    ) {
        let bounds = Bounds { total, scope: (total * quarters / 4).max(1) };
        let counter = Counter::new(bounds);
        let greedy: BTreeSet<_> = turns.iter().copied().collect();
        let mut held: Vec<_> = greedy.iter().map(|scope| counter.take(scope, 1).unwrap()).collect();
        let mut refused = 0;
        for turn in turns.iter().cycle() {
            match counter.take(turn, 1) {
                Ok(unit) => held.push(unit),
                Err(_) => refused += 1,
            }
            if refused > 8 * turns.len() {
                break;
            }
        }
        let left = total as f64 * ((total - bounds.scope) as f64 / total as f64).powi(greedy.len() as i32);
        prop_assert!(total - counter.used() >= 1);
        prop_assert!((total - counter.used()) as f64 >= left - greedy.len() as f64, "{} < {left}", total - counter.used());
        prop_assert!(counter.take(&usize::MAX, 1).is_ok());
        // And one that was alone got all that a scope may have.
        prop_assert!(greedy.len() > 1 || counter.used() == bounds.scope);
        drop(held);
    }
}
