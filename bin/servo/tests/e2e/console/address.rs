//! What was chosen is in the address: it can be sent to somebody, loaded again, and undone by the browser's own button.

use serde_json::json;

use super::seed::Shop;
use super::sees;
use crate::support::browser::Browser;

const TWO_STEPS: &str = r#"
def main(ctx, input):
    ctx.log("looking for " + input.order_id)
    ctx.step("look", lambda: 1)
    ctx.step("pick", lambda: pick(ctx))

def pick(ctx):
    ctx.fail("no stock")
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_and_a_tab_are_in_the_address() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "picks", "Picks", TWO_STEPS).await;
    let id = shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let mut browser = Browser::start();
    let page = shop.page(&format!("invocations/{id}"));
    browser.open(&page, "document.querySelectorAll('.wf-open').length === 2");
    browser.eval("window.sameDocument = true");
    let chosen = "document.querySelector('.wf-open[aria-pressed=true]')?.innerText";
    browser.click(".wf-window .wf-row:first-child .wf-open");
    browser.until(&format!("location.search.includes('step=') && {chosen}.includes('look')"));
    browser.click("#tab-Log");
    browser.until("location.search.includes('tab=Log')");
    sees(&mut browser, ".tab-body", "looking for o-1");
    browser.click("#failed-step");
    browser.until(&format!("{chosen}.includes('pick')"));
    sees(&mut browser, ".op-detail", "no stock");
    let here = browser.eval("location.href").as_str().expect("an address").to_owned();
    // Back, step by step; the page stays the same.
    browser.eval("history.back()");
    browser.until(&format!("{chosen}.includes('look') && location.search.includes('tab=Log')"));
    browser.eval("history.back()");
    browser.until("!location.search.includes('tab=') && !document.querySelector('#tab-Log[aria-selected=true]')");
    browser.eval("history.back()");
    browser.until(&format!("location.search === '' && !{chosen} && !document.querySelector('.op-detail')"));
    browser.eval("history.forward()");
    browser.until(&format!("{chosen}.includes('look')"));
    assert_eq!(browser.eval("window.sameDocument"), json!(true), "the page was loaded again");
    // The same from nothing but the address.
    browser.open(&here, "document.querySelector('#tab-Log[aria-selected=true]')");
    browser.until(&format!("{chosen}.includes('pick')"));
    sees(&mut browser, ".op-detail", "no stock");
    sees(&mut browser, ".tab-body", "looking for o-1");
    // An address that names what is not there shows the run all the same.
    browser.open(&format!("{page}?step=gone&tab=Nothing&round=9&show=x"), "document.querySelector('.wf-open')");
    sees(&mut browser, ".summary-error", "no stock");
    browser.is_content();
}

/// From the calls that led to an error to the lines of the code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_leads_to_its_line() {
    let shop = Shop::open();
    let (address, _) = shop.register(true, "picks", "Picks", TWO_STEPS).await;
    let id = shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let mut browser = Browser::start();
    browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelector('.summary-error .stack-trace')");
    sees(&mut browser, ".summary-error .stack-trace", "shop.app.picks 1.0.0, line 8, column 5, in pick");
    let all = browser.eval("document.body.innerText");
    assert!(!all.as_str().expect("text").contains("main.star"), "{all}");
    browser.click(".summary-error .stack-trace div:last-child a");
    browser.until("location.pathname.includes('/entrypoints/ep_')");
    browser.until("document.querySelector('.code .asked')?.innerText.includes('no stock')");
    let seen = browser.eval(
        "(() => { const r = document.querySelector('.code .asked').getBoundingClientRect(); \
         return r.top >= 0 && r.bottom <= innerHeight; })()",
    );
    assert_eq!(seen, json!(true));
    browser.is_content();
}

/// Two failures of one entrypoint are two groups, and each leads to its own runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_failures_leads_to_its_runs_alone() {
    let shop = Shop::open();
    let (fails, _) = shop
        .register(false, "fails", "Fails", "def main(ctx, input):\n    ctx.fail('order ' + input.order_id)\n")
        .await;
    for order in ["x", "y", "y", "z", "z", "z"] {
        shop.start(&fails, "sync", json!({"order_id": order})).await;
    }
    let mut browser = Browser::start();
    let row = |text: &str| {
        format!(
            "[...document.querySelectorAll('main tbody tr')].find((row) => row.innerText.includes({}))",
            json!(text)
        )
    };
    for (text, count) in [("order y", 2), ("order z", 3)] {
        browser.open(&shop.page("failures"), &row(text));
        browser.eval(&format!("({}).id = 'the-group'", row(text)));
        browser.click("#the-group");
        let rows = "[...document.querySelectorAll('main tbody tr')]";
        browser.until(&format!("location.pathname.endsWith('/invocations') && {rows}.length === {count}"));
        assert_eq!(
            browser.eval(&format!("{rows}.every((row) => row.innerText.includes({}))", json!(text))),
            json!(true)
        );
        let here = browser.eval("location.href").as_str().expect("an address").to_owned();
        assert!(!here.contains("order"), "what a tenant wrote is in the address: {here}");
        browser.open(&here, &format!("{rows}.length === {count}"));
        // Without the condition there are the others, too.
        browser.click("#filter-failure");
        browser.until(&format!("{rows}.length === 6"));
    }
    browser.is_content();
}
