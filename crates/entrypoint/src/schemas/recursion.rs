//! How many references of a schema lead back to where they stand. To say what is wrong with a document, every alternative is
//! followed at every level, so the work is that number to the power of the document's depth. (Whether it is wrong at all is told
//! by remembering, in linear time.)

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::guard::{self, Place};

/// Alternatives that are followed to describe the faults of one document.
const WORK_MAX: usize = 100_000;

/// Deepest document whose faults are described one by one.
pub(super) fn detail_depth(roots: &BTreeMap<String, Value>) -> usize {
    match recursive_references(roots) {
        0 | 1 => usize::MAX,
        count => WORK_MAX.ilog(count) as usize,
    }
}

fn recursive_references(roots: &BTreeMap<String, Value>) -> usize {
    let mut references: Vec<(Place, Place)> = Vec::new();
    for (name, root) in roots {
        guard::references(root, "", &mut |pointer, reference| {
            if let Some((target, _)) = guard::resolve(roots, name, reference) {
                references.push(((name.clone(), pointer.to_owned()), target));
            }
        });
    }
    let targets: BTreeSet<&Place> = references.iter().map(|(_, target)| target).collect();
    let edges: BTreeMap<&Place, BTreeSet<&Place>> = targets
        .iter()
        .map(|target| {
            let inside = references.iter().filter(|(at, _)| is_inside(at, target));
            (*target, inside.map(|(_, to)| to).collect())
        })
        .collect();
    let recursive: BTreeSet<&Place> = targets.into_iter().filter(|target| reaches_itself(&edges, target)).collect();
    references.iter().filter(|(_, target)| recursive.contains(target)).count()
}

fn is_inside(at: &Place, target: &Place) -> bool {
    let rest = at.1.strip_prefix(target.1.as_str());
    at.0 == target.0 && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn reaches_itself(edges: &BTreeMap<&Place, BTreeSet<&Place>>, start: &Place) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(place) = open.pop() {
        for next in edges.get(place).into_iter().flatten() {
            if *next == start {
                return true;
            }
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    false
}
