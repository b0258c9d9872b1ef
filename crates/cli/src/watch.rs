//! Showing an answer once, or again and again until it is final or somebody has seen enough.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::time::Duration;

use servo_client::{Answer, Error};
use tokio::time::MissedTickBehavior;

use crate::args::{Format, WatchArgs};
use crate::failure::{Failure, exit};
use crate::output::{Out, height, json};
use crate::run::{Session, interruptible};
use crate::view::View;

const EVERY: Duration = Duration::from_secs(2);
/// Failed looks in a row before giving up: a server that is being restarted is no reason to end.
const FAILURES_MAX: u32 = 30;

impl Session {
    /// Prints an answer. With `--watch`, goes on with what it becomes.
    pub(crate) async fn show<T: View>(
        &self,
        watch: &WatchArgs,
        fetch: impl AsyncFn() -> Result<Answer<T>, Error>,
    ) -> Result<u8, Failure> {
        interruptible(async {
            if watch.watch {
                return again_and_again(&self.out, watch.every.unwrap_or(EVERY), fetch).await;
            }
            let answer = fetch().await?;
            self.out.data(&*answer, answer.raw())?;
            if let Some(option) = answer.more() {
                self.out.note(&format!("there are more: {option}"));
            }
            Ok(exit::OK)
        })
        .await
    }
}

async fn again_and_again<T: View>(
    out: &Out,
    every: Duration,
    fetch: impl AsyncFn() -> Result<Answer<T>, Error>,
) -> Result<u8, Failure> {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_drawn = out.format() == Format::Table && io::stdout().is_terminal();
    let mut stream = Stream::default();
    let mut failures = None;
    loop {
        ticks.tick().await;
        match fetch().await {
            Ok(answer) => {
                let text = if is_drawn {
                    // Home, then only what is below is cleared: nothing flickers, and what scrolled away stays.
                    let table = height::fit(&answer.table(&out.line_style()), height::of_stdout());
                    format!("\x1b[H\x1b[J{}\n{table}", title(every))
                } else {
                    stream.news(out.format(), &*answer, answer.raw())?
                };
                out.text(&text)?;
                if answer.is_final() {
                    return Ok(exit::OK);
                }
                failures = Some(0);
            }
            // The first look must succeed: a wrong address shows at once.
            Err(error) if failures.is_some_and(|count| count < FAILURES_MAX) && error.is_transient() => {
                out.note(&format!("{error}; looking again"));
                failures = failures.map(|count| count + 1);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn title(every: Duration) -> String {
    format!("every {}, Ctrl-C ends", crate::output::style::took(every))
}

/// What was printed of the last look, so that only news is printed.
#[derive(Debug, Default)]
struct Stream {
    seen: BTreeSet<String>,
}

impl Stream {
    /// Items that the last look did not have in this form.
    fn news<T: View>(&mut self, format: Format, value: &T, raw: &str) -> Result<String, Failure> {
        let lines: Vec<String> = match (format, T::ITEMS) {
            (Format::Ids, _) => value.ids(),
            (_, Some(field)) => json::items(raw, field)?.iter().map(|item| json::compact(item.get())).collect(),
            (_, None) => vec![json::compact(raw)],
        };
        let news = lines.iter().filter(|line| !self.seen.contains(*line)).map(|line| format!("{line}\n")).collect();
        self.seen = lines.into_iter().collect();
        Ok(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Style;

    struct Names(&'static [&'static str]);

    impl View for Names {
        const ITEMS: Option<&'static str> = Some("items");

        fn table(&self, _: &Style) -> String {
            String::new()
        }

        fn ids(&self) -> Vec<String> {
            self.0.iter().map(|name| (*name).to_owned()).collect()
        }
    }

    #[test]
    fn only_news_is_printed() {
        let mut stream = Stream::default();
        let mut look = |raw: &str| stream.news(Format::Table, &Names(&[]), raw).unwrap();
        assert_eq!(look(r#"{"items":[{"a": 1},{"b":1}]}"#), "{\"a\":1}\n{\"b\":1}\n");
        assert_eq!(look(r#"{"items":[{"a":1},{"b":1}]}"#), "");
        assert_eq!(look(r#"{"items":[{"a":1},{"b":2},{"c":1}]}"#), "{\"b\":2}\n{\"c\":1}\n");
        assert_eq!(look(r#"{"items":[{"b":1}]}"#), "{\"b\":1}\n", "what it was before is news again");

        let mut stream = Stream::default();
        assert_eq!(stream.news(Format::Ids, &Names(&["x"]), "{}").unwrap(), "x\n");
        assert_eq!(stream.news(Format::Ids, &Names(&["y", "x"]), "{}").unwrap(), "y\n");
    }
}
