//! Whatever comes and in whatever order: nobody waits for longer, or gets more, than the bounds say.

use std::collections::BTreeMap;

use proptest::prelude::*;
use servo_sched::{Fair, Share, Shares};

/// Tenants, each with a weight and with so many pieces of work.
fn crowd() -> impl Strategy<Value = Vec<(u32, usize)>> {
    proptest::collection::vec((1_u32..8, 1_usize..40), 1..6)
}

fn fair_of(crowd: &[(u32, usize)]) -> Fair<usize, usize> {
    let share = |&(weight, _): &(u32, usize)| Share { weight, slots: None };
    let named = crowd.iter().map(share).enumerate().collect();
    Fair::new(1, Shares { others: Share::default(), named })
}

/// Serves one piece. Whoever is before `busy` always has work.
fn serve(fair: &mut Fair<usize, usize>, busy: usize) -> usize {
    let (tenant, number) = fair.take().unwrap();
    fair.release(&tenant);
    if tenant < busy {
        fair.push(&tenant, number + 1);
    }
    tenant
}

proptest! {
    /// Everything is served, once and in the tenant's order.
    #[test]
    fn nobody_starves(crowd in crowd()) {
        let mut fair = fair_of(&crowd);
        for (tenant, (_, work)) in crowd.iter().enumerate() {
            (0..*work).for_each(|number| fair.push(&tenant, number));
        }
        let mut seen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        while let Some((tenant, number)) = fair.take() {
            fair.release(&tenant);
            seen.entry(tenant).or_default().push(number);
        }
        let pushed: BTreeMap<_, _> = crowd.iter().map(|(_, work)| (0..*work).collect()).enumerate().collect();
        prop_assert_eq!(seen, pushed);
        prop_assert_eq!((fair.waiting(), fair.busy()), (0, 0));
    }

    /// Who comes while the others are being served, at any moment, is served after one turn of each of them at most.
    #[test]
    fn the_wait_is_one_turn_of_everybody_else(crowd in crowd(), moment in 0_usize..200, weight in 1_u32..8) {
        let newcomer = crowd.len();
        let mut everybody = crowd.clone();
        everybody.push((weight, 1));
        let mut fair = fair_of(&everybody);
        for tenant in 0..newcomer {
            (0..3).for_each(|number| fair.push(&tenant, number));
        }
        for _ in 0..moment {
            serve(&mut fair, newcomer);
        }
        fair.push(&newcomer, 0);
        let bound: u32 = crowd.iter().map(|(weight, _)| *weight).sum();
        let mut waited = 0;
        while serve(&mut fair, newcomer) != newcomer {
            waited += 1;
            prop_assert!(waited <= bound, "waited for {waited}, at most {bound}");
        }
    }

    /// Over every interval in which two have work, what they got by weight differs by the bound of the literature at most.
    #[test]
    fn service_follows_the_weights(crowd in crowd(), length in 1_usize..300) {
        let mut fair = fair_of(&crowd);
        for tenant in 0..crowd.len() {
            (0..2).for_each(|number| fair.push(&tenant, number));
        }
        // What each had got at every moment; an interval is a pair of moments.
        let mut got = vec![vec![0_u64; crowd.len()]];
        for _ in 0..length {
            let mut now = got.last().unwrap().clone();
            now[serve(&mut fair, crowd.len())] += 1;
            got.push(now);
        }
        for (i, (weight_i, _)) in crowd.iter().enumerate() {
            for (j, (weight_j, _)) in crowd.iter().enumerate().skip(i + 1) {
                let (wi, wj) = (f64::from(*weight_i), f64::from(*weight_j));
                // The largest difference over all intervals is between the highest and the lowest lead.
                let lead = |now: &Vec<u64>| now[i] as f64 / wi - now[j] as f64 / wj;
                let highest = got.iter().map(lead).fold(f64::MIN, f64::max);
                let lowest = got.iter().map(lead).fold(f64::MAX, f64::min);
                let bound = 1.0 + 1.0 / wi + 1.0 / wj;
                prop_assert!(highest - lowest <= bound + 1e-9, "{} > {bound}", highest - lowest);
            }
        }
    }

    /// Whatever is taken and given back, no limit is passed, no slot is lost, and a free slot is used if anybody may.
    #[test]
    fn slots_are_kept(
        slots in 1_usize..6,
        own in proptest::collection::vec(proptest::option::of(1_usize..4), 4),
        steps in proptest::collection::vec((0_usize..3, 0_usize..4), 1..200),
    ) {
        let named = own.iter().map(|slots| Share { weight: 1, slots: *slots }).enumerate().collect();
        let mut fair = Fair::new(slots, Shares { others: Share::default(), named });
        let (mut held, mut waits) = ([0_usize; 4], [0_usize; 4]);
        for (what, tenant) in steps {
            match what {
                0 => {
                    fair.push(&tenant, ());
                    waits[tenant] += 1;
                }
                1 => {
                    fair.release(&tenant);
                    held[tenant] = held[tenant].saturating_sub(1);
                }
                _ => {
                    let may = |t: usize| waits[t] > 0 && own[t].is_none_or(|most| held[t] < most);
                    let expected = held.iter().sum::<usize>() < slots && (0..4).any(may);
                    prop_assert_eq!(fair.is_ready(), expected);
                    let taken = fair.take();
                    prop_assert_eq!(taken.is_some(), expected);
                    if let Some((tenant, ())) = taken {
                        prop_assert!(may(tenant));
                        held[tenant] += 1;
                        waits[tenant] -= 1;
                    }
                }
            }
            prop_assert_eq!(fair.busy(), held.iter().sum::<usize>());
            prop_assert_eq!(fair.waiting(), waits.iter().sum::<usize>());
        }
    }
}
