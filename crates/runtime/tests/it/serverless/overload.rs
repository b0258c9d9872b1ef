//! What becomes of a start when as many runs are active as may be.

use serde_json::json;
use servo_entrypoint::{InvocationStatus as S, errors};
use servo_machine::OverloadPolicy;
use servo_runtime::config::OverloadRule;

use super::support::{Bed, FUNCTION, WORKFLOW};
use crate::executions::handler::succeeded;

/// ES-070: an entrypoint's own policy comes before its tenant's, at the start and when the queue is looked at again.
#[test]
fn the_policy_is_chosen_by_entrypoint() {
    let rule = |policy, active_runs_max| OverloadRule { policy, active_runs_max, delay_ms: 7_000 };
    let address = |name: &str| format!("{FUNCTION}vendor.app.{name}.v1~");
    let bed = Bed::of(98, |cluster| {
        let overload = &mut cluster.config.overload;
        overload.tenants.insert("default".to_owned(), rule(OverloadPolicy::Reject, 1));
        overload.entrypoints.insert(address("patient"), rule(OverloadPolicy::Queue, 1));
        overload.entrypoints.insert(address("later"), rule(OverloadPolicy::Delay, 1));
        overload.entrypoints.insert(address("roomy"), rule(OverloadPolicy::Reject, 2));
    });
    for name in ["plain", "patient", "later", "roomy"] {
        bed.function(name, |_| async move { Ok("{}".to_owned()) });
    }
    // Holds the one place of its tenant as long as it waits.
    let holder = bed.start(&bed.waits_for_go("holder"), json!({})).unwrap().record.invocation_id;
    bed.until(&holder, S::Suspended);
    let refused = bed.start(&address("plain"), json!({})).unwrap_err();
    assert_eq!(refused.error_type_id, errors::QUOTA_EXCEEDED);
    let roomy = bed.start(&address("roomy"), json!({})).unwrap().record.invocation_id;
    bed.until(&roomy, S::Succeeded);
    let patient = bed.start(&address("patient"), json!({})).unwrap().record.invocation_id;
    let later = bed.start(&address("later"), json!({})).unwrap().record.invocation_id;
    bed.world.pass(std::time::Duration::from_secs(30));
    for id in [&patient, &later] {
        assert_eq!(bed.get(id).status, S::Queued);
    }
    bed.signal(&holder, "m", "go", json!(1)).unwrap();
    for id in [&patient, &later] {
        bed.until(id, S::Succeeded);
    }
}

/// ES-070: a run that waits in line is begun by the limit of its entrypoint, not by its tenant's.
#[test]
fn the_queue_keeps_to_the_entrypoints_limit() {
    let rule = |active_runs_max| OverloadRule { policy: OverloadPolicy::Queue, active_runs_max, delay_ms: 1_000 };
    let bed = Bed::of(99, |cluster| {
        let overload = &mut cluster.config.overload;
        overload.tenants.insert("default".to_owned(), rule(100));
        overload.entrypoints.insert(format!("{WORKFLOW}vendor.app.narrow.v1~"), rule(1));
    });
    let narrow = bed.workflow("narrow", |_| async move { succeeded("{}") });
    let holder = bed.start(&bed.waits_for_go("holder"), json!({})).unwrap().record.invocation_id;
    bed.until(&holder, S::Suspended);
    let waits = bed.start(&narrow, json!({})).unwrap().record.invocation_id;
    bed.world.pass(std::time::Duration::from_secs(30));
    assert_eq!(bed.get(&waits).status, S::Queued);
    bed.signal(&holder, "m", "go", json!(1)).unwrap();
    bed.until(&waits, S::Succeeded);
}
