//! Plain tables: a header, aligned columns, two spaces between them, nothing else.

use super::style::{Color, Paint, clean, status_color};

/// Longer text is cut in tables; JSON has all of it.
const CELL_CHARS_MAX: usize = 80;

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    color: Option<Color>,
}

impl Cell {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: cut(&clean(text)), color: None }
    }

    /// Never cut: for what people copy, such as ids.
    pub(crate) fn whole(text: &str) -> Self {
        Self { text: clean(text), color: None }
    }

    pub(crate) fn status(text: &str) -> Self {
        // The colour goes by the first word; what follows in parentheses explains it.
        let word = text.split(' ').next().unwrap_or_default();
        Self { text: clean(text), color: Some(status_color(word)) }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Self::new(text.as_deref().unwrap_or("-"))
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= CELL_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect()
}

/// Rows under headers. Columns without any content are left out.
pub(crate) fn table(paint: Paint, headers: &[&str], rows: &[Vec<Cell>]) -> String {
    let is_empty = |column: usize| rows.iter().all(|row| matches!(row[column].text.as_str(), "" | "-"));
    let shown: Vec<usize> = (0..headers.len()).filter(|column| rows.is_empty() || !is_empty(*column)).collect();
    let widths: Vec<usize> = shown
        .iter()
        .map(|column| rows.iter().map(|row| row[*column].width()).chain([headers[*column].len()]).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    let heads: Vec<Cell> =
        headers.iter().map(|head| Cell { text: (*head).to_owned(), color: Some(Color::Bold) }).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (position, (column, width)) in shown.iter().zip(&widths).enumerate() {
            let cell = &row[*column];
            match cell.color {
                Some(color) => line.push_str(&paint.apply(color, &cell.text)),
                None => line.push_str(&cell.text),
            }
            if position + 1 < shown.len() {
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// `Name   value` lines; names without a value are left out.
pub(crate) fn fields(rows: &[(&str, Option<String>)]) -> String {
    let width = rows.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().filter_map(|(name, value)| Some(format!("{name:width$}  {}\n", value.as_ref()?)));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let rows = vec![
            vec![Cell::whole("inv_1"), Cell::status("RUNNING"), Cell::from(None), Cell::new("short")],
            vec![Cell::whole("inv_22"), Cell::status("FAILED"), Cell::new(""), Cell::new(&"x".repeat(100))],
        ];
        let expected =
            format!("RUN     STATUS   DETAIL\ninv_1   RUNNING  short\ninv_22  FAILED   {}…\n", "x".repeat(79));
        assert_eq!(table(Paint::new(false), &["RUN", "STATUS", "NOTE", "DETAIL"], &rows), expected);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let rows = vec![vec![Cell::status("FAILED"), Cell::new("x")]];
        let expected = "\x1b[1mSTATUS\x1b[0m  \x1b[1mN\x1b[0m\n\x1b[31mFAILED\x1b[0m  x\n";
        assert_eq!(table(Paint::new(true), &["STATUS", "N"], &rows), expected);
    }
}
