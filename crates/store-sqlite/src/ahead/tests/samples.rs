//! Changes of every kind: a table with the edges of every field, and a strategy for everything between them.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_model::event::FORMAT;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{AuditEntry, AuditOutcome, EventId, Role, RunId, RunStatus, StepId, TenantId, Timestamp};
use servo_store::dispatch::DispatchStep;
use servo_store::lines::{LineSource, LogLine};
use servo_store::log::StoredSnapshot;
use servo_store::relay::CursorRow;
use servo_store::testkit::fixtures;
use servo_store::{AuthorityRow, DispatchRow, Position, RunRow, StoredEvent};

use crate::ahead::change::{Change, Waits};

pub(crate) fn names() -> (RunId, TenantId) {
    (fixtures::run_id("run"), fixtures::tenant("acme"))
}

pub(super) fn row() -> RunRow {
    let (run_id, tenant) = names();
    fixtures::run_row(&run_id, &tenant, Timestamp::from_millis(1_000))
}

pub(crate) fn event(seq: u64, position: u64) -> StoredEvent {
    let (run_id, tenant) = names();
    StoredEvent {
        position: Position::of_id(position),
        format: FORMAT,
        run_id,
        tenant,
        run_seq: seq,
        event_id: EventId::from_u128(u128::from(seq)),
        event_type: "test.noted".into(),
        idempotency_key: Digest::of(&seq.to_be_bytes()),
        emitted_at: Timestamp::from_millis(1_000),
        emitted_by: "testkit".into(),
        occurred_at: None,
        payload: "{}".to_owned(),
    }
}

pub(super) fn dispatch(request_id: &str, state: DispatchState) -> DispatchRow {
    let (run_id, tenant) = names();
    DispatchRow {
        request_id: request_id.to_owned(),
        run_id,
        tenant,
        target: "mock".to_owned(),
        step: None,
        state,
        channel: None,
        reason: None,
        epoch: 0,
        queued_at: Timestamp::EPOCH,
        changed_at: Timestamp::EPOCH,
    }
}

pub(super) fn line(text: &str) -> LogLine {
    let (at, request_id) = (Timestamp::from_millis(5), "request".to_owned());
    LogLine { at, request_id, source: LineSource::Handler, text: text.to_owned() }
}

pub(super) fn authority(epoch: u64) -> AuthorityRow {
    AuthorityRow {
        owner: "node".to_owned(),
        lease_id: "lease".to_owned(),
        leased_until: "1970-01-01T00:00:09Z".to_owned(),
        leased_until_at: Timestamp::from_millis(9_000),
        epoch,
        resigned: false,
    }
}

pub(super) fn audit(number: u128) -> AuditEntry {
    AuditEntry {
        id: EventId::from_u128(number),
        at: Timestamp::EPOCH,
        tenant_id: TenantId::system(),
        actor: String::new(),
        roles: Vec::new(),
        action: "key.create".to_owned(),
        object_kind: "key".to_owned(),
        object_id: "key_1".to_owned(),
        outcome: AuditOutcome::Denied,
        correlation_id: String::new(),
        reason: None,
        source: None,
        count: 1,
    }
}

