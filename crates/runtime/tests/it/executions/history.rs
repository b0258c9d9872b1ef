//! Reading: pages of state and history, lists.

use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ExecutionStatus, OperationAction as A, OperationType as T, OperationUpdate};
use servo_runtime::executions::{ListQuery, PageQuery};
use servo_wire::lambda::CheckpointRequest;

use super::handler::{Scripted, pending, start, step, succeeded, tenant, wait};

/// DX-040: a ClientToken is 1 to 64 characters that can be seen.
#[test]
fn client_tokens_are_the_published_ones() {
    let (world, functions) = Scripted::world(36);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        let (arn, token) = (&invocation.input.durable_execution_arn, &invocation.input.checkpoint_token);
        let request = |client_token: String| CheckpointRequest {
            checkpoint_token: token.clone(),
            updates: Some(vec![step("a", A::Start)]),
            client_token: Some(client_token),
        };
        let call = |client_token: String| {
            invocation.executions.checkpoint(&invocation.call.tenant, arn, request(client_token))
        };
        for wrong in [String::new(), "a b".to_owned(), "ä".to_owned(), "x".repeat(65)] {
            let refused = call(wrong.clone()).await.unwrap_err();
            assert!(refused.message.starts_with("ClientToken has 1 to 64 "), "{wrong}: {refused}");
        }
        call("x~!".repeat(21)).await.unwrap();
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
}

/// DX-040: a state of any size is read page by page, and a token that was used up reads nothing.
#[test]
fn the_state_is_read_in_pages() {
    let (world, functions) = Scripted::world(31);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        if invocation.known("s0").is_none() {
            for batch in 0..30 {
                let ids = (0..50).map(|number| format!("s{}", batch * 50 + number));
                let updates = ids.flat_map(|id| [step(&id, A::Start), step(&id, A::Succeed)]).collect();
                invocation.checkpoint(updates).await.unwrap();
            }
            let mut wait = OperationUpdate::new("w", T::Wait, A::Start);
            wait.wait_options = Some(servo_model::operation::WaitOptions { wait_seconds: Some(1) });
            invocation.checkpoint(vec![wait]).await.unwrap();
            return pending();
        }
        let first = &invocation.input.initial_execution_state;
        let mut seen: Vec<String> = first.operations.iter().map(|operation| operation.id.clone()).collect();
        let mut marker = first.next_marker.clone();
        assert!(marker.as_ref().is_some_and(|marker| !marker.is_empty()));
        let (arn, token) = (&invocation.input.durable_execution_arn, &invocation.input.checkpoint_token);
        while let Some(text) = marker.filter(|marker| !marker.is_empty()) {
            let page = invocation.executions.state(&invocation.call.tenant, arn, token, Some(&text), Some(100)).await;
            let page = page.unwrap();
            assert!(page.operations.len() <= 100);
            seen.extend(page.operations.iter().map(|operation| operation.id.clone()));
            marker = page.next_marker;
        }
        assert_eq!(seen.len(), 1_502, "EXECUTION, 1,500 steps and the wait");
        let unique: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len());
        invocation.checkpoint(vec![step("last", A::Start)]).await.unwrap();
        let stale = invocation.executions.state(&invocation.call.tenant, arn, token, None, None).await.unwrap_err();
        assert_eq!(stale.message, "Invalid checkpoint token");
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
    let (executions, arn) = (node.runtime.executions().clone(), begun.arn);
    world.block_on(async move {
        let mut ids = Vec::new();
        let mut marker: Option<String> = None;
        loop {
            let page = PageQuery { marker: marker.as_deref(), max_items: Some(701), reverse: false };
            let answer = executions.history(&tenant(), &arn, false, page).await.unwrap();
            ids.extend(answer.events.iter().map(|event| event.event_id));
            marker = answer.next_marker;
            if marker.is_none() {
                break;
            }
        }
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
        let mut back = Vec::new();
        loop {
            let page = PageQuery { marker: marker.as_deref(), max_items: Some(1_000), reverse: true };
            let answer = executions.history(&tenant(), &arn, true, page).await.unwrap();
            back.extend(answer.events.iter().map(|event| event.event_id));
            marker = answer.next_marker;
            if marker.is_none() {
                break;
            }
        }
        back.reverse();
        assert_eq!(back, ids, "backwards is the same history");
        let wrong = PageQuery { marker: Some("AAAA"), ..PageQuery::default() };
        assert_eq!(executions.history(&tenant(), &arn, true, wrong).await.unwrap_err().message, "Invalid marker");
    });
}

