//! Long runs: what failed and what is under way is seen at once, however many other operations there are.

use serde_json::{Value, json};
use servo_canon::Digest;

use super::seed::Shop;
use super::sees;
use crate::support::browser::Browser;

/// Six hundred that succeed, and then one that does not.
const LAST_FAILS: &str = r#"
def main(ctx, input):
    for number in range(600):
        ctx.step("step %d" % number, lambda: number)
    ctx.step("charge the card", lambda: ctx.fail("card was declined"))
"#;

const FAN_OUT: &str = r#"
def one(ctx, number):
    def pack():
        if number == 77:
            ctx.fail("parcel 77 is lost")
        return number
    return ctx.step("pack %d" % number, pack)

def main(ctx, input):
    return ctx.map(list(range(100)), lambda number: one(ctx, number))
"#;

/// Rows of the timeline that are elements of the page.
const ROWS: &str = "document.querySelectorAll('.wf-window .wf-row').length";
/// More than this is not seen on any screen at once.
const ROWS_MAX: u64 = 80;

/// A row is inside of what the timeline shows, and that inside of the window.
fn on_screen(name: &str) -> String {
    format!(
        "(() => {{ const row = [...document.querySelectorAll('.wf-open')].find((row) => row.innerText.includes({})); \
         if (!row) return false; const [r, s] = [row.getBoundingClientRect(), \
         row.closest('.wf-scroll').getBoundingClientRect()]; \
         return r.top >= s.top && r.bottom <= s.bottom + 1 && r.top >= 0 && r.bottom <= innerHeight; }})()",
        json!(name)
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_step_that_failed_is_seen_behind_six_hundred_that_did_not() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "long", "Long", LAST_FAILS).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    shop.until(&id, "failed").await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('.wf-open')");
    // The error is above the timeline, with a link to the step; the step's row is on the screen. Nothing was scrolled.
    sees(&mut browser, ".summary-error", "card was declined");
    assert_eq!(browser.eval("document.querySelector('#failed-step').innerText"), "charge the card");
    assert_eq!(browser.eval(&on_screen("charge the card")), json!(true));
    let beyond = browser.eval("document.querySelector('.summary-error').getBoundingClientRect().bottom <= innerHeight");
    assert_eq!(beyond, json!(true));
    // The whole page is a few screens, not fifteen.
    let screens = browser.eval("document.documentElement.scrollHeight / innerHeight").as_f64().expect("a number");
    assert!(screens < 3.0, "{screens} screens");
    browser.picture("long-light-1280");
    // What is folded says how much that is, and opens.
    sees(&mut browser, ".wf-fold", "590 more operations: succeeded");
    assert_eq!(browser.eval("document.querySelector('#show-all .n').innerText"), "601");
    browser.click(".wf-fold");
    browser.until("!document.querySelector('.wf-fold')");
    let rows = browser.eval(ROWS).as_u64().expect("a number");
    assert!(rows > 10 && rows < ROWS_MAX, "{rows} rows");
    // From anywhere the next failure is one press away, and the filter leaves nothing else.
    browser.click("#next-failed");
    browser.until(&on_screen("charge the card"));
    sees(&mut browser, ".op-detail", "card was declined");
    browser.click("#show-failed");
    browser.until(&format!("{ROWS} === 1"));
    sees(&mut browser, ".wf-window", "charge the card");
    browser.click("#show-all");
    browser.click("#wf-find");
    browser.write("step 59");
    // 59, 590 to 599, and 159 to 559.
    browser.until(&format!("{ROWS} === 16"));
    browser.until("location.search.includes('find=step')");
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wide_group_is_closed_and_hides_no_failure() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "fans", "Fans out", FAN_OUT).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    shop.until(&id, "failed").await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('.wf-toggle')");
    sees(&mut browser, ".wf-window", "1 failed of 78");
    assert_eq!(browser.eval(&on_screen("pack 77")), json!(true));
    assert_eq!(browser.eval("document.querySelector('.wf-window').innerText.includes('pack 12')"), json!(false));
    browser.picture("fan-out-light-1280");
    browser.click(".wf-toggle");
    sees(&mut browser, ".wf-window", "pack 0");
    browser.until("document.querySelector('.wf-toggle[aria-expanded=true]')");
    let rows = browser.eval(ROWS).as_u64().expect("a number");
    assert!(rows > 20 && rows < ROWS_MAX, "{rows} rows");
    browser.is_content();
}

/// One step of a run, ten thousand times, and the one in the middle of them failed.
fn ten_thousand(mut file: Value) -> Value {
    let events = file["events"].as_array_mut().expect("events");
    let at = events.iter().position(|event| event["eventType"] == "OperationUpdated").expect("a step");
    let (step, rest) = (events[at].clone(), events.split_off(at + 1));
    for number in 1..10_000_u32 {
        let mut next = step.clone();
        let id = format!("{number:032x}");
        next["operationId"] = json!(id);
        next["eventId"] = json!(format!("{}{number:012x}", &step["eventId"].as_str().expect("an id")[..24]));
        next["idempotencyKey"] = json!(Digest::of(id.as_bytes()).to_string());
        next["name"] = json!(format!("parcel {number}"));
        if number == 5_000 {
            next["action"] = json!("FAIL");
            next["error"] = json!({"ErrorType": "Lost", "ErrorMessage": "parcel 5000 is lost"});
        }
        events.push(next);
    }
    events.extend(rest);
    for (at, event) in events.iter_mut().enumerate() {
        event["runSeq"] = json!(at + 1);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    file["sha256"] = json!(Digest::of_parts(&lines, '\n').to_string());
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_operations_are_a_few_rows() {
    let (here, there) = (Shop::open(), Shop::open());
    let source = "def main(ctx, input):\n    ctx.step('parcel 0', lambda: 0)\n    return {}\n";
    let (address, _) = here.register(true, "packs", "Packs an order", source).await;
    let id = here.start(&address, "sync", json!({"order_id": "o-1"})).await;
    there.put_run(&ten_thousand(here.get(&format!("/v1/runs/{id}/export")).await)).await;
    let mut browser = Browser::start();
    browser.open(&there.page(&format!("invocations/{id}")), "document.querySelector('.wf-open')");
    assert_eq!(browser.eval("document.querySelector('#show-all .n').innerText"), "10,000");
    browser.until(&on_screen("parcel 5000"));
    for fold in ["4,990", "4,989"] {
        sees(&mut browser, ".wf-window", &format!("{fold} more operations"));
    }
    // With everything open there are still only as many elements as are seen, at the beginning, in the middle, at the end.
    for before in [0, 5_000] {
        browser.eval(&format!("document.querySelector('.wf-scroll').scrollTop = {before} * 30"));
        browser.click(".wf-fold");
    }
    browser.until("document.querySelector('.wf-body').clientHeight >= 10000 * 30");
    for (part, name) in [(0, "parcel 0"), (10_000 / 2, "parcel 5000"), (10_000, "parcel 9999")] {
        browser.eval(&format!("document.querySelector('.wf-scroll').scrollTop = Math.max(0, {part} * 30 - 200)"));
        browser.until(&on_screen(name));
        let rows = browser.eval(ROWS).as_u64().expect("a number");
        assert!(rows < ROWS_MAX, "{rows} rows at {part}");
    }
    browser.click("#next-failed");
    browser.until(&on_screen("parcel 5000"));
    browser.picture("ten-thousand-light-1280");
    browser.is_content();
}
