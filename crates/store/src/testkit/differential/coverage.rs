//! What a campaign has really exercised. A comparison in which every call was refused proves nothing.

use std::collections::BTreeMap;

use super::apply::Answer;
use super::op::Op;
use crate::dispatch::DispatchChange;
use crate::lease::AuthorityChange;
use crate::log::{Expected, KeyMode, QueueChange, TimerChange};
use crate::testkit::methods::compared;

/// How often each kind of operation succeeded, each part of an append was written, and each refusal was met.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

/// Parts of an append that was written.
const PARTS: [&str; 25] = [
    "append: new run",
    "append: sequence",
    "append: any",
    "append: strict",
    "append: adopted",
    "append: two streams",
    "append: fence",
    "append: acquire",
    "append: renew",
    "append: resign",
    "append: row",
    "append: timer set",
    "append: timer cleared",
    "append: queued",
    "append: unqueued by holder",
    "append: unqueued",
    "append: snapshot",
    "append: cursor",
    "append: no events",
    "dispatch: queue",
    "dispatch: notify",
    "dispatch: deliver",
    "dispatch: fail",
    "dispatch: adopt",
    "dispatch: withdraw",
];

/// Refusals that random operations meet. The others need a store in trouble.
const REFUSALS: [&str; 14] = [
    "Conflict",
    "RunExists",
    "KeyExists",
    "RequestExists",
    "NotFound",
    "Fenced",
    "AuthorityHeld",
    "AuthorityNotHeld",
    "DispatchNotFound",
    "DispatchMove",
    "LeaseLost",
    "CursorMoved",
    "EntrypointExists",
    "RevisionMoved",
];

/// Reads that are no proof while they show nothing.
const MUST_SHOW: [&str; 35] = [
    "read_run",
    "load_run",
    "snapshot_at",
    "read_log",
    "count_log",
    "list_runs",
    "count_open",
    "count_descendants",
    "open_descendants",
    "count_by_visible",
    "claim_queue",
    "dispatch_heads",
    "open_dispatches",
    "get_dispatch",
    "due_timers",
    "outbox_due",
    "dead_letters",
    "redrive",
    "alerts",
    "get_function",
    "list_functions",
    "list_versions",
    "get_alias",
    "list_aliases",
    "read_lines",
    "get_entrypoint",
    "find_entrypoint",
    "list_entrypoints",
    "count_entrypoints",
    "find_key",
    "list_keys",
    "get_key",
    "trim_keys",
    "read_audit",
    "trim_audit",
];

impl Coverage {
    pub(super) fn note(&mut self, op: &Op, answer: &Answer) {
        if let Some(name) = answer.refused {
            self.count(name);
            return;
        }
        if answer.substance || !MUST_SHOW.contains(&op.kind()) {
            self.count(op.kind());
        }
        if let Op::Append { append, cursors } = op {
            for (part, written) in [
                ("append: two streams", append.streams.len() > 1),
                ("append: fence", append.fence.is_some()),
                ("append: cursor", !cursors.is_empty()),
                ("append: adopted", answer.text.contains("inserted: false")),
            ] {
                if written {
                    self.count(part);
                }
            }
            match append.authority {
                Some(AuthorityChange::Acquire { .. }) => self.count("append: acquire"),
                Some(AuthorityChange::Renew { .. }) => self.count("append: renew"),
                Some(AuthorityChange::Resign { .. }) => self.count("append: resign"),
                None => {}
            }
            // Where all keys existed, the rest of the stream was rightly ignored.
            if answer.text.contains("inserted: true") || append.streams.iter().any(|stream| stream.events.is_empty()) {
                append.streams.iter().for_each(|stream| self.note_stream(stream));
            }
        }
    }

    fn note_stream(&mut self, stream: &crate::StreamAppend) {
        self.count(match stream.expected {
            Expected::New => "append: new run",
            Expected::Seq(_) => "append: sequence",
            Expected::Any => "append: any",
        });
        for (part, written) in [
            ("append: strict", stream.key_mode == KeyMode::Strict),
            ("append: no events", stream.events.is_empty()),
            ("append: row", stream.row.is_some()),
            ("append: snapshot", stream.snapshot.is_some()),
        ] {
            if written {
                self.count(part);
            }
        }
        match stream.timer {
            TimerChange::Keep => {}
            TimerChange::Set(_) => self.count("append: timer set"),
            TimerChange::Clear => self.count("append: timer cleared"),
        }
        match &stream.queue {
            QueueChange::Keep => {}
            QueueChange::Put { .. } => self.count("append: queued"),
            QueueChange::Remove { leased_by: Some(_) } => self.count("append: unqueued by holder"),
            QueueChange::Remove { leased_by: None } => self.count("append: unqueued"),
        }
        for change in &stream.dispatches {
            self.count(match change {
                DispatchChange::Queue { .. } => "dispatch: queue",
                DispatchChange::Notify { .. } => "dispatch: notify",
                DispatchChange::Deliver { .. } => "dispatch: deliver",
                DispatchChange::Fail { .. } => "dispatch: fail",
                DispatchChange::Adopt { .. } => "dispatch: adopt",
                DispatchChange::Withdraw { .. } => "dispatch: withdraw",
            });
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn merge(&mut self, other: Coverage) {
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// How often something was met: a kind of operation, a part of an append, a refusal.
    pub fn times(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Everything that was never met.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = compared().chain(PARTS).chain(REFUSALS);
        all.filter(|what| self.times(what) == 0).collect()
    }
}
