//! Words that have no business in the project: paths of somebody's machine, and traces of how a text was made.

use super::File;

/// Lower case; compared without regard to case, and only where the word does not continue another one.
const BANNED: [(&str, &str); 7] = [
    ("/work/", "a path of one machine"),
    ("/root/", "a path of one machine"),
    ("/home/", "a path of one machine"),
    ("/users/", "a path of one machine"),
    ("as an ai", "the text speaks of its author"),
    ("prompt:", "the text speaks of how it was made"),
    ("<<<<<<<", "an unresolved merge"),
];

pub(super) fn check(file: &File) -> Vec<String> {
    // This file lists the words, its tests use them, and lock files are not ours to word.
    if file.path.starts_with("xtask/src/commands/tidy/") || file.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (word, reason) in BANNED.iter().filter(|(word, _)| stands_alone(&lower, word)) {
            problems.push(format!("{}:{}: {word:?}: {reason}", file.path, index + 1));
        }
    }
    problems
}

/// `/work/` is found in `cd /work/x` but not in `src/work/x`, `as an ai` not in `as an aim`.
fn stands_alone(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !before.is_some_and(continues_word);
        let ends = !word.ends_with(char::is_alphanumeric) || !after.is_some_and(char::is_alphanumeric);
        starts && ends
    })
}

fn continues_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '}' | '*')
}
