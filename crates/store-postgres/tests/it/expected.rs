//! Appends that the database checks by itself, on its own clock: what it refuses is answered as the rules say, and what is
//! written in one call is what would have been written in two.

use servo_model::contract::DispatchState;
use servo_store::log::TimerChange;
use servo_store::testkit::fixtures::{add, dispatch_step, fresh_event, run_id, start_append, start_stream, tenant};
use servo_store::{
    Append, AuthorityChange, DispatchChange, Error, Expected, Fence, LogStore, RunStore, Scope, StreamAppend, WorkStore,
};
use servo_store_postgres::PostgresStore;

use crate::support::{connect, database, run};

async fn acquire(store: &PostgresStore, owner: &str, leased_until: &str) -> u64 {
    let (owner, lease_id, leased_until) = (owner.to_owned(), "lease".to_owned(), leased_until.to_owned());
    let authority = Some(AuthorityChange::Acquire { owner, lease_id, leased_until });
    store.append(Append { authority, ..Append::default() }).await.unwrap().epoch.unwrap()
}

fn fenced(stream: StreamAppend, epoch: u64) -> Append {
    Append { fence: Some(Fence { epoch }), ..Append::one(stream) }
}

/// Who holds the authority is checked with the clock that runs when the locks are held.
#[test]
fn an_authority_that_passed_on_or_expired_writes_nothing() {
    run(async {
        let store = connect(&database().await).await;
        let (run, acme) = (run_id("inv_1"), tenant("acme"));
        let one_more =
            |head: u64, epoch: u64| fenced(add(&run, &acme, Expected::Seq(head), vec![fresh_event(&run)]), epoch);
        let first = acquire(&store, "a", "2100-01-01T00:00:00Z").await;
        store.append(fenced(start_stream(&run, &acme), first)).await.unwrap();
        store.append(one_more(1, first)).await.unwrap();
        let second = acquire(&store, "a", "2100-01-01T00:00:00Z").await;
        let refused = store.append(one_more(2, first)).await;
        assert!(matches!(refused, Err(Error::Fenced { epoch }) if epoch == first), "{refused:?}");
        store.append(one_more(2, second)).await.unwrap();
        let expired = acquire(&store, "a", "2000-01-01T00:00:00Z").await;
        let refused = store.append(one_more(3, expired)).await;
        assert!(matches!(refused, Err(Error::Fenced { epoch }) if epoch == expired), "{refused:?}");
        assert_eq!(store.read_run(&Scope::System, &run, 0, 10).await.unwrap().head_seq, 3);
    });
}

/// A start with its first hand-over, and the end of it: each is one transaction of one exchange.
#[test]
fn rows_of_all_kinds_come_out_as_they_should() {
    run(async {
        let store = connect(&database().await).await;
        let (run, acme) = (run_id("inv_1"), tenant("acme"));
        let step = dispatch_step("a", 1);
        let (request_id, target) = (step.request_id(&run), "t".to_owned());
        let mut start = start_stream(&run, &acme);
        start.timer = TimerChange::Set(servo_model::Timestamp::from_millis(4_102_444_800_000));
        start.dispatches = vec![
            DispatchChange::Queue { request_id: request_id.clone(), target, step: Some(step) },
            DispatchChange::Notify { request_id: request_id.clone(), channel: "node".to_owned(), epoch: 7 },
        ];
        let mut row = start.row.clone().unwrap();
        let started = store.append(Append::one(start)).await.unwrap();
        let at = started.streams[0].events[0].emitted_at;
        let notified = store.get_dispatch(&request_id).await.unwrap().unwrap();
        assert_eq!((notified.state, notified.epoch, notified.changed_at), (DispatchState::Notified, 7, at));
        assert_eq!((notified.channel.as_deref(), notified.run_id.as_str()), (Some("node"), "inv_1"));
        assert!(store.get_timer(&run).await.unwrap().is_some());

        let head = u64::try_from(started.streams[0].events.len()).unwrap();
        let mut end = add(&run, &acme, Expected::Seq(head), vec![fresh_event(&run)]);
        (row.status, row.changed_seq) = (servo_model::RunStatus::Completed, head + 1);
        end.row = Some(row);
        end.timer = TimerChange::Clear;
        let next = dispatch_step("a", 2).request_id(&run);
        end.dispatches = vec![
            DispatchChange::Deliver { request_id: request_id.clone() },
            DispatchChange::Withdraw { request_id: next },
        ];
        let ended = store.append(Append::one(end.clone())).await.unwrap();
        let delivered = store.get_dispatch(&request_id).await.unwrap().unwrap();
        assert_eq!((delivered.state, delivered.epoch), (DispatchState::Delivered, 7));
        assert_eq!(delivered.channel.as_deref(), Some("node"), "what the move does not say stays");
        assert_eq!(store.get_timer(&run).await.unwrap(), None);
        let shown = store.get_run(&Scope::System, &run).await.unwrap().unwrap();
        assert_eq!(shown.status, servo_model::RunStatus::Completed);
        let page = store.read_run(&Scope::System, &run, head, 10).await.unwrap();
        assert_eq!(
            page.events[0].emitted_at, ended.streams[0].events[0].emitted_at,
            "the answer has the time of the row"
        );
        let again = store.append(Append::one(end)).await.unwrap();
        assert!(!again.streams[0].events[0].inserted, "the same keys again change nothing");
    });
}

