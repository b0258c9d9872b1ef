//! What commands read besides their arguments: files, stdin, and a yes from a person. All of it comes before the first
//! request, and before Ctrl-C is caught, so that it can end a read at once.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;

use servo_model::RunId;

use crate::args::Target;
use crate::failure::{Failure, exit};
use crate::output::style::count;

/// The largest document or list of ids that is read.
const INPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Ids that a question shows.
const SAMPLE: usize = 3;

/// A file, or stdin for `-`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return read_all(io::stdin().lock(), "stdin");
    }
    let name = path.display().to_string();
    match std::fs::File::open(path) {
        Ok(file) => read_all(file, &name),
        Err(error) => Err(Failure::usage(format!("{name}: {error}"))),
    }
}

fn read_all(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(exit::ERROR, format!("{name}: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Failure::usage(format!("{name}: longer than {INPUT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name}: not UTF-8")))
}

/// The runs that a command acts on.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) runs: Vec<RunId>,
    /// One run, named on the command line.
    pub(crate) is_single: bool,
}

pub(crate) fn choose(targets: &[Target]) -> Result<Chosen, Failure> {
    let mut runs = Vec::new();
    for target in targets {
        match target {
            Target::Run(run) => runs.push(run.clone()),
            Target::Stdin => runs.extend(parse_ids(&read(Path::new("-"))?)?),
        }
    }
    Ok(Chosen { is_single: matches!(targets, [Target::Run(_)]), runs })
}

/// The one run that is meant, for what cannot be done to several.
pub(crate) fn single(targets: &[Target]) -> Result<RunId, Failure> {
    match choose(targets)?.runs.as_slice() {
        [run] => Ok(run.clone()),
        runs => {
            let what = format!("this is for one run, not for {}", runs.len());
            Err(Failure::usage(what).hint("name one, or leave --watch and --file out"))
        }
    }
}

fn parse_ids(text: &str) -> Result<Vec<RunId>, Failure> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number)).filter(|(line, _)| !line.is_empty());
    let parse = |(line, number): (&str, u32)| {
        // Lists of executions have ARNs.
        servo_client::run_of_arn(line)
            .map_or_else(|| RunId::parse(line), Ok)
            .map_err(|invalid| Failure::usage(format!("stdin line {number}: `{line}`: {invalid}")))
    };
    lines.map(parse).collect()
}

/// Asks before something that cannot be undone.
pub(crate) fn confirm(verb: &str, chosen: &Chosen, yes: bool) -> Result<(), Failure> {
    if yes || chosen.runs.is_empty() {
        return Ok(());
    }
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    ask(&question(verb, &chosen.runs), is_terminal, &mut io::stdin().lock(), &mut io::stderr().lock())
}

fn ask(question: &str, is_terminal: bool, from: &mut impl BufRead, to: &mut impl Write) -> Result<(), Failure> {
    if !is_terminal {
        return Err(Failure::usage(format!("{question} There is no terminal to answer on")).hint("add --yes"));
    }
    let failed = |error: io::Error| Failure::new(exit::ERROR, format!("terminal: {error}"));
    write!(to, "{question} [y/N] ").and_then(|()| to.flush()).map_err(failed)?;
    let mut answer = String::new();
    from.read_line(&mut answer).map_err(failed)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(exit::ERROR, "nothing was done")),
    }
}

fn question(verb: &str, runs: &[RunId]) -> String {
    let names: Vec<_> = runs.iter().take(SAMPLE).map(RunId::as_str).collect();
    let more = if runs.len() > SAMPLE { ", …" } else { "" };
    format!("{verb} {} ({}{more})?", count(runs.len() as u64, "run"), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId::parse(text).unwrap()
    }

    #[test]
    fn ids_come_one_per_line_and_a_wrong_one_stops_everything() {
        assert_eq!(parse_ids("inv_1\r\n\n  inv_2 \n").unwrap(), [id("inv_1"), id("inv_2")]);
        assert_eq!(parse_ids("").unwrap(), []);
        let failure = parse_ids("inv_1\n\nRUN STATUS\n").unwrap_err();
        assert_eq!(failure.exit, exit::USAGE);
        assert!(failure.to_string().starts_with("stdin line 3: `RUN STATUS`"), "{failure}");
    }

    #[test]
    fn a_question_names_how_many_and_which() {
        let runs: Vec<_> = ["a", "b", "c", "d"].map(id).into();
        assert_eq!(question("Delete", &runs), "Delete 4 runs (a, b, c, …)?");
        assert_eq!(question("Terminate", &runs[..1]), "Terminate 1 run (a)?");
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for (typed, expected) in [("y\n", Ok(())), ("YES\n", Ok(())), ("\n", Err(1)), ("no\n", Err(1)), ("", Err(1))] {
            let mut shown = Vec::new();
            let result = ask("Delete 1 run (a)?", true, &mut typed.as_bytes(), &mut shown);
            assert_eq!(result.map_err(|failure| failure.exit), expected, "{typed:?}");
            assert_eq!(shown, b"Delete 1 run (a)? [y/N] ");
        }
        let failure = ask("Delete 1 run (a)?", false, &mut "y\n".as_bytes(), &mut Vec::new()).unwrap_err();
        assert_eq!(failure.exit, exit::USAGE, "without a terminal nobody was asked");
    }

    #[test]
    fn a_single_run_is_one_that_was_named() {
        assert!(choose(&[Target::Run(id("a"))]).unwrap().is_single);
        assert!(!choose(&[Target::Run(id("a")), Target::Run(id("b"))]).unwrap().is_single);
    }
}
