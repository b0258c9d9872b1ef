//! Steps that change everything which gets ahead of the database, and the calls that read it. The same in every process:
//! nothing in them is drawn or counted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use servo_canon::Digest;
use servo_model::audit::first_id_at;
use servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
use servo_model::{AuditEntry, AuditOutcome, EventId, Role, RunId, TenantId, Timestamp};
use servo_store::audit::AuditQuery;
use servo_store::dispatch::{DispatchHeads, DispatchStep, QueueClaim};
use servo_store::lines::{LineSource, LogLine};
use servo_store::log::{QueueChange, StoredSnapshot, TimerChange};
use servo_store::relay::CursorRow;
use servo_store::runs::RunQuery;
use servo_store::testkit::fixtures;
use servo_store::{
    Append, AuthorityChange, DispatchChange, Expected, Fence, NewEvent, Position, RunRow, Scope, Store, StoredEvent,
    StreamAppend,
};

pub(super) type Step = fn(&dyn Store) -> Pin<Box<dyn Future<Output = ()> + '_>>;

/// In this order.
pub(super) const STEPS: [(&str, Step); 15] = [
    ("a run starts", |store| Box::pin(start(store))),
    ("events are added", |store| Box::pin(add_events(store))),
    ("the authority is acquired", |store| Box::pin(acquire(store))),
    ("dispatches move", |store| Box::pin(move_dispatches(store))),
    ("a dispatch is made again", |store| Box::pin(remake(store))),
    ("an operator dispatches", |store| Box::pin(operate(store))),
    ("a snapshot comes with an append", |store| Box::pin(fold(store))),
    ("a snapshot comes alone", |store| Box::pin(put_snapshot(store))),
    ("a cursor moves", |store| Box::pin(move_cursor(store))),
    ("lines are written", |store| Box::pin(put_lines(store))),
    ("more lines are written", |store| Box::pin(put_lines(store))),
    ("entries are written", |store| Box::pin(put_audit(store))),
    ("the authority is renewed", |store| Box::pin(renew(store))),
    ("another run starts", |store| Box::pin(start_other(store))),
    ("a run ends", |store| Box::pin(end(store))),
];

/// Every call that reads what the steps change. The last one claims what it finds.
pub(super) const CALLS: [&str; 25] = [
    "read_run",
    "load_run",
    "snapshot_at",
    "read_log",
    "log_head",
    "count_log",
    "get_run",
    "list_runs",
    "find_request",
    "count_by_visible",
    "count_active",
    "count_open",
    "count_descendants",
    "open_descendants",
    "get_dispatch",
    "open_dispatches",
    "dispatch_heads",
    "backlog",
    "get_timer",
    "due_timers",
    "authority",
    "cursor",
    "read_audit",
    "read_lines",
    "claim_queue",
];

const RUN: &str = "run";
const OTHER: &str = "other";
const NOON: Timestamp = Timestamp::from_millis(1_770_811_200_000);

fn tenant() -> TenantId {
    fixtures::tenant("acme")
}

fn key() -> Digest {
    Digest::of(b"request")
}

/// The event of a run that has this name and number everywhere.
fn event(run: &RunId, number: u32) -> NewEvent {
    let named = fixtures::new_event(run, "s", number, "test.noted");
    let id = Digest::of(format!("{run} {number}").as_bytes());
    let id = id.as_bytes().first_chunk().copied().map_or(EventId::nil(), EventId::from_bytes);
    NewEvent { event_id: id, ..named }
}

fn more(run: &str, numbers: &[u32]) -> StreamAppend {
    let run = fixtures::run_id(run);
    fixtures::add(&run, &tenant(), Expected::Any, numbers.iter().map(|number| event(&run, *number)).collect())
}

fn facts(number: u32) -> StreamAppend {
    fixtures::system_stream(vec![event(&RunId::system(), number)])
}

fn step(name: &str) -> DispatchStep {
    fixtures::dispatch_step(name, 1)
}

fn request(name: &str) -> String {
    step(name).request_id(&fixtures::run_id(RUN))
}

fn queue(name: &str) -> DispatchChange {
    DispatchChange::Queue { request_id: request(name), target: "mock".to_owned(), step: Some(step(name)) }
}

fn notify(name: &str) -> DispatchChange {
    DispatchChange::Notify { request_id: request(name), channel: "channel".to_owned(), epoch: 1 }
}

async fn append(store: &dyn Store, append: Append) {
    store.append(append).await.unwrap();
}

fn row() -> RunRow {
    RunRow {
        request_key: Some(key()),
        correlation_id: Some("ünï".to_owned()),
        ..fixtures::invocation_row(&fixtures::run_id(RUN), &tenant(), NOON)
    }
}

async fn start(store: &dyn Store) {
    let (run, tenant) = (fixtures::run_id(RUN), tenant());
    let mut stream = fixtures::start_stream(&run, &tenant);
    stream.events = vec![event(&run, 1)];
    stream.row = Some(row());
    stream.timer = TimerChange::Set(Timestamp::from_millis(1));
    stream.queue = QueueChange::Put { not_before: Timestamp::EPOCH };
    stream.dispatches = ["a", "b", "c", "d", "e"].map(queue).into();
    let cursors = vec![CursorRow::at("moved with an append", Position::of_id(1))];
    append(store, Append { cursors, ..Append::one(stream) }).await;
}

