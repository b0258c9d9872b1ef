//! All that can be seen of a store, as lines to compare.

use servo_canon::Digest;
use servo_model::RunId;

use super::apply::{cursor_text, event_text, letter_text, note_text};
use super::functions::{FUNCTIONS, function};
use super::generate::{CURSORS, REQUESTS, RUNS, TENANTS, request_ids};
use crate::Store;
use crate::audit::AuditQuery;
use crate::dispatch::QueueClaim;
use crate::entrypoints::EntrypointQuery;
use crate::position::Position;
use crate::runs::{RunQuery, Scope};
use crate::testkit::clock::ManualClock;
use crate::testkit::fixtures::{run_id, tenant};

/// Name and contents. Ends leases and timers to see them all, so nothing can follow but closing.
pub(super) async fn visible(store: &dyn Store, clock: &ManualClock, places: &[Position]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut tell = |name: String, text: String| lines.push((name, text));
    for run in RUNS.iter().map(|run| run_id(run)).chain([RunId::system()]) {
        tell(format!("row of {run}"), format!("{:?}", store.get_run(&Scope::System, &run).await));
        match store.read_run(&Scope::System, &run, 0, 10_000).await {
            Ok(page) => {
                tell(format!("head of {run}"), page.head_seq.to_string());
                for event in &page.events {
                    tell(format!("event {} of {run}", event.run_seq), event_text(event));
                }
            }
            Err(error) => tell(format!("events of {run}"), error.to_string()),
        }
        for seq in [1, 3, 5, u64::MAX] {
            let snapshot = store.snapshot_at(&Scope::System, &run, seq).await;
            tell(format!("snapshot at {seq} of {run}"), format!("{:?}", snapshot.ok()));
        }
        let lines = store.read_lines(&Scope::System, &run, 0, 100_000).await;
        tell(format!("lines of {run}"), format!("{:?}", lines.ok()));
        tell(format!("timer of {run}"), format!("{:?}", store.get_timer(&run).await));
    }
    for request_id in request_ids() {
        tell(format!("dispatch {request_id}"), format!("{:?}", store.get_dispatch(&request_id).await));
    }
    tell("backlog".to_owned(), format!("{:?}", store.backlog().await));
    tell("authority".to_owned(), format!("{:?}", store.authority().await));
    for name in CURSORS {
        let row = store.cursor(name).await.map(|row| row.map(|row| cursor_text(&row, places)));
        tell(format!("cursor {name}"), format!("{row:?}"));
    }
    let letters = store.dead_letters(Position::START, 1_000).await;
    let letters = letters.map(|rows| rows.iter().map(|row| letter_text(row, places)).collect::<Vec<_>>());
    tell("dead letters".to_owned(), format!("{letters:?}"));
    let query = RunQuery { limit: 1_000, ..RunQuery::default() };
    for scope in TENANTS.iter().map(|name| Scope::Tenant(tenant(name))).chain([Scope::System]) {
        tell(format!("runs of {scope:?}"), format!("{:?}", store.list_runs(&scope, &query).await));
        tell(format!("alerts of {scope:?}"), format!("{:?}", store.alerts(&scope, 1_000).await));
        tell(format!("keys of {scope:?}"), format!("{:?}", store.list_keys(&scope, None, 1_000).await));
        let all = AuditQuery { limit: 1_000, ..AuditQuery::default() };
        tell(format!("audit of {scope:?}"), format!("{:?}", store.read_audit(&scope, &all).await));
    }
    for scope in TENANTS.iter().map(|name| Scope::Tenant(tenant(name))).chain([Scope::System]) {
        let query = EntrypointQuery { limit: 1_000, ..EntrypointQuery::default() };
        tell(format!("entrypoints of {scope:?}"), format!("{:?}", store.list_entrypoints(&scope, &query).await));
    }
    for owner in TENANTS.map(tenant) {
        for name in FUNCTIONS.map(function) {
            let versions = store.list_versions(&owner, &name, None, 1_000).await;
            tell(format!("versions of {name} of {owner}"), format!("{versions:?}"));
            let aliases = store.list_aliases(&owner, &name).await;
            tell(format!("aliases of {name} of {owner}"), format!("{aliases:?}"));
        }
        for plan in ["plan-0", "plan-1"] {
            tell(format!("open of {plan} of {owner}"), format!("{:?}", store.count_open(&owner, plan).await));
        }
        for plan in [None, Some("plan-0"), Some("plan-1")] {
            let counts = store.count_by_visible(&owner, plan).await;
            tell(format!("invocations of {plan:?} of {owner}"), format!("{counts:?}"));
        }
        tell(format!("active of {owner}"), format!("{:?}", store.count_active(&owner, 1_000).await));
        for request in REQUESTS {
            let found = store.find_request(&owner, Digest::of(request.as_bytes())).await;
            tell(format!("request {request} of {owner}"), format!("{found:?}"));
        }
    }
    // Both stores are asked at the same time, so the clock goes back before the other is.
    const FAR_MS: i64 = 1_000_000_000;
    clock.advance(FAR_MS);
    let notes = store.outbox_due(1_000).await;
    let notes = notes.map(|rows| rows.iter().map(|row| note_text(row, places)).collect::<Vec<_>>());
    let timers = store.due_timers(1_000).await;
    let leases = store.break_leases().await;
    let queue = store.claim_queue(&QueueClaim::new("auditor", 1, 1_000)).await;
    clock.advance(-FAR_MS);
    tell("outbox".to_owned(), format!("{notes:?}"));
    tell("timers".to_owned(), format!("{timers:?}"));
    tell("leases".to_owned(), format!("{leases:?}"));
    tell("queue".to_owned(), format!("{queue:?}"));
    lines
}

/// What differs first, and how each side tells it.
pub(super) fn first_difference(a: &[(String, String)], b: &[(String, String)]) -> Option<(String, String, String)> {
    let nothing = ("nothing more".to_owned(), String::new());
    (0..a.len().max(b.len())).find_map(|index| {
        let (left, right) = (a.get(index).unwrap_or(&nothing), b.get(index).unwrap_or(&nothing));
        let tell = |(name, text): &(String, String)| format!("{name}: {text}");
        (left != right).then(|| (format!("compare {}", left.0), tell(left), tell(right)))
    })
}
