//! A source as the child keeps it: parsed, evaluated once and frozen, so that no call can leave anything for the next.

use starlark::codemap::ResolvedPos;
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};

use super::run::CALL_DEPTH_MAX;
use crate::SourceIssue;

/// What traces and messages call it.
const FILE: &str = "main.star";
const PARAMETERS: usize = 2;

pub(crate) fn globals() -> Globals {
    GlobalsBuilder::extended_by(&[
        LibraryExtension::StructType,
        LibraryExtension::Json,
        LibraryExtension::Map,
        LibraryExtension::Filter,
    ])
    .build()
}

fn dialect() -> Dialect {
    Dialect { enable_load: false, enable_keyword_only_arguments: true, enable_f_strings: true, ..Dialect::Standard }
}

/// Parses and evaluates; with a `main` that can be called.
pub(crate) fn load(source: &str, globals: &Globals) -> Result<FrozenModule, SourceIssue> {
    let ast = AstModule::parse(FILE, source.to_owned(), &dialect()).map_err(|error| issue_of(&error))?;
    let module = Module::new();
    {
        let mut eval = Evaluator::new(&module);
        // It can only be refused for being zero or set twice.
        drop(eval.set_max_callstack_size(CALL_DEPTH_MAX));
        eval.eval_module(ast, globals).map_err(|error| issue_of(&error))?;
    }
    let frozen = module.freeze().map_err(|error| SourceIssue::whole(format!("{error:?}"), None))?;
    check_main(&frozen, source)?;
    Ok(frozen)
}

fn check_main(module: &FrozenModule, source: &str) -> Result<(), SourceIssue> {
    const SUGGESTION: &str = "def main(ctx, input):";
    let Ok(main) = module.get("main") else {
        return Err(SourceIssue::whole("there is no function main", Some(SUGGESTION)));
    };
    let fits = main.value().parameters_spec().map(|parameters| parameters.can_fill_with_args(PARAMETERS, &[]));
    let message = match fits {
        Some(true) => return Ok(()),
        Some(false) => "main does not take two parameters, ctx and input",
        None => "main is not a function",
    };
    let mut issue = SourceIssue::whole(message, Some(SUGGESTION));
    if let Some(index) = source.lines().position(|line| line.starts_with("def main") || line.starts_with("main")) {
        issue.line = index as u64 + 1;
    }
    Err(issue)
}

fn issue_of(error: &starlark::Error) -> SourceIssue {
    let message = error.without_diagnostic().to_string();
    let mut issue = SourceIssue::whole(servo_model::limits::clip(&message), suggestion(&message));
    if let Some(span) = error.span() {
        let ResolvedPos { line, column } = span.resolve_span().begin;
        (issue.line, issue.column) = (line as u64 + 1, column as u64 + 1);
    }
    issue
}

fn suggestion(message: &str) -> Option<&'static str> {
    if message.contains("load") {
        return Some(
            "there is nothing to load: write everything into one source, or call other entrypoints with ctx.invoke",
        );
    }
    let names = ["print", "time", "random", "os", "import"];
    let unknown = names.iter().find(|name| message.contains(&format!("`{name}`")));
    match unknown.copied() {
        Some("print") => Some("use ctx.log(message)"),
        Some("time") => Some("use ctx.now()"),
        Some("random") => Some("use ctx.random()"),
        Some(_) => Some("a program reaches the outside only through ctx"),
        None => None,
    }
}