/// Small ones share a pack, and one is too large for it.
async fn add_events(store: &dyn Store) {
    let mut stream = more(RUN, &[2, 3, 4, 5]);
    stream.events[1].occurred_at = Some(NOON);
    stream.events[2].payload = fixtures::payload(INLINE_PAYLOAD_BYTES_MAX + 1);
    stream.timer = TimerChange::Set(Timestamp::MAX);
    append(store, Append::one(stream)).await;
}

async fn acquire(store: &dyn Store) {
    let (owner, lease_id) = ("node".to_owned(), "lease".to_owned());
    let change = AuthorityChange::Acquire { owner, lease_id, leased_until: "2099-01-01T00:00:00Z".to_owned() };
    append(store, Append { authority: Some(change), ..Append::one(facts(1)) }).await;
}

/// One stays pending, and the others come to be notified, delivered, withdrawn and failed.
async fn move_dispatches(store: &dyn Store) {
    let mut stream = more(RUN, &[6]);
    stream.dispatches = vec![
        notify("b"),
        notify("c"),
        DispatchChange::Deliver { request_id: request("c") },
        DispatchChange::Withdraw { request_id: request("d") },
        notify("e"),
        DispatchChange::Fail { request_id: request("e"), reason: "worker lost".to_owned() },
    ];
    append(store, Append { fence: Some(Fence { epoch: 1 }), ..Append::one(stream) }).await;
}

async fn remake(store: &dyn Store) {
    let mut stream = more(RUN, &[7]);
    stream.dispatches = vec![queue("d"), DispatchChange::Withdraw { request_id: request("a") }, queue("a")];
    append(store, Append::one(stream)).await;
    let mut stream = more(RUN, &[8]);
    stream.dispatches = vec![notify("d"), DispatchChange::Adopt { request_id: request("b"), epoch: 2 }];
    append(store, Append::one(stream)).await;
}

async fn operate(store: &dyn Store) {
    let mut stream = facts(2);
    let queue = |request_id: &str| {
        let (request_id, target) = (request_id.to_owned(), "mock".to_owned());
        DispatchChange::Queue { request_id, target, step: None }
    };
    stream.dispatches =
        vec![queue("operator"), queue("gone"), DispatchChange::Withdraw { request_id: "gone".to_owned() }];
    append(store, Append::one(stream)).await;
}

async fn fold(store: &dyn Store) {
    let mut stream = more(RUN, &[9]);
    stream.snapshot = Some(StoredSnapshot { run_seq: 9, state: "{\"of\":\"an append\"}".to_owned() });
    append(store, Append::one(stream)).await;
}

async fn put_snapshot(store: &dyn Store) {
    let snapshot = StoredSnapshot { run_seq: 5, state: "{\"of\":\"nobody\"}".to_owned() };
    store.put_snapshot(&fixtures::run_id(RUN), &tenant(), snapshot).await.unwrap();
}

async fn move_cursor(store: &dyn Store) {
    let to = |id| CursorRow::at("moved alone", Position::of_id(id));
    store.move_cursor(None, to(1), None).await.unwrap();
    let target = Some(Position::of_id(9));
    let last = CursorRow { last_event_id: Some(EventId::max()), target, deferred: true, ..to(2) };
    store.move_cursor(Some(Position::of_id(1)), last, Some(Fence { epoch: 1 })).await.unwrap();
}

async fn put_lines(store: &dyn Store) {
    let line = |source: LineSource| LogLine {
        at: NOON,
        request_id: request("a"),
        source,
        text: format!("ein Wört of {}", source.as_str()),
    };
    store.put_lines(&fixtures::run_id(RUN), &tenant(), LineSource::ALL.map(line).into()).await.unwrap();
}

async fn put_audit(store: &dyn Store) {
    let entry = |(number, outcome): (i64, AuditOutcome)| {
        let at = Timestamp::from_millis(NOON.as_millis() + number);
        AuditEntry {
            id: first_id_at(at),
            at,
            tenant_id: tenant(),
            actor: "jürgen".to_owned(),
            roles: Role::ALL.to_vec(),
            action: "key.create".to_owned(),
            object_kind: "key".to_owned(),
            object_id: "key_1".to_owned(),
            outcome,
            correlation_id: "c".to_owned(),
            reason: (number == 1).then(|| "FORBIDDEN".to_owned()),
            source: None,
            count: 7,
        }
    };
    store.put_audit((0..).zip(AuditOutcome::ALL).map(entry).map(Arc::new).collect()).await.unwrap();
}

async fn renew(store: &dyn Store) {
    let (owner, lease_id) = ("node".to_owned(), "renewed".to_owned());
    let leased_until = "2099-06-01T00:00:00+02:00".to_owned();
    let change = AuthorityChange::Renew { owner, epoch: Some(1), lease_id, leased_until };
    append(store, Append { authority: Some(change), ..Append::one(facts(3)) }).await;
}

