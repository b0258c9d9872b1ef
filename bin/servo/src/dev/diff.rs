//! What changed between two texts, as a unified diff: the form that everybody reads.

use std::fmt::Write as _;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Cells of the table of common lines; larger changes are told as one block that goes and one that comes.
const CELLS_MAX: usize = 4_000_000;
/// Lines that are printed; a file that was replaced as a whole is read in an editor.
const LINES_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The diff with its two header lines; empty if nothing changed.
pub(super) fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let mut lines = Vec::new();
    for hunk in hunks(&edits) {
        write_hunk(&edits, hunk, &old, &new, &mut lines);
    }
    if lines.is_empty() {
        return lines;
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("… {more} lines more"));
    }
    lines.splice(0..0, [format!("--- {old_name}"), format!("+++ {new_name}")]);
    lines
}

/// The way from one text to the other that keeps most lines.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let front = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let back = old[front..].iter().rev().zip(new[front..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[front..old.len() - back], &new[front..new.len() - back]);
    let mut edits = vec![Edit::Keep; front];
    if a.len().saturating_mul(b.len()) > CELLS_MAX {
        edits.extend(vec![Edit::Remove; a.len()]);
        edits.extend(vec![Edit::Add; b.len()]);
    } else {
        walk(a, b, &mut edits);
    }
    edits.extend(vec![Edit::Keep; back]);
    edits
}

/// `common[i][j]` is how many lines `a[i..]` and `b[j..]` can have in common, in order.
fn walk(a: &[&str], b: &[&str], edits: &mut Vec<Edit>) {
    let width = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            edits.push(Edit::Keep);
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            edits.push(Edit::Remove);
            i += 1;
        } else {
            edits.push(Edit::Add);
            j += 1;
        }
    }
    edits.extend(vec![Edit::Remove; a.len() - i]);
    edits.extend(vec![Edit::Add; b.len() - j]);
}

/// Ranges of edits that are shown together: changes, with what is around them.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(edits.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

fn write_hunk(edits: &[Edit], hunk: std::ops::Range<usize>, old: &[&str], new: &[&str], lines: &mut Vec<String>) {
    let count = |range: &[Edit], not: Edit| range.iter().filter(|edit| **edit != not).count();
    let (mut i, mut j) = (count(&edits[..hunk.start], Edit::Add), count(&edits[..hunk.start], Edit::Remove));
    let inside = &edits[hunk];
    let (a, b) = (count(inside, Edit::Add), count(inside, Edit::Remove));
    // An empty side counts from the line before it.
    let first = |at: usize, length: usize| if length == 0 { at } else { at + 1 };
    let mut header = format!("@@ -{}", first(i, a));
    let _ = write!(header, ",{a} +{},{b} @@", first(j, b));
    lines.push(header);
    for edit in inside {
        match edit {
            Edit::Keep => {
                lines.push(format!(" {}", old[i]));
                (i, j) = (i + 1, j + 1);
            }
            Edit::Remove => {
                lines.push(format!("-{}", old[i]));
                i += 1;
            }
            Edit::Add => {
                lines.push(format!("+{}", new[j]));
                j += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changed_is_nothing_said() {
        assert!(unified("a", "b", "one\ntwo\n", "one\ntwo\n").is_empty());
    }

    #[test]
    fn changes_stand_with_what_is_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let expected = [
            "--- v1",
            "+++ v2",
            "@@ -2,7 +2,7 @@",
            " 2",
            " 3",
            " 4",
            "-5",
            "+five",
            " 6",
            " 7",
            " 8",
            "@@ -10,3 +10,4 @@",
            " 10",
            " 11",
            " 12",
            "+13",
        ];
        assert_eq!(unified("v1", "v2", old, new), expected);
        assert_eq!(unified("v1", "v2", "", "a\n"), ["--- v1", "+++ v2", "@@ -0,0 +1,1 @@", "+a"]);
    }

    /// Taking the diff back gives the old text, whatever changed.
    #[test]
    fn a_diff_holds_both_texts() {
        let texts = ["", "a\nb\nc", "a\nc", "x\na\nb\ny\nc\nz", "c\nb\na"];
        for old in texts {
            for new in texts {
                let (a, b): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
                let edits = edits(&a, &b);
                assert_eq!(edits.iter().filter(|edit| **edit != Edit::Add).count(), a.len(), "{old:?} {new:?}");
                assert_eq!(edits.iter().filter(|edit| **edit != Edit::Remove).count(), b.len(), "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn a_long_one_is_cut() {
        let new: String = (0..1_000).map(|n| format!("{n}\n")).collect();
        let lines = unified("v1", "v2", "", &new);
        assert_eq!(lines.last().unwrap(), "… 801 lines more");
    }
}
