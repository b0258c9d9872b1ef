//! The programs of `docs/guides/starlark.md`: checked, and run where the page says what comes out. A server takes an object or
//! null as the result of an entrypoint, so each of them returns one.

use serde_json::Value;

use crate::execution::Execution;
use crate::support::World;

const PAGE: &str = include_str!("../../../../docs/guides/starlark.md");
/// More time than any program of the page waits.
const DAYS: i64 = 3 * 86_400;

/// The text of a fenced block and what follows it.
fn block<'a>(page: &'a str, language: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = page.split_once(&format!("```{language}\n"))?;
    rest.split_once("```\n")
}

#[tokio::test]
async fn the_programs_of_the_guide_run_as_it_says() {
    let mut page = PAGE;
    let mut programs = 0;
    while let Some((source, rest)) = block(page, "starlark") {
        page = rest;
        programs += 1;
        let world = World::new();
        assert_eq!(world.starlark.check(source).await, Ok(()), "{source}");
        let (example, _) = block(rest, "json").unwrap();
        let example: Value = serde_json::from_str(example).unwrap();
        let input = example["input"].to_string();
        let output = if example["workflow"] == true {
            let execution = Execution::new(&world, source, &input);
            let mut output = execution.invoke(&world).await;
            while output.result.is_none() && output.error.is_none() {
                execution.advance(DAYS);
                output = execution.invoke(&world).await;
            }
            serde_json::from_str(&output.result.unwrap()).unwrap()
        } else {
            world.result(source, &input).await
        };
        assert_eq!(output, example["output"], "{source}");
        assert!(output.is_object() || output.is_null(), "an entrypoint has no other result: {source}");
    }
    assert_eq!(programs, 5);
}
