//! What people do: start something, watch it, approve it, retry it; and all of it without a mouse.

use serde_json::json;

use super::seed::{FULFIL, Shop};
use super::sees;
use crate::support::api::{Api, Start};
use crate::support::browser::Browser;
use crate::support::process::Servo;

/// From the form to the end, without loading the page again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_is_started_from_its_form_watched_and_approved() {
    let shop = Shop::open();
    let (_, id) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("entrypoints/{id}")), "document.querySelector('#run')");
    // What the schema needs is asked for before anything is sent.
    browser.click("#run");
    sees(&mut browser, "#run-form .failure", "order_id");
    browser.fill("#run-form input[name=order_id]", "o-7");
    browser.fill("#run-form input[name=amount]", "12.5");
    browser.click("#run");
    browser.until("location.pathname.startsWith('/console/invocations/inv_')");
    sees(&mut browser, ".page-head", "suspended");
    sees(&mut browser, ".waterfall", "reserve stock");
    browser.eval("window.sameDocument = true");
    browser.click("#send-signal");
    browser.fill("#ask-payload", r#"{"by": "ada"}"#);
    browser.click("dialog .primary");
    // It goes on by itself on the screen.
    sees(&mut browser, ".page-head", "succeeded");
    sees(&mut browser, ".waterfall", "pack games");
    browser.click("#tab-Output");
    sees(&mut browser, ".tab-body", "ada");
    browser.click("#tab-Input");
    sees(&mut browser, ".tab-body", "12.5");
    browser.click("#as-curl");
    sees(&mut browser, "dialog", "curl -s");
    assert_eq!(browser.eval("window.sameDocument"), json!(true), "the page was loaded again");
    browser.is_content();
}

/// What the banner of `servo dev` asks a newcomer to do: order something, and approve it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_of_the_demo_is_placed_and_approved() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev_with_demo(folder.path()).expect("it starts");
    let mut browser = Browser::start();
    browser.open(&format!("{}/console/entrypoints", servo.url), "document.querySelector('main tbody tr')");
    browser.eval("window.sameDocument = true");
    let row =
        "[...document.querySelectorAll('main tbody tr')].find((row) => row.innerText.includes('demo.shop.order'))";
    browser.until(row);
    browser.eval(&format!("({row}).id = 'the-order'"));
    browser.click("#the-order");
    browser.until("document.querySelector('#run')");
    browser.fill("#run-form input[name=order_id]", "o-77");
    browser.fill("#run-form input[name=amount]", "99");
    browser.click("#run");
    browser.until("location.pathname.startsWith('/console/invocations/inv_')");
    // Live: the steps come, the wait passes, and then a person is needed.
    sees(&mut browser, ".waterfall", "charge");
    browser.until("document.querySelector('#send-signal')");
    sees(&mut browser, ".page-head", "suspended");
    browser.picture("order-waits-light-1280");
    browser.click("#send-signal");
    browser.fill("#ask-payload", r#"{"yes": true, "by": "Ada"}"#);
    browser.click("dialog .primary");
    sees(&mut browser, ".page-head", "succeeded");
    // The form took what the schema says is usual.
    sees(&mut browser, ".waterfall", "ship books");
    browser.click("#tab-Output");
    sees(&mut browser, ".tab-body", "Ada");
    assert_eq!(browser.eval("window.sameDocument"), json!(true), "the page was loaded again");
    browser.picture("order-approved-light-1280");
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_one_is_retried() {
    let shop = Shop::open();
    let source = "def main(ctx, input):\n    ctx.step('first', lambda: 1)\n    ctx.fail('the shop is closed')\n";
    let (address, _) = shop.register(true, "closed", "Closed", source).await;
    let id = shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('#do-retry')");
    sees(&mut browser, ".tab-body", "the shop is closed");
    browser.click("#do-retry");
    // It runs again, and fails again: the second round is on the same page.
    browser.until("document.querySelector('#round-1')");
    sees(&mut browser, ".page-head", "failed");
    // The same from the page of failures, for the whole group.
    browser.open(&shop.page("failures"), "document.querySelector('main tbody .button')");
    browser.click("main tbody .button");
    browser.click("dialog .primary");
    sees(&mut browser, ".toasts", "Retry: 1 invocation");
    browser.is_content();
}

/// ES-100, ES-049: a paused run with a step in flight is shown as draining, and the alert that it takes too long is shown, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_run_is_shown_while_it_drains_and_when_it_does_not() {
    let shop = Shop::with(&[("SERVO__RUNTIME__POLICY__DRAIN_TIMEOUT_MS", "3000")]);
    let plan = json!({"planId": "slow", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "long", "with": {"sleepMs": 600_000}}]});
    let Start::Acked { run_id, .. } = Api::new().start(&shop.servo.url, "slow", &plan).await else {
        panic!("not started")
    };
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("runs/{run_id}")), "document.querySelector('.wf-bar.run.open')");
    browser.click("#do-pause");
    browser.click("dialog .primary");
    sees(&mut browser, ".page-head", "DRAINING");
    browser.open(&shop.page("alerts"), "document.querySelector('main .card')");
    sees(&mut browser, "main", "PAUSE_DRAIN_TIMEOUT");
    browser.click("main tbody a.id");
    browser.until(&format!("location.pathname.endsWith({})", json!(run_id)));
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_reached_by_keyboard() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    for number in 0..3 {
        shop.start(&address, "async", json!({"order_id": format!("o-{number}")})).await;
    }
    let mut browser = Browser::start();
    browser.open(&shop.page(""), "document.querySelector('.tile')");
    // The first thing that Tab reaches is the way past the navigation.
    browser.press("Tab");
    assert_eq!(browser.eval("document.activeElement.className"), "skip");
    browser.press("?");
    sees(&mut browser, "dialog", "Keyboard");
    browser.press("Escape");
    browser.until("!document.querySelector('dialog')");
    // Search finds the entrypoint by a part of its name.
    browser.press("/");
    browser.write("fulf");
    sees(&mut browser, ".palette [aria-selected=true]", "shop.app.fulfil");
    browser.press("Enter");
    browser.until("location.pathname.includes('/entrypoints/ep_')");
    // To the list, down, choose, open.
    browser.until("document.querySelector('main .card')");
    browser.eval("document.activeElement.blur()");
    browser.press("g");
    browser.press("i");
    browser.until("document.querySelectorAll('main tbody tr').length === 3");
    browser.press("j");
    browser.press("j");
    let second = browser.eval("document.querySelectorAll('main tbody tr')[1] === document.activeElement");
    assert_eq!(second, json!(true));
    browser.press("x");
    sees(&mut browser, ".bulk", "1 invocation chosen");
    browser.press("Enter");
    browser.until("location.pathname.includes('/invocations/inv_')");
    sees(&mut browser, ".page-head", "shop.app.fulfil");
    browser.is_content();
}
