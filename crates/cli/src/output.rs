//! Where text goes and in which form: data to stdout in the chosen format, everything else to stderr.

pub(crate) mod height;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod table;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use servo_model::Timestamp;

use crate::args::{ColorChoice, Format, Global};
use crate::failure::{Failure, exit};
use crate::view::View;
use style::{Paint, Style};

/// How this process prints.
#[derive(Debug, Clone)]
pub struct Out {
    format: Format,
    style: Style,
    stderr_color: bool,
}

impl Out {
    pub fn new(global: &Global) -> Self {
        let style = Style {
            color: wants_color(global.color, io::stdout().is_terminal()),
            time: global.time_format,
            now: now(),
        };
        Self { format: global.format(), style, stderr_color: wants_color(global.color, io::stderr().is_terminal()) }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// The look of what is printed now: ages count from this moment, not from the start of a command that waited.
    pub(crate) fn line_style(&self) -> Style {
        Style { now: now(), ..self.style.clone() }
    }

    /// The same on stderr.
    pub(crate) fn progress_style(&self) -> Style {
        Style { color: self.stderr_color, ..self.line_style() }
    }

    /// Prints a value that was made here.
    pub fn print<T: View + Serialize>(&self, value: &T) -> Result<(), Failure> {
        let raw = serde_json::to_string(value).map_err(|error| Failure::new(exit::ERROR, error.to_string()))?;
        self.data(value, &raw)
    }

    /// Prints a value whose JSON came from a server: JSON formats show that text, with all that it has.
    pub fn data<T: View + ?Sized>(&self, value: &T, raw: &str) -> Result<(), Failure> {
        let text = match self.format {
            Format::Table => value.table(&self.line_style()),
            Format::Json => json::indent(raw),
            Format::Jsonl => match T::ITEMS {
                Some(field) => json::items(raw, field)?.iter().map(|item| json::compact(item.get()) + "\n").collect(),
                None => json::compact(raw),
            },
            Format::Ids => value.ids().iter().map(|id| format!("{id}\n")).collect(),
        };
        self.text(&text)
    }

    /// Prints what several requests were answered: JSON is a list, unless one was asked for by name.
    pub(crate) fn answers<T: View>(&self, value: &T, raws: &[String], is_single: bool) -> Result<(), Failure> {
        match (self.format, raws) {
            (_, []) => Ok(()),
            (Format::Json, [raw]) if is_single => self.data(value, raw),
            (Format::Jsonl, _) => self.text(&raws.iter().map(|raw| json::compact(raw) + "\n").collect::<String>()),
            _ => self.data(value, &format!("[{}]", raws.join(","))),
        }
    }

    /// Prints text to stdout, ended by a line end.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(line_end.as_bytes()));
        written.and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            // The reader has what it wanted.
            io::ErrorKind::BrokenPipe => Failure::silent(exit::OK),
            _ => Failure::new(exit::ERROR, format!("stdout: {error}")),
        })
    }

    /// Says something to the person watching.
    pub fn note(&self, text: &str) {
        // Nobody is there to be told when this fails.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Reports a failure on stderr and gives back its exit code.
    pub fn failure(&self, failure: &Failure) -> u8 {
        let _ = io::stderr().lock().write_all(self.failure_text(failure).as_bytes());
        failure.exit
    }

    /// What is said about a failure.
    pub fn failure_text(&self, failure: &Failure) -> String {
        match self.format {
            _ if failure.is_silent() => String::new(),
            Format::Json => json::indent(&failure.document()) + "\n",
            Format::Jsonl => json::compact(&failure.document()) + "\n",
            Format::Table | Format::Ids => failure.text(Paint::new(self.stderr_color)),
        }
    }
}

fn wants_color(choice: ColorChoice, is_terminal: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if is_set("NO_COLOR") => false,
        ColorChoice::Auto if std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto => is_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
    }
}

#[expect(clippy::disallowed_methods, reason = "only shown to people, as the age of something")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.plus(since)
}
