//! Rules for Rust files: a header that says what the file is, a size that fits one concept, nothing left undone, and tests
//! that neither sleep nor hide.

use super::File;

/// Past this a file holds two concepts. The wish is 400; this is where it stops being a matter of taste.
const LINES_MAX: usize = 700;

/// Nowhere in the workspace.
const UNFINISHED: [&str; 2] = ["todo!(", "unimplemented!("];
/// Nowhere in test code: a hidden test proves nothing, a sleeping one is slow on fast machines and wrong on slow ones.
const BAD_IN_TESTS: [(&str, &str); 3] = [
    ("#[ignore", "a test either runs or is deleted"),
    ("thread::sleep(", "wait for a condition instead"),
    ("time::sleep(", "wait for a condition, or advance the clock"),
];

pub(super) fn check(file: &File) -> Vec<String> {
    let path = file.path.as_str();
    // These rules name what they forbid.
    if !path.ends_with(".rs") || path.starts_with("xtask/src/commands/tidy/") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if is_product(path) && !file.text.starts_with("//!") {
        problems.push(format!("{path}:1: starts without `//!` saying what the file is"));
    }
    let lines = file.text.lines().count();
    if is_product(path) && path.contains("/src/") && lines > LINES_MAX {
        problems.push(format!("{path}: {lines} lines, at most {LINES_MAX}: split it by concept"));
    }
    let mut in_tests = is_test_file(path);
    for (index, line) in file.text.lines().enumerate() {
        let number = index + 1;
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
            problems.push(format!("{path}:{number}: `{word}` is unfinished work"));
        }
        for (word, reason) in BAD_IN_TESTS.iter().filter(|(word, _)| in_tests && line.contains(word)) {
            problems.push(format!("{path}:{number}: `{word}` in a test: {reason}"));
        }
    }
    problems
}

fn is_product(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("bin/")
}

/// By convention unit tests stand at the end of a file or in `tests.rs`, integration tests under `tests/`.
fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}
