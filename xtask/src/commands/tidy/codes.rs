//! Every error code that a user can meet has a page that explains it, and no page outlives its code.

use std::collections::BTreeSet;

use super::File;

const TABLE: &str = "crates/model/src/codes.rs";
const PAGES: &str = "docs/errors/";

pub(super) fn check(files: &[File]) -> Vec<String> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else { return Vec::new() };
    let codes = codes_in(&table.text);
    if codes.is_empty() {
        // Otherwise a new spelling of the table would switch this check off unseen.
        return vec![format!("{TABLE}: no `codes! {{ NAME, status, \"title\"; … }}` table found")];
    }
    let pages: BTreeSet<&str> = files.iter().filter_map(|file| page_code(&file.path)).collect();
    let missing = codes.difference(&pages).map(|code| format!("{PAGES}{code}.md: missing, the code is in {TABLE}"));
    let stale = pages.difference(&codes).map(|code| format!("{PAGES}{code}.md: {TABLE} has no such code"));
    missing.chain(stale).collect()
}

/// The first word of each row between `codes! {` and the closing brace.
fn codes_in(table: &str) -> BTreeSet<&str> {
    let rows = table.lines().skip_while(|line| line.trim() != "codes! {").skip(1).take_while(|line| line.trim() != "}");
    let names = rows.filter_map(|row| row.split_once(',')).map(|(name, _)| name.trim());
    names.filter(|name| is_code(name)).collect()
}

/// Pages in capitals are codes; others (an index) are not.
fn page_code(path: &str) -> Option<&str> {
    path.strip_prefix(PAGES)?.strip_suffix(".md").filter(|name| is_code(name) && *name != "README")
}

fn is_code(name: &str) -> bool {
    let allowed = |character: char| character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_';
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.chars().all(allowed)
}
