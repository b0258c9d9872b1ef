//! Every page, light and dark, wide and narrow: it loads without much work, complains about nothing, and can be read.

use serde_json::json;

use super::seed::{FULFIL, MARKUP, Shop};
use crate::support::browser::Browser;

/// Of the page's processor time.
const MILLIS_MAX: f64 = 2_000.0;
/// What cannot be read or pressed on a page; an expression.
const UNREADABLE: &str = include_str!("readable.js");
/// Something of the page's own is there.
const LOADED: &str = "document.querySelector('main .card, main .tiles') && !document.querySelector('main .tiles:empty') && document.title";

struct Seeded {
    shop: Shop,
    entrypoint: String,
    waits: String,
    failed: String,
}

async fn seeded() -> Seeded {
    let shop = Shop::open();
    let (address, entrypoint) = shop.register(true, "fulfil", "Fulfil an order", FULFIL).await;
    let (fails, _) =
        shop.register(false, "fails", MARKUP, "def main(ctx, input):\n    ctx.fail('no ' + input.order_id)\n").await;
    let waits = shop.start(&address, "async", json!({"order_id": MARKUP})).await;
    shop.until(&waits, "suspended").await;
    let failed = shop.start(&fails, "sync", json!({"order_id": MARKUP})).await;
    crate::support::api::finished_run(&shop.servo.url, "sample").await;
    shop.publish("orders").await;
    Seeded { shop, entrypoint, waits, failed }
}

/// Charts begin with what the server saw before anybody looked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_knows_what_was_before_it_was_opened() {
    let shop = Shop::with(&[("SERVO__SERVER__SERIES_EVERY_MS", "100")]);
    let (address, _) = shop.register(false, "quick", "Quick", "def main(ctx, input):\n    return input\n").await;
    shop.start_many(&address, 30).await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let points = crate::support::until("a few points with all of them", async || {
        let series: serde_json::Value =
            client.get(format!("{}/v1/series", shop.servo.url)).send().await.ok()?.json().await.ok()?;
        let points = series["points"].as_array()?;
        let full = points.iter().filter(|point| point["counts"]["succeeded"] == 30).count();
        (full >= 5).then_some(points.len())
    })
    .await;
    let mut browser = Browser::start();
    // So many points are there with the first look of this page, which itself looks every five seconds.
    let drawn = "document.querySelector('.chart path.line')?.getAttribute('d').split('L').length";
    browser.open(&shop.page(""), &format!("{drawn} + 1 >= {points}"));
    // By itself it could not have so many by now.
    let age = browser.eval("performance.now()").as_f64().expect("a number");
    assert!(age < 5_000.0 * (points - 1) as f64, "{points} points after {age} ms");
    browser.picture("history-light-1280");
    browser.is_content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_loads_without_much_work_or_complaint() {
    let Seeded { shop, entrypoint, waits, failed } = seeded().await;
    let mut browser = Browser::start();
    let pages = [
        ("overview", String::new()),
        ("invocations", "invocations".to_owned()),
        ("filtered", "invocations?status=failed,suspended&since=1h".to_owned()),
        ("waiting-run", format!("invocations/{waits}")),
        ("failed-run", format!("invocations/{failed}")),
        ("runs", "runs".to_owned()),
        ("failures", "failures".to_owned()),
        ("waiting", "waiting".to_owned()),
        ("entrypoints", "entrypoints".to_owned()),
        ("entrypoint", format!("entrypoints/{entrypoint}")),
        ("functions", "functions".to_owned()),
        ("function", "functions/orders".to_owned()),
        ("alerts", "alerts".to_owned()),
        ("audit", "audit".to_owned()),
    ];
    for (scheme, width) in [("light", 1280), ("dark", 800), ("light", 390), ("dark", 1280)] {
        browser.prefer(scheme);
        browser.size(width, 860);
        for (name, path) in &pages {
            let worked = browser.open(&shop.page(path), LOADED);
            assert!(worked < MILLIS_MAX, "{name} worked for {worked} ms");
            assert_eq!(browser.eval("document.documentElement.dataset.theme"), *scheme, "{name}");
            let beyond = browser.eval("document.documentElement.scrollWidth - innerWidth").as_f64();
            assert!(beyond.is_some_and(|pixels| pixels <= 0.0), "{name} is {beyond:?} pixels too wide at {width}");
            assert_eq!(browser.eval(UNREADABLE), json!([]), "{name} in {scheme} at {width}");
            browser.picture(&format!("{name}-{scheme}-{width}"));
        }
    }
    browser.is_content();
}

/// Groups of a part of the failures say of how many they are, and how to have more of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_failures_say_what_they_leave_out() {
    let shop = Shop::open();
    let (fails, _) =
        shop.register(false, "fails", "Fails", "def main(ctx, input):\n    ctx.fail('no ' + input.order_id)\n").await;
    for number in 0..3 {
        shop.start(&fails, "sync", json!({"order_id": format!("o-{number}")})).await;
    }
    let mut browser = Browser::start();
    browser.open(&shop.page("failures?read=2"), "document.querySelector('#extent')");
    let told = browser.eval("document.querySelector('#extent').innerText");
    assert!(
        told.as_str().is_some_and(|text| text.starts_with("Only the newest 2 of 3 failures are grouped")),
        "{told}"
    );
    browser.eval("document.querySelector('#extent a').click()");
    browser.open(&shop.page("failures?read=10"), "document.querySelector('main table')");
    assert_eq!(browser.eval("document.querySelector('#extent')"), json!(null));
    browser.is_content();
}

/// What a tenant wrote is text wherever it is shown: titles, params, errors, results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tenant_wrote_is_text() {
    let Seeded { shop, waits, failed, .. } = seeded().await;
    let mut browser = Browser::start();
    for path in [
        format!("invocations/{waits}"),
        format!("invocations/{failed}"),
        "entrypoints".to_owned(),
        "failures".to_owned(),
    ] {
        browser.open(&shop.page(&path), "document.querySelector('main').innerText.includes('<img src=x')");
        let harm = browser.eval("[window.broken ?? 0, document.querySelectorAll('main img, main script').length]");
        assert_eq!(harm, json!([0, 0]), "{path}");
    }
    // The control: the page's policy is what would stop it, if something ever took text for markup.
    let refused =
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'written'; } catch { return 'refused'; } })()";
    assert_eq!(browser.eval(refused), "refused");
}
