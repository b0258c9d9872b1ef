//! The word that somebody probably meant.

/// Words that are compared with one. Somebody may have sent a million of them, and a hundred that are not known.
const COMPARED_MAX: usize = 200;

/// The nearest of some words, if it is near enough to be a misspelling.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are no misspelt words, and the distance costs their product.
    let length = word.chars().count();
    if length > 64 {
        return None;
    }
    let allowed = (length / 3).clamp(1, 3);
    words
        .into_iter()
        .take(COMPARED_MAX)
        // As many letters as they differ by have to be put in or taken out.
        .filter(|candidate| candidate.chars().take(length + allowed + 1).count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out, changed, or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for at in 1..=left.len() {
        let mut row = vec![at];
        for column in 1..=right.len() {
            let same = left[at - 1] == right[column - 1];
            let changed = rows[at - 1][column - 1] + usize::from(!same);
            let mut best = changed.min(rows[at - 1][column] + 1).min(row[column - 1] + 1);
            if at > 1 && column > 1 && left[at - 1] == right[column - 2] && left[at - 2] == right[column - 1] {
                best = best.min(rows[at - 2][column - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
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
        assert_eq!(distance("titel", "title"), 1);
        assert_eq!(distance("ab", "ab"), 0);
    }
}
