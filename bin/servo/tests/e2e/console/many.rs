//! Ten thousand invocations: filtered, counted, paged, and none of it much work for the page.

use serde_json::json;

use super::seed::Shop;
use super::sees;
use crate::support::browser::Browser;

const MANY: usize = 10_000;
/// Of the page's processor time.
const MILLIS_MAX: f64 = 2_000.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_are_filtered_and_paged_through() {
    let shop = Shop::open();
    let (address, _) = shop.register(false, "quick", "Quick", "def main(ctx, input):\n    return input\n").await;
    let (fails, _) = shop.register(false, "fails", "Fails", "def main(ctx, input):\n    ctx.fail('no')\n").await;
    for _ in 0..7 {
        shop.start(&fails, "sync", json!({"order_id": "o-1"})).await;
    }
    shop.start_many(&address, MANY).await;
    let mut browser = Browser::start();
    let rows = "document.querySelectorAll('main tbody tr').length";
    let worked = browser.open(&shop.page("invocations"), &format!("{rows} === 50"));
    assert!(worked < MILLIS_MAX, "{worked} ms");
    browser.until("[...document.querySelectorAll('.chip .n')].some((n) => n.innerText.includes('k'))");
    // Page after page, each one other than the last, and none much work.
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let ids = browser.eval("[...document.querySelectorAll('main tbody tr')].map((row) => row.dataset.row)");
        let ids: Vec<String> = ids.as_array().expect("a list").iter().map(ToString::to_string).collect();
        let before = seen.len();
        seen.extend(ids.iter().cloned());
        assert_eq!(seen.len(), before + 50, "a page repeats rows");
        let other = format!(
            "{rows} === 50 && document.querySelector('main tbody tr').dataset.row !== JSON.parse({})",
            json!(ids[0])
        );
        let worked = browser.click_until("#older", &other);
        assert!(worked < MILLIS_MAX, "{worked} ms");
    }
    // The filter is in the address, so the same view opens from a link.
    let worked = browser.open(&shop.page("invocations?status=failed"), &format!("{rows} === 7"));
    assert!(worked < MILLIS_MAX, "{worked} ms");
    browser.click("#chip-failed");
    browser.until(&format!("!location.search.includes('failed') && {rows} === 50"));
    sees(&mut browser, "main tbody", "shop.app.quick");
    browser.picture("many-light-1280");
    browser.is_content();
}
