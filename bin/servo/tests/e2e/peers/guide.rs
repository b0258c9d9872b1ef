//! The guide of AWS's Python SDK, as its reader types it: the file, the worker, the server that starts it, and what is asked.

use std::path::Path;

use crate::docs::{Block, blocks, page, run};
use crate::support::process::Servo;
use crate::support::variable;

const DEV: &str = "servo dev --function orders=./order.sh";

/// What stands between a fence of this language and its end.
fn code(page: &str, language: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("\n```").expect("its end").0.to_owned()
}

/// A shell that finds the Python that has AWS's packages.
fn script(text: &str) -> String {
    let python = variable("SERVO_TEST_PYTHON");
    let folder = Path::new(&python).parent().expect("a folder").display();
    format!("set -eu\nPATH={folder}:$PATH\n{text}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_pythons_guide_works() {
    let page = page("docs/guides/python.md");
    let found = blocks(&page);
    let [install, worker, ask, callback] = &found[..] else { panic!("other blocks: {found:?}") };
    let required = std::fs::read_to_string(super::file("requirements.txt")).expect("what the tests install");
    let packages = install.text.trim().strip_prefix("pip install ").expect("an installation");
    assert!(packages.split(' ').all(|package| required.contains(&format!("{package}=="))), "{packages}");

    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    let (write, dev) = worker.text.trim().rsplit_once('\n').expect("two commands");
    assert_eq!(dev, DEV);
    let written = run(&script(write), folder.path(), "http://127.0.0.1:1").await;
    assert!(written.status.success(), "{written:?}");
    std::fs::write(work.join("handlers.py"), code(&page, "python")).expect("a file");
    // Servo finds `python3` where the shell does.
    let (path, python) = (variable("PATH"), variable("SERVO_TEST_PYTHON"));
    let path = format!("{}:{path}", Path::new(&python).parent().expect("a folder").display());
    let function = format!("orders={}", work.join("order.sh").display());
    let servo = Servo::dev_with(&folder.path().join("data"), &["--function", &function], &[("PATH", &path)]);
    let servo = servo.expect("it starts");

    let asked = tempfile::tempdir().expect("a folder");
    let output = run(&script(&ask.text), asked.path(), &servo.url).await;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{stdout}\n{stderr}", output.status);
    let said = ask.text.lines().find_map(|line| line.strip_prefix("# ")).expect("what is answered");
    let said: serde_json::Value = serde_json::from_str(said).expect("JSON");
    let answered = stdout.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    assert_eq!(answered, Some(said), "{stdout}");

    // Nobody waits under this name; the command itself is right.
    let Block { text, .. } = callback;
    let nobody = tempfile::tempdir().expect("a folder");
    let output = run(&script(&format!("CALLBACK=QUFBQUFB\n{text}")), nobody.path(), &servo.url).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && stderr.contains("no such callback"), "{:?} {stderr}", output.status);
    assert!(servo.stop().success(), "the server is well");
}
