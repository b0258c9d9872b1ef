//! How many lines the terminal has.

/// `None` if stdout is no terminal, or one that does not say.
pub(crate) fn of_stdout() -> Option<usize> {
    let size = window()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

#[expect(unsafe_code, reason = "std does not ask terminals for their size")]
fn window() -> Option<libc::winsize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes one `winsize` to a place that holds one, and keeps nothing.
    let answer = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0).then_some(size)
}

/// The beginning of a text that fits below a title, with a word on what is cut. The cursor needs a line, too.
pub(crate) fn fit(text: &str, height: Option<usize>) -> String {
    let lines = text.lines().count();
    match height.map(|height| height.saturating_sub(3).max(1)) {
        Some(room) if lines > room + 1 => {
            let shown: Vec<_> = text.lines().take(room).collect();
            format!("{}\n… {} more lines\n", shown.join("\n"), lines - room)
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits_the_terminal() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(fit(text, None), text);
        assert_eq!(fit(text, Some(6)), text, "title, four lines, cursor");
        assert_eq!(fit(text, Some(5)), "a\nb\n… 2 more lines\n");
        assert_eq!(fit(text, Some(0)), "a\n… 3 more lines\n");
        assert_eq!(of_stdout(), None, "tests have no terminal");
    }
}
