//! Each rule on a text that breaks it and on one that does not.

use super::*;

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn rust_problems(path: &str, text: &str) -> Vec<String> {
    rust::check(&file(path, text))
}

#[test]
fn product_files_say_what_they_are() {
    assert_eq!(rust_problems("crates/a/src/b.rs", "//! This.\nfn f() {}\n"), [""; 0]);
    let expected = ["crates/a/src/b.rs:1: starts without `//!` saying what the file is"];
    assert_eq!(rust_problems("crates/a/src/b.rs", "// This.\n"), expected);
    assert_eq!(rust_problems("bin/servo/src/main.rs", "fn main() {}\n").len(), 1);
    assert_eq!(rust_problems("examples/x.rs", "fn main() {}\n"), [""; 0]);
}

#[test]
fn long_source_files_are_refused_at_the_limit() {
    let lines = |count: usize| format!("//! Long.\n{}", "\n".repeat(count - 1));
    assert_eq!(rust_problems("crates/a/src/b.rs", &lines(700)), [""; 0]);
    assert_eq!(rust_problems("crates/a/src/b.rs", &lines(701)).len(), 1);
    assert_eq!(rust_problems("crates/a/tests/it/b.rs", &lines(701)), [""; 0]);
}

#[test]
fn sleeping_and_hidden_tests_are_found_where_tests_are() {
    let sleep = "//! x\n    std::thread::sleep(second);\n";
    assert_eq!(rust_problems("crates/a/src/b.rs", sleep), [""; 0]);
    assert_eq!(rust_problems("crates/a/tests/it/b.rs", sleep).len(), 1);
    assert_eq!(rust_problems("crates/a/src/b/tests.rs", sleep).len(), 1);
    assert_eq!(rust_problems("tests/e2e/tests/it/b.rs", "tokio::time::sleep(second).await;\n").len(), 1);
    let below = "//! x\n#[cfg(test)]\nmod tests {\n    #[ignore = \"slow\"]\n    fn f() {}\n}\n";
    assert_eq!(rust_problems("crates/a/src/b.rs", below).len(), 1);
}

#[test]
fn unfinished_work_is_found_everywhere() {
    assert_eq!(rust_problems("crates/a/src/b.rs", "//! x\ntodo!()\n").len(), 1);
    assert_eq!(rust_problems("bench/src/b.rs", "//! x\nunimplemented!()\n").len(), 1);
}

#[test]
fn machine_paths_are_found_and_similar_words_are_not() {
    let problems = |text: &str| words::check(&file("docs/x.md", text));
    assert_eq!(problems("cd /work/main"), [r#"docs/x.md:1: "/work/": a path of one machine"#]);
    assert_eq!(problems("see \"/Root/x\"").len(), 1);
    assert_eq!(problems("src/work/x and ../root/x and {dir}/home/x"), [""; 0]);
    assert_eq!(problems("As an AI, I").len(), 1);
    assert_eq!(problems("as an aim, the prompt is empty"), [""; 0]);
}

#[test]
fn schemas_are_json_and_end_in_a_newline() {
    let problems = |text: &str| spec::check(&file("spec/events/RunStarted.schema.json", text));
    assert_eq!(problems("{}\n"), [""; 0]);
    assert_eq!(problems("{}").len(), 1);
    assert_eq!(problems("{,}\n").len(), 1);
}

#[test]
fn codes_and_pages_match_both_ways() {
    let table = "//! x\nmacro_rules! codes {\n    ($x:ident) => {};\n}\n\ncodes! {\n    RUN_CLOSED, 410, \"Ended\";\n    INTERNAL, 500, \"Broken, badly\";\n}\n";
    let files = |pages: &[&str]| {
        let pages = pages.iter().map(|name| file(&format!("docs/errors/{name}.md"), "text\n"));
        std::iter::once(file("crates/model/src/codes.rs", table)).chain(pages).collect::<Vec<_>>()
    };
    assert_eq!(codes::check(&files(&["RUN_CLOSED", "INTERNAL", "README", "index"])), [""; 0]);
    assert_eq!(
        codes::check(&files(&["INTERNAL", "GONE"])),
        [
            "docs/errors/RUN_CLOSED.md: missing, the code is in crates/model/src/codes.rs",
            "docs/errors/GONE.md: crates/model/src/codes.rs has no such code",
        ]
    );
    assert_eq!(codes::check(&[file("crates/model/src/codes.rs", "//! another form\n")]).len(), 1);
    assert_eq!(codes::check(&[]), [""; 0]);
}
