//! On a telephone: lists that tell one run from another, a navigation with words, and nothing beside the screen.

use serde_json::json;

use super::seed::Shop;
use super::sees;
use crate::support::browser::Browser;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_tells_runs_apart_on_a_telephone() {
    let shop = Shop::open();
    let source = "def main(ctx, input):\n    ctx.fail('no stock for order ' + input.order_id)\n";
    for name in ["warehouse.orders.picking.express", "warehouse.orders.picking.ordinary"] {
        let (address, _) = shop.register(false, name, "Picks", source).await;
        shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    }
    let mut browser = Browser::start();
    browser.size(390, 844);
    browser.open(&shop.page("invocations"), "document.querySelectorAll('main tbody tr').length === 2");
    // All that tells one from another is on the screen, whole.
    let cut = browser.eval(
        "[...document.querySelectorAll('main tbody td')].filter((cell) => cell.innerText.trim()).flatMap((cell) => \
         { const r = cell.getBoundingClientRect(); \
         return r.left < 0 || r.right > innerWidth || cell.scrollWidth > cell.clientWidth + 1 ? [cell.innerText] : []; })",
    );
    assert_eq!(cut, json!([]));
    let row = browser.eval("document.querySelector('main tbody tr').innerText").as_str().expect("text").to_owned();
    for part in ["shop.app.warehouse.orders.picking.ordinary", "failed", "no stock for order o-1"] {
        assert!(row.contains(part), "{row}");
    }
    // A number alone would not say what it is.
    let words = "[...document.querySelectorAll('main tbody tr:first-child td.num')].map((cell) => getComputedStyle(cell, '::before').content)";
    assert_eq!(browser.eval(words), json!(["\"Took \"", "\"Started \""]));
    browser.picture("invocations-light-390");
    // The navigation has words, comes when it is asked for, and goes when it was used.
    let words = "[...document.querySelectorAll('.side nav a')].filter((link) => link.checkVisibility({visibilityProperty: true})).map((link) => link.innerText.trim())";
    assert_eq!(browser.eval(words), json!([]));
    browser.click("#menu");
    browser.until(&format!("{words}.some((word) => word.startsWith('Failures'))"));
    browser.picture("navigation-light-390");
    let small = browser.eval(
        "[...document.querySelectorAll('.side nav a')].filter((link) => link.getBoundingClientRect().height < 44).length",
    );
    assert_eq!(small, json!(0));
    browser.press("Escape");
    browser.until(&format!("{words}.length === 0 && document.activeElement.id === 'menu'"));
    browser.click("#menu");
    browser.click(".side nav a[data-place=failures]");
    browser.until(&format!("location.pathname.endsWith('/failures') && {words}.length === 0"));
    sees(&mut browser, "main tbody", "no stock for order");
    browser.is_content();
}

/// As many ticks as have room: none touches the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticks_of_the_axis_keep_apart() {
    let shop = Shop::open();
    let source =
        "def main(ctx, input):\n    for number in range(5):\n        ctx.step('step %d' % number, lambda: 1)\n";
    let (address, _) = shop.register(true, "steps", "Steps", source).await;
    let id = shop.start(&address, "sync", json!({"order_id": "o-1"})).await;
    let mut browser = Browser::start();
    for width in [390, 800, 1280] {
        browser.size(width, 844);
        browser.open(&shop.page(&format!("invocations/{id}")), "document.querySelectorAll('.wf-tick').length > 1");
        let touching = browser.eval(
            "(() => { const all = [...document.querySelectorAll('.wf-tick')].map((tick) => tick.getBoundingClientRect()); \
             return all.slice(1).filter((box, at) => box.left < all[at].right + 2).length; })()",
        );
        assert_eq!(touching, json!(0), "at {width}");
        browser.picture(&format!("run-light-{width}"));
    }
    browser.is_content();
}
