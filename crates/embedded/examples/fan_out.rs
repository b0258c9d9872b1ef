//! Many at a time: a map over items, a few of them at once, where a failed item does not fail the rest.
//!
//! `cargo run -p servo-embedded --example fan_out`
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use serde::{Deserialize, Serialize};
use servo_embedded::{Error, Servo};
use servo_sdk::{CompletionConfig, DurableContext, DurableError, MapConfig, StepConfig};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) words: usize,
    pub(crate) unreadable: usize,
}

pub(crate) async fn count_words(pages: Vec<String>, ctx: DurableContext) -> Result<Report, DurableError> {
    let half = CompletionConfig { tolerated_failure_percentage: Some(50.0), ..CompletionConfig::default() };
    let config = MapConfig::named("pages").max_concurrency(4).completion(half);
    let count = async |page_ctx: DurableContext, page: String, index: usize| {
        let config = StepConfig::named(format!("count {index}")).no_retry();
        let body = move |_| if page.is_empty() { Err("an empty page".into()) } else { Ok(page.split(' ').count()) };
        let words: usize = page_ctx.step(body, config).await?;
        Ok(words)
    };
    let counted = ctx.map(pages, count, config).await?;
    let words = counted.succeeded().into_iter().filter_map(|item| item.result.as_ref()).sum();
    Ok(Report { words, unreadable: counted.failure_count() })
}

pub(crate) fn pages() -> Vec<String> {
    ["it was the best of times", "", "it was the worst of times", "it was the age of wisdom"].map(str::to_owned).into()
}

pub(crate) async fn demo() -> Result<Report, Error> {
    let servo = Servo::builder().in_memory().function("count", count_words).start().await?;
    let report = servo.call("count", &pages()).await?;
    servo.shutdown().await;
    Ok(report)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    println!("{:?}", demo().await?);
    Ok(())
}
