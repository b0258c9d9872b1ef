//! How a command fails: one line what happened, one line what to do next, the code and the request id, an exit code.

mod hint;

use std::path::Path;

use serde_json::json;
use servo_model::Invalid;
use servo_model::codes::Code;
use servo_wire::Problem;

use crate::commands::explain;
use crate::output::style::{Color, Paint, clean};

/// Exit codes. They are a contract with scripts.
pub mod exit {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const AUTH: u8 = 3;
    pub const NOT_FOUND: u8 = 4;
    pub const CONFLICT: u8 = 5;
    pub const LIMIT: u8 = 6;
    pub const RUN_FAILED: u8 = 7;
    pub const TIMED_OUT: u8 = 8;
    pub const UNAVAILABLE: u8 = 9;
    /// A server's disk reported an error, and the server ended so that it is started again.
    pub const DISK: u8 = 10;
    pub const INTERRUPTED: u8 = 130;
}

/// Why a command did not do what it was asked.
#[derive(Debug, Clone)]
pub struct Failure {
    pub exit: u8,
    what: String,
    /// What belongs to it, a line each.
    lines: Vec<String>,
    hint: Option<String>,
    /// The server's own words, or the same shape made here.
    problem: Option<Box<Problem>>,
}

impl Failure {
    /// `what` happened, in one line.
    pub fn new(exit: u8, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), lines: Vec::new(), hint: None, problem: None }
    }

    /// Something is wrong with what the caller gave.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(exit::USAGE, what)
    }

    /// Everything is said already, or there is nobody to say it to.
    pub fn silent(exit: u8) -> Self {
        Self::new(exit, "")
    }

    /// A failure with a code of the table: what a server would have answered, and the exit code it would have led to.
    pub fn code(code: Code, detail: impl Into<String>) -> Self {
        // Not `Problem::detail`, which keeps the details of server faults from remote callers: this caller is local.
        Self::problem(Problem { detail: Some(detail.into()), ..Problem::new(code) })
    }

    /// A document that is not what it should be.
    pub fn invalid(code: Code, invalid: &Invalid) -> Self {
        Self::problem(Problem::new(code).field(invalid))
    }

    pub fn problem(problem: Problem) -> Self {
        let what = match &problem.detail {
            // Some details are whole sentences that say the title again.
            Some(detail) if detail.to_lowercase().starts_with(&problem.title.to_lowercase()) => detail.clone(),
            Some(detail) => format!("{}: {detail}", problem.title),
            None => problem.title.clone(),
        };
        let hint = hint::for_problem(&problem);
        let exit = servo_client::exit_code(problem.status);
        Self { exit, what, lines: Vec::new(), hint, problem: Some(Box::new(problem)) }
    }

    /// A refusal of the Lambda API. Its name is the code, so that scripts match the words that AWS's tools use.
    fn lambda(status: u16, name: &str, message: String, request_id: Option<String>) -> Self {
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: message.clone(),
            status,
            detail: None,
            instance: None,
            code: name.to_owned(),
            request_id,
            errors: Vec::new(),
            suggestions: Vec::new(),
            retry_after: None,
        };
        let hint = hint::for_lambda(&problem);
        let exit = servo_client::exit_code(status);
        Self { exit, what: message, lines: Vec::new(), hint, problem: Some(Box::new(problem)) }
    }

    /// What to do next, in one line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What belongs to it, a line each.
    #[must_use]
    pub(crate) fn lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// Names what this was about, for a command that goes on with others.
    #[must_use]
    pub(crate) fn about(mut self, subject: &str) -> Self {
        if !self.is_silent() {
            self.what = format!("{subject}: {}", self.what);
        }
        self
    }

    /// Says of what is wrong in a file the way that compilers do, so that editors find it: `file:line:column: message`. `pointer` is
    /// where the file went.
    #[must_use]
    pub(crate) fn in_file(mut self, file: &Path, pointer: &str) -> Self {
        let Some(problem) = &mut self.problem else { return self };
        let mut first = None;
        for (index, error) in problem.errors.iter_mut().enumerate() {
            if let (Some(line), Some(column)) = (error.line, error.column)
                && error.pointer == pointer
            {
                error.pointer = format!("{}:{line}:{column}", file.display());
                if index == 0 {
                    first = Some(format!("{}: {}", error.pointer, error.detail));
                }
            }
        }
        if let Some(first) = first {
            self.what.clone_from(&first);
            problem.detail = Some(first);
        }
        self
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.what.is_empty()
    }

    /// For people.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}\n", paint.apply(Color::Red, "error:"), clean(&self.what));
        // The first one is in the detail.
        for error in self.problem.iter().flat_map(|problem| problem.errors.iter().skip(1)) {
            text.push_str(&format!("       {}: {}\n", clean(&error.pointer), clean(&error.detail)));
        }
        for line in &self.lines {
            text.push_str(&format!("       {}\n", clean(line)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{} {}\n", paint.apply(Color::Bold, "next:"), clean(hint)));
        }
        if let Some(problem) = &self.problem {
            let request = problem.request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
            let code = &problem.code;
            let more = explain::is_known(code).then(|| format!("; `servo explain {}` says more", explain::short(code)));
            let more = more.unwrap_or_default();
            text.push_str(&paint.apply(Color::Dim, &clean(&format!("code {code}{request}{more}"))));
            text.push('\n');
        }
        text
    }

    /// For programs: the problem document.
    pub(crate) fn document(&self) -> String {
        match &self.problem {
            Some(problem) => serde_json::to_string(problem).unwrap_or_default(),
            None => {
                let code = match self.exit {
                    exit::USAGE => "USAGE",
                    exit::RUN_FAILED => "RUN_FAILED",
                    exit::TIMED_OUT => "TIMED_OUT",
                    exit::UNAVAILABLE => "UNREACHABLE",
                    exit::INTERRUPTED => "INTERRUPTED",
                    _ => "CLIENT_ERROR",
                };
                // No status: there was no answer. The rest is as in a problem.
                let mut document = json!({"type": format!("urn:servo:error:{code}"), "title": self.what, "code": code});
                if !self.lines.is_empty() {
                    document["candidates"] = self.lines.clone().into();
                }
                document.to_string()
            }
        }
    }
}

