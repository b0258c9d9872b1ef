//! What a page says: why it could not be undone, what it waits for, by whose clock, and of when it is.

use serde_json::json;

use super::seed::{FULFIL, Shop};
use super::sees;
use crate::support::browser::Browser;

/// The undoing's failure is the operator's next task, so it stands before the cause, on the page and in the lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_undone_is_said_first() {
    let shop = Shop::open();
    let undo = "def main(ctx, input):\n    ctx.fail('the ledger is closed')\n";
    let source = "def main(ctx, input):\n    ctx.step('pick', lambda: 1)\n    ctx.fail('the warehouse is on fire')\n";
    let address = shop.register_undone("burns", source, undo).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    shop.until(&id, "dead_lettered").await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('.summary-error')");
    let first = |text: &serde_json::Value| {
        let text = text.as_str().expect("text").to_owned();
        let undone = text.find("could not be undone: the ledger is closed").unwrap_or_else(|| panic!("{text}"));
        let cause = text.find("the warehouse is on fire").unwrap_or_else(|| panic!("{text}"));
        assert!(undone < cause, "{text}");
    };
    first(&browser.eval("document.querySelector('.summary-error').innerText"));
    first(&browser.eval("document.querySelector('.tab-body').innerText"));
    browser.picture("undone-light-1280");
    for page in ["invocations?status=dead_lettered", "failures"] {
        browser.open(&shop.page(page), "document.querySelector('main tbody tr')");
        sees(&mut browser, "main tbody", "could not be undone");
        first(&browser.eval("document.querySelector('main tbody').innerText"));
    }
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_says_what_it_waits_for() {
    let shop = Shop::open();
    let (fulfil, _) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let sleeps = "def main(ctx, input):\n    ctx.sleep('2d')\n";
    let (sleeps, _) = shop.register(true, "sleeps", "Sleeps", sleeps).await;
    let calls = format!("def main(ctx, input):\n    return ctx.invoke('{fulfil}', {{'order_id': 'of the child'}})\n");
    let (calls, _) = shop.register(true, "calls", "Calls another", &calls).await;
    let mut browser = Browser::start();
    for (address, texts) in [
        (&fulfil, vec!["Waits for the signal approval"]),
        // Rounded to what it is, and the time itself, by the browser's clock.
        (&sleeps, vec!["ends in 2 d (20"]),
        (&calls, vec!["Waits for the run of", "inv_"]),
    ] {
        let id = shop.start(address, "async", json!({"order_id": "o-1"})).await;
        shop.until(&id, "suspended").await;
        browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('.action-needed')");
        for text in texts {
            sees(&mut browser, ".action-needed", text);
        }
    }
    // The run that is waited for is a link away.
    browser.click(".action-needed a");
    sees(&mut browser, ".page-head", "shop.app.fulfil");
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_have_a_zone_and_can_be_utc() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    shop.until(&id, "suspended").await;
    let mut browser = Browser::start();
    browser.call("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Tokyo"}));
    let page = shop.page(&format!("invocations/{id}?tab=Events"));
    browser.open(&page, "document.querySelector('table.events tbody tr')");
    let of = |zone: &str| {
        format!(
            "document.querySelector('main time').title.endsWith({0}) && \
             document.querySelector('table.events').innerText.includes({0}) && \
             document.querySelector('#zone').innerText.includes({0})",
            json!(zone)
        )
    };
    browser.until(&of("+09:00"));
    let time = "document.querySelector('main time')";
    let told = browser.eval(&format!("{time}.title")).as_str().expect("text").to_owned();
    let meant = browser.eval(&format!(
        "new Date(new Date({time}.dateTime).getTime() + 9 * 3600e3).toISOString().replace('T', ' ').replace('Z', ' +09:00')"
    ));
    assert_eq!(json!(told), meant);
    browser.click("#zone");
    browser.until(&of("UTC"));
    let meant = browser.eval(&format!("{time}.dateTime.replace('T', ' ').replace('Z', ' UTC')"));
    assert_eq!(browser.eval(&format!("{time}.title")), meant);
    // It is kept, and is on every page.
    browser.open(&page, &of("UTC"));
    browser.click("#zone");
    browser.until(&of("+09:00"));
    browser.is_content();
}

/// A page of a server that is gone does not say that it is live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_is_grey_when_the_server_does_not_answer() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    let mut browsers = [Browser::start(), Browser::start()];
    for (browser, page) in browsers.iter_mut().zip([format!("invocations/{id}"), "invocations".to_owned()]) {
        browser.open(&shop.page(&page), "document.querySelector('.live.on')?.innerText === 'live'");
    }
    let is_grey = |browser: &mut Browser| {
        sees(browser, ".live", "last seen");
        assert_eq!(browser.eval("document.querySelector('.live').classList.contains('on')"), json!(false));
        sees(browser, ".banner.bad", "does not answer");
    };
    // One that takes connections and says nothing is no better than one that is gone.
    shop.servo.signal("STOP");
    browsers.iter_mut().for_each(is_grey);
    shop.servo.signal("CONT");
    for browser in &mut browsers {
        browser.until("document.querySelector('.live.on')?.innerText === 'live' && !document.querySelector('.banner')");
    }
    let Shop { servo, .. } = shop;
    servo.kill();
    browsers.iter_mut().for_each(is_grey);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_asks_in_words_that_mean_one_thing() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let id = shop.start(&address, "async", json!({"order_id": "o-1"})).await;
    shop.until(&id, "suspended").await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('#do-cancel')");
    let answers = "[...document.querySelectorAll('dialog .dialog-actions button')].map((button) => button.innerText)";
    browser.click("#do-cancel");
    browser.until("document.querySelector('dialog')");
    assert_eq!(browser.eval(answers), json!(["Keep running", "Cancel run"]));
    browser.click("dialog .dialog-actions button:first-child");
    browser.until("!document.querySelector('dialog')");
    sees(&mut browser, ".page-head", "suspended");
    browser.click("#do-cancel");
    browser.click("dialog .danger");
    sees(&mut browser, ".page-head", "canceled");
    browser.is_content();
}

/// A run that was retried took two times: its last round, and all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retried_run_tells_its_round_and_its_whole_time() {
    let shop = Shop::open();
    let source = "def main(ctx, input):\n    ctx.step('first', lambda: 1)\n    ctx.fail('the shop is closed')\n";
    let (address, _) = shop.register(true, "closed", "Closed", source).await;
    let id = shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('#do-retry')");
    browser.click("#do-retry");
    browser.until("document.querySelector('#took')");
    sees(&mut browser, "#took", "round 2");
    sees(&mut browser, "#took", "the whole run");
    browser.is_content();
}