/// Every kind of change with nothing in it and with as much as there can be.
pub(super) fn edges() -> Vec<Change> {
    let long = "ä\u{10ffff}\0\n".repeat(10_000);
    let some = || Some(long.clone());
    let position = Position { store_epoch: u32::MAX, transaction: u64::MAX, id: u64::MAX };
    let mut changes = Vec::new();
    for (run_id, tenant) in [names(), (RunId::system(), TenantId::system()), longest_names()] {
        let of_run = || (run_id.clone(), tenant.clone());
        let empty = RunRow { run_id: run_id.clone(), tenant: tenant.clone(), ..empty_row() };
        let full = RunRow {
            project: long.clone().into(),
            environment: long.clone().into(),
            plan_id: long.clone().into(),
            plan_version: long.clone(),
            request_key: Some(Digest::from_bytes([0xff; 32])),
            created_at: Timestamp::MAX,
            finished_at: Some(Timestamp::MAX),
            changed_seq: u64::MAX,
            quarantined: some(),
            name: some(),
            outcome: some(),
            invocation: true,
            mode: Some(InvocationMode::Async),
            correlation_id: some(),
            root: Some(run_id.clone()),
            ..empty.clone()
        };
        changes.push(Change::Run { row: Arc::new(empty), is_new: false, before: None });
        let before = Some((long.as_str().into(), InvocationStatus::Failed));
        changes.push(Change::Run { row: Arc::new(full), is_new: true, before });
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            let (run_id, tenant) = of_run();
            changes.push(Change::Number { run_id, tenant, number });
        }
        for due_at in [None, Some(Timestamp::EPOCH), Some(Timestamp::MAX), Some(Timestamp::from_millis(i64::MIN))] {
            let (run_id, tenant) = of_run();
            changes.push(Change::Timer { run_id, tenant, due_at });
            let (run_id, tenant) = of_run();
            let waits = due_at.map(|not_before| Waits { not_before, queued_at: Timestamp::MAX });
            changes.push(Change::Queue { run_id, tenant, waits });
        }
        for (run_seq, state) in [(0, String::new()), (u64::MAX, long.clone())] {
            let (run_id, tenant) = of_run();
            changes.push(Change::Snapshot { run_id, tenant, snapshot: StoredSnapshot { run_seq, state } });
        }
        for lines in [vec![], vec![line("")], vec![line(&long), line("b")]] {
            let (run_id, tenant) = of_run();
            changes.push(Change::Lines { run_id, tenant, lines });
        }
    }
    changes.extend(edges_of_events(&long));
    changes.extend(edges_of_dispatches(&long));
    for (name, last_event_id, target, deferred) in
        [(String::new(), None, None, false), (long.clone(), Some(EventId::max()), Some(position), true)]
    {
        changes.push(Change::Cursor(CursorRow { name, position, last_event_id, target, deferred }));
    }
    changes.push(Change::Authority(authority(0)));
    changes.push(Change::Authority(AuthorityRow {
        owner: long.clone(),
        lease_id: String::new(),
        leased_until_at: Timestamp::MAX,
        resigned: true,
        ..authority(u64::MAX)
    }));
    changes.push(Change::Audit(audit(0).into()));
    for outcome in AuditOutcome::ALL {
        let (roles, reason, source) = (Role::ALL.to_vec(), some(), some());
        let (tenant_id, count) = (longest_names().1, u64::MAX);
        changes.push(Change::Audit(
            AuditEntry { tenant_id, roles, outcome, reason, source, count, ..audit(u128::MAX) }.into(),
        ));
    }
    changes
}

fn edges_of_events(long: &str) -> [Change; 2] {
    let full = StoredEvent {
        format: u32::MAX,
        event_type: long.to_owned().into(),
        idempotency_key: Digest::from_bytes([0xff; 32]),
        emitted_at: Timestamp::MAX,
        emitted_by: "".into(),
        occurred_at: Some(Timestamp::EPOCH),
        payload: long.to_owned(),
        ..event(u64::MAX, u64::MAX)
    };
    [
        Change::Event { number: i64::MIN, event: Arc::new(event(0, 0)) },
        Change::Event { number: i64::MAX, event: Arc::new(full) },
    ]
}

