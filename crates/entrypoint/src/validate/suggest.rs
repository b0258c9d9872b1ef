//! The word that somebody probably meant.

/// The nearest of some words, if it is near enough to be a misspelling.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are no misspelt words, and the distance costs their product.
    if word.chars().count() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    words
        .into_iter()
        .filter(|candidate| candidate.chars().count() <= 64)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out or changed.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_recognised() {
        let words = ["timeout_seconds", "max_concurrent", "cpu"];
        assert_eq!(nearest("timeout_second", words), Some("timeout_seconds"));
        assert_eq!(nearest("timeuot_seconds", words), Some("timeout_seconds"));
        assert_eq!(nearest("cpus", words), Some("cpu"));
        assert_eq!(nearest("memory", words), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
