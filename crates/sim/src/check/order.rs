//! The authority: epochs do not interleave, and nobody writes as a scheduler under an old or expired one.

use servo_model::Timestamp;

use super::Evidence;
use crate::journal::Write;

pub(super) fn check(evidence: &Evidence, found: &mut Vec<String>) {
    let mut current = 0;
    let mut until = Timestamp::EPOCH;
    for entry in &evidence.journal {
        match entry.what {
            Write::Authority { epoch, leased_until, resigned } => {
                if epoch < current {
                    found.push(format!("epoch {epoch} follows {current} at {}", entry.at));
                }
                (current, until) = (epoch, if resigned { entry.at } else { leased_until });
            }
            Write::Fenced { epoch } => {
                if epoch != current {
                    let node = entry.node.0;
                    found.push(format!("node {node} wrote under epoch {epoch} during epoch {current} at {}", entry.at));
                } else if entry.at >= until {
                    found.push(format!("a write under epoch {epoch} at {}, which ended at {until}", entry.at));
                }
            }
        }
    }
}
