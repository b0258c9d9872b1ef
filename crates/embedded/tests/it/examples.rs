//! Every example runs by itself, and comes to the same result when the program dies at any checkpoint, when a call of it goes
//! wrong, and when nothing of it is kept in memory.

use serde::Serialize;
use servo_sdk::DurableContext;
use servo_sdk_testkit::{Answer, Kit};

#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/approval.rs"]
mod approval;
#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/embedded.rs"]
mod embedded;
#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/fan_out.rs"]
mod fan_out;
#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/order_saga.rs"]
mod order_saga;
#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/polling.rs"]
mod polling;

/// The same result whatever happens, and no recorded step runs again: with the record in memory, and folded anew at every call.
fn survives(kit: &Kit, function: &str, input: impl Serialize + Clone, most_runs: usize) {
    survives_crashes(kit, function, input.clone(), most_runs);
    survives_crashes(&kit.clone().evict(), function, input.clone(), most_runs);
    survives_calls_that_go_wrong(kit, function, input);
}

/// Lets one checkpoint go wrong.
type Fault = fn(Kit, usize) -> Kit;

/// Every checkpoint comes twice, is recorded without an answer, or comes with a token that is used up.
fn survives_calls_that_go_wrong(kit: &Kit, function: &str, input: impl Serialize + Clone) {
    let calm = kit.run(function, input.clone());
    let faults: [(&str, Fault); 3] =
        [("twice", Kit::duplicate_request), ("lost", Kit::lose_response), ("stale", Kit::stale_token)];
    for n in 1..=calm.checkpoints {
        for (name, fault) in faults {
            for kit in [kit.clone(), kit.clone().evict()] {
                let outcome = fault(kit, n).run(function, input.clone());
                assert_eq!(outcome.result, calm.result, "{name} {n}");
                assert_eq!(outcome.reruns, Vec::<String>::new(), "{name} {n}");
                let repeats = outcome.invocations > calm.invocations;
                assert_eq!(repeats, name == "stale", "{name} {n}: {} invocations", outcome.invocations);
            }
        }
    }
}

fn survives_crashes(kit: &Kit, function: &str, input: impl Serialize + Clone, most_runs: usize) {
    let calm = kit.run(function, input.clone());
    assert!(calm.result.is_some(), "{:?}", calm.error);
    assert!(calm.attempts.values().all(|count| *count == 1), "{:?}", calm.attempts);
    let crashed = kit.run_with_every_crash(function, input);
    assert!(crashed.len() >= 4, "too few checkpoints to be worth it");
    for (n, when, outcome) in crashed {
        assert_eq!(outcome.result, calm.result, "{when:?} checkpoint {n}");
        assert_eq!(outcome.crashes, 1, "{when:?} checkpoint {n}");
        assert_eq!(outcome.reruns, Vec::<String>::new(), "{when:?} checkpoint {n}");
        assert!(outcome.attempts.values().all(|count| *count <= most_runs), "{when:?} {n}: {:?}", outcome.attempts);
    }
}

fn order(address: &str) -> order_saga::Order {
    order_saga::Order { id: "o-1".to_owned(), cents: 1_250, address: address.to_owned() }
}

#[tokio::test]
async fn an_order_is_placed_or_undone() {
    let placed = order_saga::demo().await.unwrap();
    assert_eq!(placed[0].status, "placed");
    assert_eq!(placed[1].status, "undone: there is no address");
}

#[test]
fn an_order_is_undone_newest_first() {
    let kit = Kit::new().handler("order", order_saga::order_saga);
    let undone = |address| {
        let outcome = kit.run("order", order(address));
        let names = outcome.operations.into_iter().filter_map(|operation| operation.name);
        names.filter(|name| name.starts_with("undo")).collect::<Vec<String>>()
    };
    assert_eq!(undone("Baker Street"), [""; 0]);
    assert_eq!(undone(""), ["undo charge", "undo reserve"]);
}

/// DX-050
#[test]
fn an_order_survives_crashes() {
    let kit = Kit::new().handler("order", order_saga::order_saga);
    survives(&kit, "order", order("Baker Street"), 2);
    survives(&kit, "order", order(""), 2);
    let kit = kit.fail_step("charge", 1, "the bank is closed").fail_step("undo charge", 1, "still closed");
    survives(&kit, "order", order(""), 2);
}

#[tokio::test]
async fn an_expense_is_approved() {
    assert_eq!(approval::demo().await.unwrap(), "paid 4200 cents, approved by Grace");
}

/// DX-050
#[test]
fn an_approval_survives_crashes() {
    let handler = |cents: u64, ctx: DurableContext| approval::expense(cents, ctx, |_| Ok(()));
    let kit = Kit::new().handler("expense", handler);
    let decision = approval::Decision { approved: true, by: "Grace".to_owned() };
    let day = std::time::Duration::from_secs(86_400);
    survives(&kit.clone().on_callback_after("approval", day, Answer::succeed(&decision)), "expense", 4_200, 2);
    survives(&kit.clone().on_callback("approval", Answer::succeed(&decision)), "expense", 4_200, 2);
    let nobody = kit.run("expense", 4_200);
    assert!(nobody.value::<String>().starts_with("not paid"), "{:?}", nobody.result);
    assert!((2 * day..3 * day).contains(&nobody.elapsed), "{:?}", nobody.elapsed);
}

#[tokio::test]
async fn pages_are_counted() {
    assert_eq!(fan_out::demo().await.unwrap(), fan_out::Report { words: 18, unreadable: 1 });
}

/// DX-050
#[test]
fn a_map_survives_crashes() {
    survives(&Kit::new().handler("count", fan_out::count_words), "count", fan_out::pages(), 2);
}

#[tokio::test]
async fn an_export_is_waited_for() {
    assert_eq!(polling::demo().await.unwrap(), "export-orders is ready");
}

/// DX-050
#[test]
fn polling_survives_crashes() {
    survives(&Kit::new().handler("export", polling::export), "export", "orders", 2);
}

#[tokio::test]
async fn the_embedded_program_says_the_same_twice() {
    let folder = tempfile::tempdir().unwrap();
    let said = embedded::demo(folder.path()).await.unwrap();
    assert_eq!(said, "Hello Ada, your name has 3 letters");
    assert_eq!(embedded::demo(folder.path()).await.unwrap(), said);
}

/// DX-050
#[test]
fn a_greeting_survives_crashes() {
    survives(&Kit::new().handler("greet", embedded::greet), "greet", "Ada", 2);
}