/// A dispatch that is withdrawn goes only while nobody has it, and only its own tenant's.
#[test]
fn a_dispatch_that_was_taken_is_not_withdrawn() {
    run(async {
        let store = connect(&database().await).await;
        let acme = tenant("acme");
        let (waiting, taken) = (run_id("inv_1"), run_id("inv_2"));
        for run in [&waiting, &taken] {
            store.append(start_append(run, &acme)).await.unwrap();
            let step = dispatch_step("a", 1);
            let request_id = step.request_id(run);
            let mut stream = add(run, &acme, Expected::Seq(1), vec![fresh_event(run)]);
            let queued =
                DispatchChange::Queue { request_id: request_id.clone(), target: "t".to_owned(), step: Some(step) };
            stream.dispatches.push(queued);
            if *run == taken {
                stream.dispatches.push(DispatchChange::Notify { request_id, channel: "node".to_owned(), epoch: 1 });
            }
            store.append(Append::one(stream)).await.unwrap();
            let mut stream = add(run, &acme, Expected::Seq(2), vec![fresh_event(run)]);
            stream.dispatches = vec![DispatchChange::Withdraw { request_id: dispatch_step("a", 1).request_id(run) }];
            store.append(Append::one(stream)).await.unwrap();
        }
        let state = async |run| {
            let row = store.get_dispatch(&dispatch_step("a", 1).request_id(run)).await.unwrap();
            row.map(|row| row.state)
        };
        assert_eq!((state(&waiting).await, state(&taken).await), (None, Some(DispatchState::Notified)));
        let early = DispatchChange::Deliver { request_id: dispatch_step("a", 1).request_id(&waiting) };
        let mut stream = add(&waiting, &acme, Expected::Seq(3), vec![fresh_event(&waiting)]);
        stream.dispatches = vec![early];
        let refused = store.append(Append::one(stream)).await;
        assert!(matches!(refused, Err(Error::DispatchNotFound { .. })), "{refused:?}");
    });
}

/// A checkpoint's append is events alone, in a call of its own; what is only expected to be somewhere is looked at all the same.
#[test]
fn events_alone_are_written_only_where_every_run_is_as_expected() {
    run(async {
        let store = connect(&database().await).await;
        let acme = tenant("acme");
        let (one, two) = (run_id("inv_1"), run_id("inv_2"));
        for run in [&one, &two] {
            store.append(start_append(run, &acme)).await.unwrap();
        }
        let several = |head: u64, other: u64| {
            let events = vec![fresh_event(&one), fresh_event(&one)];
            let streams =
                vec![add(&one, &acme, Expected::Seq(head), events), add(&two, &acme, Expected::Seq(other), Vec::new())];
            Append { streams, ..Append::default() }
        };
        for (append, of) in [(several(2, 1), &one), (several(0, 1), &one), (several(1, 3), &two), (several(1, 0), &two)]
        {
            let refused = store.append(append).await;
            assert!(matches!(&refused, Err(Error::Conflict { run_id, .. }) if run_id == of), "{refused:?}");
        }
        store.append(several(1, 1)).await.unwrap();
        let events = vec![fresh_event(&one), fresh_event(&one)];
        let written = store.append(Append::one(add(&one, &acme, Expected::Seq(3), events))).await.unwrap();
        let seqs: Vec<_> = written.streams[0].events.iter().map(|event| event.run_seq).collect();
        assert_eq!(seqs, [4, 5]);
        let foreign =
            store.append(Append::one(add(&one, &tenant("globex"), Expected::Seq(5), vec![fresh_event(&one)]))).await;
        assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
        assert_eq!(store.read_run(&Scope::System, &one, 0, 10).await.unwrap().head_seq, 5);
    });
}