fn edges_of_dispatches(long: &str) -> Vec<Change> {
    let mut changes = vec![Change::Dispatch { request_id: "".into(), row: None, before: None, is_new: false }];
    for state in DispatchState::ALL {
        let row = DispatchRow {
            target: long.to_owned(),
            step: Some(DispatchStep { step_id: fixtures::step_id("step"), logical_attempt: u32::MAX }),
            channel: Some(long.to_owned()),
            reason: Some(String::new()),
            epoch: u64::MAX,
            changed_at: Timestamp::MAX,
            ..dispatch(long, state)
        };
        for row in [row, dispatch("request", state)] {
            let (request_id, before) = (row.request_id.clone(), Some(state));
            changes.push(Change::Dispatch {
                request_id: request_id.into(),
                row: Some(Arc::new(row)),
                before,
                is_new: true,
            });
        }
    }
    changes
}

fn longest_names() -> (RunId, TenantId) {
    (fixtures::run_id(&"r".repeat(128)), fixtures::tenant(&"t".repeat(128)))
}

fn empty_row() -> RunRow {
    RunRow {
        project: "".into(),
        environment: "".into(),
        plan_id: "".into(),
        plan_version: String::new(),
        created_at: Timestamp::EPOCH,
        changed_seq: 0,
        ..row()
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![4 => ".{0,12}", 1 => "(?s).{0,300}"]
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_millis)
}

fn runs() -> impl Strategy<Value = (RunId, TenantId)> {
    ("[a-z][a-z0-9_-]{0,40}", "[a-z][a-z0-9_-]{0,40}")
        .prop_map(|(run_id, tenant)| (fixtures::run_id(&run_id), fixtures::tenant(&tenant)))
}

fn positions() -> impl Strategy<Value = Position> {
    any::<(u32, u64, u64)>().prop_map(|(store_epoch, transaction, id)| Position { store_epoch, transaction, id })
}

fn event_ids() -> impl Strategy<Value = EventId> {
    any::<[u8; 16]>().prop_map(EventId::from_bytes)
}

fn rows() -> impl Strategy<Value = RunRow> {
    (
        runs(),
        (texts(), texts(), texts(), texts()),
        (select(RunStatus::ALL.to_vec()), select(InvocationStatus::ALL.to_vec())),
        option::of(any::<[u8; 32]>()),
        (times(), option::of(times()), any::<u64>()),
        (option::of(texts()), option::of(texts()), option::of(texts()), option::of(texts())),
        (any::<bool>(), option::of(select(vec![InvocationMode::Sync, InvocationMode::Async])), option::of(runs())),
    )
        .prop_map(|(run, texts, states, key, times, options, kind)| RunRow {
            run_id: run.0,
            tenant: run.1,
            project: texts.0.into(),
            environment: texts.1.into(),
            plan_id: texts.2.into(),
            plan_version: texts.3,
            status: states.0,
            visible: states.1,
            request_key: key.map(Digest::from_bytes),
            created_at: times.0,
            finished_at: times.1,
            changed_seq: times.2,
            quarantined: options.0,
            name: options.1,
            outcome: options.2,
            correlation_id: options.3,
            invocation: kind.0,
            mode: kind.1,
            root: kind.2.map(|(root, _)| root),
        })
}

fn events() -> impl Strategy<Value = StoredEvent> {
    let times = (times(), option::of(times()));
    (any::<(u64, u32, u64)>(), runs(), event_ids(), any::<[u8; 32]>(), times, (texts(), texts(), texts())).prop_map(
        |((position, format, run_seq), run, event_id, key, times, texts)| StoredEvent {
            position: Position::of_id(position),
            format,
            run_id: run.0,
            tenant: run.1,
            run_seq,
            event_id,
            event_type: texts.0.into(),
            idempotency_key: Digest::from_bytes(key),
            emitted_at: times.0,
            emitted_by: texts.1.into(),
            occurred_at: times.1,
            payload: texts.2,
        },
    )
}

fn lines() -> impl Strategy<Value = LogLine> {
    (times(), texts(), select(LineSource::ALL.to_vec()), texts()).prop_map(|(at, request_id, source, text)| LogLine {
        at,
        request_id,
        source,
        text,
    })
}