impl From<servo_client::Error> for Failure {
    fn from(error: servo_client::Error) -> Self {
        let (exit, what) = (error.exit_code(), error.to_string());
        match error {
            servo_client::Error::Api { problem, .. } => Self { exit, ..Self::problem(*problem) },
            servo_client::Error::Lambda { status, name, message, request_id } => {
                Self { exit, ..Self::lambda(status, &name, message, request_id) }
            }
            servo_client::Error::Unreachable { .. } => {
                Self::new(exit, what).hint("start a server with `servo dev`, or name one with --server or SERVO_SERVER")
            }
            servo_client::Error::Decode { .. } => Self::new(exit, what)
                .hint("server and command line may differ: compare with `servo version --server URL`"),
            servo_client::Error::Setup { .. } => Self::new(exit, what).hint("check --server, --token and --ca-file"),
            servo_client::Error::File { .. } => Self::new(exit, what),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::codes;

    fn api(problem: Problem) -> Failure {
        servo_client::Error::Api { status: problem.status, problem: Box::new(problem) }.into()
    }

    #[test]
    fn a_refusal_says_what_happened_and_what_to_do() {
        let mut problem = Problem::new(codes::RUN_NOT_FOUND).detail("inv_\x1b[2J1");
        problem.request_id = Some("req_7".to_owned());
        let failure = api(problem);
        assert_eq!(failure.exit, exit::NOT_FOUND);
        let expected = "\
error: No such run: inv_ [2J1
next: `servo runs list` shows the runs that are there
code RUN_NOT_FOUND, request req_7; `servo explain RUN_NOT_FOUND` says more
";
        assert_eq!(failure.text(Paint::new(false)), expected);
        let document: serde_json::Value = serde_json::from_str(&failure.document()).unwrap();
        assert_eq!(document["code"], "RUN_NOT_FOUND");
        assert_eq!(document["requestId"], "req_7");
    }

    #[test]
    fn nothing_is_said_twice() {
        let said = |detail: &str| api(Problem::new(codes::RUN_CLOSED).detail(detail)).to_string();
        assert_eq!(said("the run has ended: it is CANCELLED"), "the run has ended: it is CANCELLED");
        assert_eq!(said("it is CANCELLED"), "The run has ended: it is CANCELLED");
    }

    #[test]
    fn every_wrong_field_is_named() {
        let problem = Problem::new(codes::SCHEMA_VALIDATION_FAILED)
            .field(&Invalid::new("b", "is unknown"))
            .field(&Invalid::new("a", "is missing"));
        let text = api(problem).text(Paint::new(false));
        assert!(text.contains("/a: is missing"), "{text}");
    }

    /// One that is elsewhere in the document, or of a document that is no source, keeps its own words.
    #[test]
    fn what_is_wrong_in_a_file_is_said_with_its_line_and_column() {
        let mut problem = Problem::new(codes::SCHEMA_VALIDATION_FAILED)
            .field(&Invalid::new("code", "unexpected new line here"))
            .field(&Invalid::new("title", "is missing"))
            .field(&Invalid::new("code", "is too long"));
        (problem.errors[0].line, problem.errors[0].column) = (Some(1), Some(21));
        let said = api(problem.clone()).in_file(Path::new("dir/bad.star"), "/code");
        let text = said.text(Paint::new(false));
        assert!(text.starts_with("error: dir/bad.star:1:21: unexpected new line here\n"), "{text}");
        assert!(text.contains("       /title: is missing\n       /code: is too long\n"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&said.document()).unwrap();
        assert_eq!(document["detail"], "dir/bad.star:1:21: unexpected new line here");
        assert_eq!(document["errors"][0]["line"], 1);
        assert_eq!(api(problem.clone()).in_file(Path::new("x"), "/title").to_string(), api(problem).to_string());
    }

    #[test]
    fn failures_without_an_answer_are_documents_too() {
        let failure = Failure::from(servo_client::Error::Unreachable {
            server: "http://127.0.0.1:1".to_owned(),
            reason: "connection refused".to_owned(),
        });
        assert_eq!(failure.exit, exit::UNAVAILABLE);
        let document: serde_json::Value = serde_json::from_str(&failure.document()).unwrap();
        assert_eq!(document["code"], "UNREACHABLE");
        assert!(failure.text(Paint::new(false)).contains("servo dev"));
    }

    #[test]
    fn a_refusal_of_the_lambda_api_says_what_to_do() {
        let failure = Failure::from(servo_client::Error::Lambda {
            status: 404,
            name: "ResourceNotFoundException".to_owned(),
            message: "Function not found: f".to_owned(),
            request_id: Some("req_7".to_owned()),
        });
        assert_eq!(failure.exit, exit::NOT_FOUND);
        let expected = "\
error: Function not found: f
next: `servo functions list` shows what is registered
code ResourceNotFoundException, request req_7; `servo explain ResourceNotFoundException` says more
";
        assert_eq!(failure.text(Paint::new(false)), expected);
    }

    #[test]
    fn local_failures_keep_their_details() {
        let failure = Failure::code(codes::STORE_CORRUPT, "page 7");
        assert_eq!((failure.exit, failure.to_string().as_str()), (1, "The store's data is damaged: page 7"));
        assert_eq!(Failure::code(codes::STORE_IN_USE, "x").exit, exit::CONFLICT);
    }
}