/// DX-090: a page has as many events as were asked for, also where one event of the log tells two of the history.
#[test]
fn pages_are_exact_in_both_directions() {
    let (world, functions) = Scripted::world(33);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        for id in ["a", "b", "c"] {
            invocation.checkpoint(vec![step(id, A::Start), step(id, A::Succeed)]).await.unwrap();
        }
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    wait(&world, &node, &begun.run_id);
    let (executions, arn) = (node.runtime.executions().clone(), begun.arn);
    world.block_on(async move {
        for (items, reverse) in [(1, false), (2, false), (3, false), (9, false), (1, true), (2, true), (4, true)] {
            let (mut sizes, mut ids, mut marker) = (Vec::new(), Vec::new(), None::<String>);
            loop {
                let page = PageQuery { marker: marker.as_deref(), max_items: Some(items), reverse };
                let answer = executions.history(&tenant(), &arn, true, page).await.unwrap();
                sizes.push(answer.events.len());
                ids.extend(answer.events.iter().map(|event| event.event_id));
                marker = answer.next_marker;
                if marker.is_none() {
                    break;
                }
            }
            let (last, full) = sizes.split_last().unwrap();
            assert!(full.iter().all(|size| *size == items) && (1..=items).contains(last), "{items}: {sizes:?}");
            if reverse {
                ids.reverse();
            }
            // ExecutionStarted, three steps of two events, InvocationCompleted, ExecutionSucceeded.
            assert_eq!(ids, (1..=9).collect::<Vec<_>>(), "{items} a page, reverse: {reverse}");
        }
    });
}

/// DX-090: a page is bounded in bytes in either direction, and what is not shown takes no room.
#[test]
fn pages_are_bounded_in_bytes() {
    const PAYLOAD: usize = 900 * 1024;
    let (world, functions) = Scripted::world(34);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        for number in 0..12 {
            let id = format!("s{number}");
            let mut end = step(&id, A::Succeed);
            end.payload = Some("x".repeat(PAYLOAD));
            invocation.checkpoint(vec![step(&id, A::Start), end]).await.unwrap();
        }
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    wait(&world, &node, &begun.run_id);
    let (executions, arn) = (node.runtime.executions().clone(), begun.arn);
    world.block_on(async move {
        for reverse in [false, true] {
            let (mut pages, mut ids, mut marker) = (0, Vec::new(), None::<String>);
            loop {
                let page = PageQuery { marker: marker.as_deref(), max_items: Some(1_000), reverse };
                let answer = executions.history(&tenant(), &arn, true, page).await.unwrap();
                assert!(serde_json::to_vec(&answer).unwrap().len() < 6 * 1024 * 1024, "reverse: {reverse}");
                pages += 1;
                ids.extend(answer.events.iter().map(|event| event.event_id));
                marker = answer.next_marker;
                if marker.is_none() {
                    break;
                }
            }
            ids.sort_unstable();
            assert_eq!((pages, ids), (3, (1..=27).collect::<Vec<_>>()), "reverse: {reverse}");
            let page = PageQuery { max_items: Some(1_000), reverse, ..PageQuery::default() };
            let bare = executions.history(&tenant(), &arn, false, page).await.unwrap();
            assert_eq!((bare.events.len(), bare.next_marker), (27, None), "reverse: {reverse}");
        }
    });
}

