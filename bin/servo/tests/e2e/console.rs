//! The console in a real Chromium, over the real binary: what a person does, by mouse and by keyboard.

mod access;
mod address;
mod gaps;
mod journeys;
mod long;
mod many;
mod pages;
mod phone;
mod seed;
mod told;

use serde_json::json;

use crate::support::browser::Browser;

/// Waits until a text is somewhere in the part of the page that an element holds.
fn sees(browser: &mut Browser, selector: &str, text: &str) {
    browser.until(&format!("document.querySelector({})?.innerText.includes({})", json!(selector), json!(text)));
}
