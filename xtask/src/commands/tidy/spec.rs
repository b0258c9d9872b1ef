//! Published schemas are files that other programs read: valid JSON that ends in a newline.

use serde_json::Value;

use super::File;

pub(super) fn check(file: &File) -> Vec<String> {
    if !file.path.starts_with("spec/events/") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if !file.text.ends_with('\n') {
        problems.push(format!("{}: no newline at the end", file.path));
    }
    if file.path.ends_with(".json")
        && let Err(error) = serde_json::from_str::<Value>(&file.text)
    {
        problems.push(format!("{}: not valid JSON: {error}", file.path));
    }
    problems
}
