//! `servo explain`: what a code means and what to do about it, without a server. The pages of `docs/errors`, and the tables in its
//! `README.md` for the words of the Lambda API and of the serverless runtime API.

use serde::Serialize;

use crate::failure::{Failure, exit};
use crate::output::Out;
use crate::view::{Style, View};

macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md")))),*];
    };
}

pages![
    "ATTEMPT_SUPERSEDED",
    "AUTHORITY_FENCED",
    "AUTHORITY_HELD",
    "AUTHORITY_NOT_HELD",
    "DISPATCH_ILLEGAL_MOVE",
    "DISPATCH_NOT_FOUND",
    "ENGINE_UNKNOWN",
    "FORBIDDEN",
    "FUNCTION_IN_USE",
    "FUNCTION_NOT_FOUND",
    "IDEMPOTENCY_KEY_EXISTS",
    "ILLEGAL_TRANSITION",
    "INTERNAL",
    "INVALID_CURSOR",
    "INVALID_PARAMETER",
    "KEY_NOT_FOUND",
    "LIMIT_EXCEEDED",
    "MALFORMED_JSON",
    "METHOD_NOT_ALLOWED",
    "NOT_FOUND",
    "ORPHANED_TASK",
    "OVERLOADED",
    "PLAN_DIGEST_MISMATCH",
    "PLAN_SOURCE_NOT_ALLOWED",
    "PLAN_SOURCE_UNAVAILABLE",
    "RUN_CLOSED",
    "RUN_EXISTS",
    "RUN_NOT_FOUND",
    "RUN_QUARANTINED",
    "RUN_REQUEST_MISMATCH",
    "SCHEMA_VALIDATION_FAILED",
    "SHUTTING_DOWN",
    "SIGNAL_REJECTED",
    "STEP_NOT_FOUND",
    "STORE_CORRUPT",
    "STORE_FULL",
    "STORE_IN_USE",
    "STORE_TOO_NEW",
    "STORE_UNAVAILABLE",
    "UNAUTHENTICATED",
    "UNSUPPORTED",
    "WRITE_BUDGET_EXCEEDED",
];

const TABLES: &str = include_str!("../../../../docs/errors/README.md");
/// What the ids of the serverless runtime API's errors begin with; what follows is what people call them.
const FAMILY: &str = "gts.x.core.serverless.err.v1~x.core.serverless.err.";

/// What is known about a code.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) code: String,
    pub(crate) text: String,
}

impl View for Explanation {
    fn table(&self, _: &Style) -> String {
        self.text.clone()
    }
}

pub(crate) fn run(code: &str, out: &Out) -> Result<u8, Failure> {
    let Some(text) = page(code) else {
        let what = format!("there is no error `{code}`");
        let names = PAGES.iter().map(|(name, _)| *name).chain(rows().map(|row| row.name));
        let names: Vec<&str> = names.collect();
        let near = servo_entrypoint::names::near(code, names.iter().copied());
        return Err(Failure::new(exit::NOT_FOUND, what).hint(match near.first() {
            Some(near) => format!("did you mean `servo explain {near}`?"),
            None => "give the code that stands in the last line of an error".to_owned(),
        }));
    };
    out.print(&Explanation { code: code.to_owned(), text })?;
    Ok(exit::OK)
}

pub(crate) fn is_known(code: &str) -> bool {
    PAGES.iter().any(|(name, _)| *name == code) || rows().any(|row| row.name == short(code))
}

/// What people type for a code.
pub(crate) fn short(code: &str) -> &str {
    let own = code.strip_prefix("gts://").unwrap_or(code).strip_prefix(FAMILY);
    own.and_then(|own| own.strip_suffix(".v1~")).unwrap_or(code)
}

fn page(code: &str) -> Option<String> {
    let code = short(code.trim());
    let page = |fits: fn(&str, &str) -> bool| PAGES.iter().find(|(name, _)| fits(name, code));
    let row = |fits: fn(&str, &str) -> bool| rows().find(|row| fits(row.name, code));
    let (exact, alike) = (|one: &str, other: &str| one == other, str::eq_ignore_ascii_case);
    // `NOT_FOUND` and `not_found` are two; whoever types in a hurry gets the first.
    let told = |page: &(&str, &str)| page.1.to_owned();
    page(exact)
        .map(told)
        .or_else(|| row(exact).as_ref().map(text_of))
        .or_else(|| page(alike).map(told))
        .or_else(|| row(alike).as_ref().map(text_of))
}

fn text_of(row: &Row) -> String {
    format!("# {}\n\nHTTP {}\n\n{}\n\nWhat to do: {}\n", row.name, row.status, row.meaning, row.advice)
}

/// A row of the tables: `| \`name\` | status | meaning | what to do |`.
struct Row {
    name: &'static str,
    status: &'static str,
    meaning: &'static str,
    advice: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLES.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        Some(Row { name, status: cells.next()?, meaning: cells.next()?, advice: cells.next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::codes;
    use servo_wire::lambda::ErrorName;

    #[test]
    fn every_code_of_every_api_is_explained() {
        for code in codes::ALL {
            assert!(page(code.code).is_some_and(|text| text.contains(code.title)), "{}", code.code);
            assert!(is_known(code.code));
        }
        for name in ErrorName::ALL {
            let status = format!("HTTP {}", name.status());
            assert!(page(name.as_str()).is_some_and(|text| text.contains(&status)), "{}", name.as_str());
        }
        for kind in servo_entrypoint::errors::KINDS {
            let short = short(kind.id);
            assert!(!short.contains('~') && is_known(kind.id), "{}", kind.id);
            for asked in [kind.id.to_owned(), format!("gts://{}", kind.id), short.to_owned()] {
                assert!(page(&asked).is_some_and(|text| text.contains(short)), "{asked}");
            }
        }
        assert!(page("run_not_found").is_some() && page("NO_SUCH_CODE").is_none());
        assert!(!is_known("USAGE"));
    }
}