fn dispatches() -> impl Strategy<Value = DispatchRow> {
    let steps = ("[a-z][a-z0-9]{0,9}", any::<u32>())
        .prop_map(|(step, logical_attempt)| DispatchStep { step_id: StepId::parse(&step).unwrap(), logical_attempt });
    (
        (texts(), runs(), texts()),
        option::of(steps),
        select(DispatchState::ALL.to_vec()),
        (option::of(texts()), option::of(texts())),
        (any::<u64>(), times(), times()),
    )
        .prop_map(|((request_id, run, target), step, state, options, times)| DispatchRow {
            request_id,
            run_id: run.0,
            tenant: run.1,
            target,
            step,
            state,
            channel: options.0,
            reason: options.1,
            epoch: times.0,
            queued_at: times.1,
            changed_at: times.2,
        })
}

fn entries() -> impl Strategy<Value = AuditEntry> {
    (
        (event_ids(), times(), runs(), any::<u64>()),
        vec(select(Role::ALL.to_vec()), 0..4),
        select(AuditOutcome::ALL.to_vec()),
        (texts(), texts(), texts(), texts(), texts()),
        (option::of(texts()), option::of(texts())),
    )
        .prop_map(|((id, at, run, count), roles, outcome, texts, options)| AuditEntry {
            id,
            at,
            tenant_id: run.1,
            actor: texts.0,
            roles,
            action: texts.1,
            object_kind: texts.2,
            object_id: texts.3,
            outcome,
            correlation_id: texts.4,
            reason: options.0,
            source: options.1,
            count,
        })
}

/// Any change.
pub(super) fn changes() -> impl Strategy<Value = Change> {
    let before = option::of((texts().prop_map(Into::into), select(InvocationStatus::ALL.to_vec())));
    let waits = option::of((times(), times()).prop_map(|(not_before, queued_at)| Waits { not_before, queued_at }));
    let snapshots = (any::<u64>(), texts()).prop_map(|(run_seq, state)| StoredSnapshot { run_seq, state });
    let cursors = (texts(), positions(), option::of(event_ids()), option::of(positions()), any::<bool>());
    let authorities = ((texts(), texts(), texts()), times(), any::<u64>(), any::<bool>());
    let states = option::of(select(DispatchState::ALL.to_vec()));
    prop_oneof![
        (rows(), any::<bool>(), before).prop_map(|(row, is_new, before)| Change::Run {
            row: Arc::new(row),
            is_new,
            before
        }),
        (runs(), any::<i64>()).prop_map(|((run_id, tenant), number)| Change::Number { run_id, tenant, number }),
        (any::<i64>(), events()).prop_map(|(number, event)| Change::Event { number, event: Arc::new(event) }),
        (runs(), option::of(times())).prop_map(|((run_id, tenant), due_at)| Change::Timer { run_id, tenant, due_at }),
        (runs(), waits).prop_map(|((run_id, tenant), waits)| Change::Queue { run_id, tenant, waits }),
        (runs(), snapshots).prop_map(|((run_id, tenant), snapshot)| Change::Snapshot { run_id, tenant, snapshot }),
        (runs(), vec(lines(), 0..4)).prop_map(|((run_id, tenant), lines)| Change::Lines { run_id, tenant, lines }),
        (texts(), option::of(dispatches()), states, any::<bool>()).prop_map(|(request_id, row, before, is_new)| {
            Change::Dispatch { request_id: request_id.into(), row: row.map(Arc::new), before, is_new }
        }),
        cursors.prop_map(|(name, position, last_event_id, target, deferred)| {
            Change::Cursor(CursorRow { name, position, last_event_id, target, deferred })
        }),
        authorities.prop_map(|((owner, lease_id, leased_until), leased_until_at, epoch, resigned)| {
            Change::Authority(AuthorityRow { owner, lease_id, leased_until, leased_until_at, epoch, resigned })
        }),
        entries().prop_map(|entry| Change::Audit(Arc::new(entry))),
    ]
}