/// DX-090: a qualifier, in the name or beside it, selects the executions of its version; two that differ are refused.
#[test]
fn executions_are_listed_by_version() {
    let (world, functions) = Scripted::world(35);
    let node = world.leader();
    functions.serve(&node);
    for (version, timeout) in [("one", 60), ("two", 120)] {
        let spec = FunctionSpec { execution_timeout_seconds: timeout, ..FunctionSpec::new(Reach::InProcess) };
        functions.define_as(&world, "f", &spec, |_| async { succeeded("1") });
        let begun = start(&world, &node, "f", Some(version), "{}").unwrap();
        wait(&world, &node, &begun.run_id);
        world.pass_ms(5);
    }
    let executions = node.runtime.executions().clone();
    world.block_on(async move {
        let arn = "arn:aws:lambda:us-east-1:000000000000:function:f:1";
        for (function, qualifier, expected) in [
            ("f", None, vec!["two", "one"]),
            ("f", Some("1"), vec!["one"]),
            ("f", Some("$LATEST"), vec!["two"]),
            ("f:1", None, vec!["one"]),
            ("f:1", Some("1"), vec!["one"]),
            ("f:$LATEST", None, vec!["two"]),
            (arn, None, vec!["one"]),
        ] {
            let query = ListQuery { qualifier: qualifier.map(str::to_owned), ..ListQuery::default() };
            let answer = executions.list(&tenant(), function, &query, PageQuery::default()).await.unwrap();
            let names = answer.durable_executions.iter().map(|item| item.durable_execution_name.as_str());
            assert_eq!(names.collect::<Vec<_>>(), expected, "{function} {qualifier:?}");
        }
        for (function, qualifier, expected) in [
            ("f:1", "2", "InvalidParameterValueException"),
            ("f", "$LATESTfoo", "InvalidParameterValueException"),
            ("f", "", "InvalidParameterValueException"),
            ("f", "3", "ResourceNotFoundException"),
            ("999999999999:function:f", "1", "ResourceNotFoundException"),
        ] {
            let query = ListQuery { qualifier: Some(qualifier.to_owned()), ..ListQuery::default() };
            let listed = executions.list(&tenant(), function, &query, PageQuery::default()).await.unwrap_err();
            let resolved = executions.resolve(&tenant(), function, Some(qualifier)).await.unwrap_err();
            assert_eq!((listed.name.as_str(), resolved.name.as_str()), (expected, expected), "{function} {qualifier}");
        }
    });
}

/// DX-090
#[test]
fn executions_are_listed_by_function_status_and_name() {
    let (world, functions) = Scripted::world(32);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |_| async { succeeded("1") });
    functions.define(&world, "g", |_| async { Ok(r#"{"Status":"FAILED","Error":{"ErrorType":"E"}}"#.to_owned()) });
    for number in 0..5 {
        let begun = start(&world, &node, "f", Some(&format!("n{number}")), "{}").unwrap();
        wait(&world, &node, &begun.run_id);
        // Lists are ordered by the millisecond of the start.
        world.pass_ms(5);
    }
    let failed = start(&world, &node, "g", None, "{}").unwrap();
    wait(&world, &node, &failed.run_id);
    let executions = node.runtime.executions().clone();
    world.block_on(async move {
        let names = |query: ListQuery, reverse: bool| {
            let executions = executions.clone();
            async move {
                let (mut names, mut marker): (Vec<String>, Option<String>) = (Vec::new(), None);
                loop {
                    let page = PageQuery { marker: marker.as_deref(), max_items: Some(2), reverse };
                    let answer = executions.list(&tenant(), "f", &query, page).await.unwrap();
                    names.extend(answer.durable_executions.iter().map(|item| item.durable_execution_name.clone()));
                    marker = answer.next_marker;
                    if marker.is_none() {
                        return names;
                    }
                }
            }
        };
        assert_eq!(names(ListQuery::default(), false).await, ["n4", "n3", "n2", "n1", "n0"]);
        assert_eq!(names(ListQuery::default(), true).await, ["n0", "n1", "n2", "n3", "n4"]);
        let named = ListQuery { name: Some("n3".to_owned()), ..ListQuery::default() };
        assert_eq!(names(named, false).await, ["n3"]);
        let failed = ListQuery { statuses: vec![ExecutionStatus::Failed], ..ListQuery::default() };
        assert_eq!(names(failed, false).await, Vec::<String>::new());
        let page = PageQuery::default();
        let all = executions.list(&tenant(), "g", &ListQuery::default(), page).await.unwrap().durable_executions;
        assert_eq!(all.iter().map(|item| item.status).collect::<Vec<_>>(), [ExecutionStatus::Failed]);
        for (status, found) in
            [(ExecutionStatus::Failed, 1), (ExecutionStatus::TimedOut, 0), (ExecutionStatus::Running, 0)]
        {
            let query = ListQuery { statuses: vec![status], ..ListQuery::default() };
            let some = executions.list(&tenant(), "g", &query, page).await.unwrap().durable_executions;
            assert_eq!(some.len(), found, "{status:?}");
        }
    });
}
