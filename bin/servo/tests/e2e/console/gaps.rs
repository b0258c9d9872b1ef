//! A log with gaps in its sequence, as the console shows it.

use serde_json::{Value, json};
use servo_canon::Digest;

use super::seed::Shop;
use super::sees;
use crate::support::browser::Browser;

const SOURCE: &str = r#"
def main(ctx, input):
    ctx.step("reserve stock", lambda: 1)
    ctx.step("pack", lambda: 2)
    return {"order": input.order_id}
"#;

/// The same run with two numbers left out behind every event.
fn with_gaps(mut file: Value) -> Value {
    let events = file["events"].as_array_mut().expect("events");
    for event in events.iter_mut() {
        let sequence = event["runSeq"].as_u64().expect("a sequence");
        event["runSeq"] = json!(sequence * 3);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    file["sha256"] = json!(Digest::of_parts(&lines, '\n').to_string());
    file
}

/// ES-003: 3, 6, 9 is as good as 1, 2, 3: every event is shown, the steps are drawn, and nothing speaks of damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_are_normal_in_the_console() {
    let (here, there) = (Shop::open(), Shop::open());
    let (address, _) = here.register(true, "packs", "Packs an order", SOURCE).await;
    let id = here.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let file = with_gaps(here.get(&format!("/v1/runs/{id}/export")).await);
    let count = file["events"].as_array().map_or(0, Vec::len);
    there.put_run(&file).await;
    let mut browser = Browser::start();
    browser.open(&there.page(&format!("invocations/{id}")), "document.querySelector('.waterfall')");
    sees(&mut browser, ".page-head", "succeeded");
    sees(&mut browser, ".waterfall", "reserve stock");
    sees(&mut browser, ".waterfall", "pack");
    browser.click("#tab-Events");
    let numbers =
        "[...document.querySelectorAll('table.events tbody tr')].map((row) => Number(row.cells[0].innerText))";
    // Beside them the one that says that the run was imported.
    browser.until(&format!("({numbers}).length === {}", count + 1));
    let shown: Vec<usize> = serde_json::from_value(browser.eval(numbers)).expect("numbers");
    let imported: Vec<usize> = (1..=count).rev().map(|number| number * 3).collect();
    assert!(shown[0] > imported[0], "{shown:?}");
    assert_eq!(shown[1..], imported);
    browser.is_content();
}
