//! A row of the requirement ledger is named by a test or listed in `docs/ledger-open.md`, never both: a row that is half
//! there is open, and a name on a test would count it as done.

use std::collections::BTreeSet;

use super::File;

const OPEN: &str = "docs/ledger-open.md";
const LEDGERS: [&str; 5] = ["SR-", "SV-", "ES-", "DX-", "RT-"];
const DIGITS: usize = 3;

pub(super) fn check(files: &[File]) -> Vec<String> {
    let open: BTreeSet<&str> =
        files.iter().filter(|file| file.path == OPEN).flat_map(|file| rows(&file.text)).collect();
    let code = files.iter().filter(|file| !file.path.starts_with("docs/") && !file.path.starts_with("xtask/"));
    let mut problems = Vec::new();
    for file in code.filter(|file| is_test(file)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for row in rows(line).into_iter().filter(|row| open.contains(row)) {
                problems.push(format!("{}:{number}: {row} is named here and open in {OPEN}", file.path));
            }
        }
    }
    problems
}

fn is_test(file: &File) -> bool {
    let path = format!("/{}", file.path);
    path.contains("/tests/") || file.text.contains("#[cfg(test)]") || file.text.contains("::test]")
}

/// Ids such as `SR-149`, with nothing of a longer word around them.
fn rows(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('-') {
        let Some(start) = at.checked_sub(2) else { continue };
        let end = at + 1 + DIGITS;
        let Some(row) = text.get(start..end) else { continue };
        let number = row.bytes().skip(DIGITS).all(|byte| byte.is_ascii_digit());
        let apart = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        if LEDGERS.iter().any(|ledger| row.starts_with(ledger))
            && number
            && apart(before)
            && apart(text.as_bytes().get(end))
        {
            found.push(row);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_row_is_named_or_open() {
        let row = |ledger: &str, number: u32| format!("{ledger}-{number}");
        let open = file(OPEN, &format!("| {}, {} | waits |", row("SR", 233), row("ES", 105)));
        let named = file("crates/x/tests/it/a.rs", &format!("/// {}, {}: text", row("SR", 233), row("SR", 151)));
        let beside = file("crates/x/src/a.rs", &format!("// {} is not a test's", row("ES", 105)));
        let other = file("crates/x/tests/it/b.rs", &format!("/// X{}, {}4", row("SR", 233), row("SR", 233)));
        let problems = check(&[open, named, beside, other]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("crates/x/tests/it/a.rs:1: SR-233"), "{problems:?}");
    }
}
