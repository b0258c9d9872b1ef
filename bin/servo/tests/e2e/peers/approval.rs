//! A person answers a callback of AWS's SDK in the console.

use serde_json::json;

use super::handlers::Pushed;
use crate::support::browser::Browser;

/// An execution of a function is in the console like any other run, and a callback is answered there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_is_approved_in_the_console() {
    let pushed = Pushed::start().await;
    let tell = pushed.folder.path().join("tell");
    let arn = pushed.service.start("approval", &json!({"tell": tell, "timeout": 3_600})).await;
    let run = arn.rsplit('/').next().expect("an id");
    let mut browser = Browser::start();
    browser.open(&format!("{}/console/runs/{run}", pushed.service.api), "document.querySelector('#approve')");
    browser.picture("callback-light-1280");
    browser.click("#approve");
    browser.fill("#ask-result", r#"{"approved": "by ada"}"#);
    browser.click("dialog .primary");
    browser.until("document.querySelector('.page-head').innerText.includes('succeeded')");
    browser.click("#tab-Output");
    browser.until("document.querySelector('.tab-body').innerText.includes('by ada')");
    browser.is_content();
}