/// With a queue row and a timer that come and go, in an append that also changes the first run.
async fn start_other(store: &dyn Store) {
    let (run, tenant) = (fixtures::run_id(OTHER), tenant());
    let mut stream = fixtures::start_stream(&run, &tenant);
    stream.events = vec![event(&run, 1)];
    stream.timer = TimerChange::Set(NOON);
    let below = Some(fixtures::run_id(RUN));
    stream.row = stream.row.map(|row| RunRow { root: below, ..row });
    stream.queue = QueueChange::Put { not_before: Timestamp::EPOCH };
    append(store, Append { streams: vec![stream, more(RUN, &[10])], ..Append::default() }).await;
    let mut stream = more(OTHER, &[2]);
    stream.timer = TimerChange::Clear;
    stream.queue = QueueChange::Remove { leased_by: None };
    append(store, Append::one(stream)).await;
}

async fn end(store: &dyn Store) {
    let ended = fixtures::finished_row(&fixtures::run_id(RUN), &tenant(), NOON);
    let (status, visible, finished_at) = (ended.status, ended.visible, ended.finished_at);
    let outcome = Some("gut".to_owned());
    let mut stream = more(RUN, &[11]);
    stream.row = Some(RunRow { status, visible, finished_at, outcome, changed_seq: 11, ..row() });
    stream.timer = TimerChange::Clear;
    append(store, Append::one(stream)).await;
}

/// What a call says. Positions are the store's own, so only their order is compared.
pub(super) async fn look(store: &dyn Store, call: &str) -> String {
    let (run, tenant, scope) = (fixtures::run_id(RUN), tenant(), Scope::Tenant(tenant()));
    match call {
        "read_run" => {
            said(store.read_run(&scope, &run, 0, 1_000).await.map(|page| (plain(page.events), page.head_seq)))
        }
        "load_run" => said(
            store
                .load_run(&scope, &run, 1_000)
                .await
                .map(|run| (run.row, run.snapshot, plain(run.page.events), run.page.head_seq)),
        ),
        "snapshot_at" => {
            said([store.snapshot_at(&scope, &run, u64::MAX).await, store.snapshot_at(&scope, &run, 8).await])
        }
        "read_log" => said(
            store
                .read_log(Position::START, 1_000)
                .await
                .map(|page| plain(page.events.into_iter().map(Arc::unwrap_or_clone).collect())),
        ),
        "log_head" => {
            let head = store.log_head().await.unwrap();
            let events = store.read_log(Position::START, 1_000).await.unwrap().events;
            assert!(events.is_sorted_by_key(|event| event.position));
            said(events.iter().position(|event| event.position == head))
        }
        "count_log" => said(store.count_log(Position::START, Position::of_id(u64::MAX >> 1), 1_000).await),
        "get_run" => said(store.get_run(&scope, &run).await),
        "list_runs" => said(store.list_runs(&scope, &RunQuery { limit: 10, ..RunQuery::default() }).await),
        "find_request" => said(store.find_request(&tenant, key()).await),
        "count_by_visible" => said(store.count_by_visible(&tenant, None).await),
        "count_active" => said(store.count_active(&tenant, 100).await),
        "count_open" => said(store.count_open(&tenant, "plan").await),
        "count_descendants" => said(store.count_descendants(&tenant, &run, 100).await),
        "open_descendants" => said(store.open_descendants(&tenant, &run, None, 100).await),
        "get_dispatch" => {
            let mut found = Vec::new();
            let of_run = ["a", "b", "c", "d", "e"].map(request);
            for request_id in of_run.into_iter().chain(["operator", "gone"].map(str::to_owned)) {
                found.push(store.get_dispatch(&request_id).await);
            }
            said(found)
        }
        "open_dispatches" => said(store.open_dispatches(9, &tenant, None, 100).await),
        "dispatch_heads" => {
            said(store.dispatch_heads(&DispatchHeads { epoch: 9, after: None, tenants: 10, each: 10 }).await)
        }
        "backlog" => said(store.backlog().await),
        "get_timer" => said([store.get_timer(&run).await, store.get_timer(&fixtures::run_id(OTHER)).await]),
        "due_timers" => said(store.due_timers(10).await),
        "authority" => said(store.authority().await),
        "cursor" => said([store.cursor("moved alone").await, store.cursor("moved with an append").await]),
        "read_audit" => said(store.read_audit(&scope, &AuditQuery { limit: 100, ..AuditQuery::default() }).await),
        "read_lines" => said(store.read_lines(&scope, &run, 0, 100).await),
        "claim_queue" => said(store.claim_queue(&QueueClaim::new("claimer", 60_000, 10)).await),
        other => panic!("{other} is no call"),
    }
}

pub(super) async fn look_at(store: &dyn Store, calls: &[&'static str]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for call in calls.iter().copied() {
        found.push((call, look(store, call).await));
    }
    found
}

fn plain(events: Vec<StoredEvent>) -> Vec<StoredEvent> {
    events.into_iter().map(|event| StoredEvent { position: Position::START, ..event }).collect()
}

fn said(found: impl std::fmt::Debug) -> String {
    format!("{found:#?}")
}
