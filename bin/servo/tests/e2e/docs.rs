//! Every command in the README and the guides is executed, as a newcomer would: block after block, in one shell per page, against
//! a server that was just started with its demo. A page that tells something wrong fails here.
//!
//! A block that cannot run in a test says why in a comment right above it: `<!-- not run: reason -->`. There may be few.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::api::Api;
use crate::support::process::{Servo, binary};
use crate::support::until;

/// Raising this number is a decision: each such block is one that nobody runs.
const NOT_RUN_MAX: usize = 8;
const MARK: &str = "<!-- not run: ";

#[derive(Debug)]
pub(crate) struct Block {
    /// Where its fence stands, from 1.
    line: usize,
    pub(crate) text: String,
    /// Why it is not run.
    reason: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let guides = std::fs::read_dir(root().join("docs/guides")).expect("a folder");
    let mut pages: Vec<_> = guides.map(|entry| entry.expect("an entry").path()).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// Also those whose commands are not run.
fn every_page() -> Vec<PathBuf> {
    let mut pages = pages();
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        pages.push(root().join(name));
    }
    for folder in ["docs", "docs/errors", "docs/adr", "docs/reference"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a page")
}

/// A page of the project.
pub(crate) fn page(path: &str) -> String {
    read(&root().join(path))
}

/// The shell's blocks of a page, in their order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    let mut before = "";
    for (line, number) in page.lines().zip(1..) {
        match line.trim() {
            "```" if is_open => is_open = false,
            "```sh" => {
                is_open = true;
                let reason = before.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->"));
                blocks.push(Block { line: number, text: String::new(), reason: reason.map(str::to_owned) });
            }
            _ if is_open => blocks.last_mut().expect("it is open").text.push_str(&format!("{line}\n")),
            _ => {}
        }
        before = line.trim();
    }
    blocks
}

/// What the shell is given. It stops at the first command that fails, and says in which block.
fn script(blocks: &[Block]) -> String {
    let mut script = String::from("set -eu\n");
    for block in blocks.iter().filter(|block| block.reason.is_none()) {
        script.push_str(&format!("echo '### the block at line {}' >&2\n{}", block.line, block.text));
    }
    script
}

/// A development server whose demo has come to rest: one order waits for an approval.
async fn server(folder: &Path) -> Servo {
    let servo = Servo::dev_with_demo(&folder.join("data")).expect("it starts");
    let api = Api::new();
    until("the demo at rest", async || {
        let (_, counts) = api.get(&servo.url, "/api/serverless-runtime/v1/invocations:counts").await?;
        let of = |status: &str| {
            let items = counts["items"].as_array().into_iter().flatten();
            items.filter(|item| item["status"] == status).filter_map(|item| item["count"].as_u64()).sum::<u64>()
        };
        let is_moving = ["queued", "running", "compensating"].iter().any(|status| of(status) > 0);
        // Orders also rest while they are packed, which takes seconds.
        let path = "/api/serverless-runtime/v1/invocations?$filter=status%20eq%20'suspended'";
        let (_, resting) = api.get(&servo.url, path).await?;
        let waits = resting["items"].as_array()?.iter().all(|item| item["blocked_by"][0]["cause"] == "signal");
        (!is_moving && of("suspended") == 1 && waits).then_some(())
    })
    .await;
    servo
}

pub(crate) async fn run(script: &str, folder: &Path, url: &str) -> Output {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_servo"), bin.join("servo")).expect("a link");
    let work = folder.join("work");
    std::fs::create_dir(&work).expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).expect("a path");
    // Only to have the same variables left out.
    let clean = binary();
    let mut command = tokio::process::Command::new("sh");
    for (name, value) in clean.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.arg("-c").arg(script).current_dir(&work).env("PATH", path).env("SERVO_SERVER", url);
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder.join("config")).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(crate::support::PATIENCE, command.output()).await;
    output.expect("a page takes less than two minutes").expect("sh runs")
}

async fn check(page: &Path) {
    let blocks = blocks(&read(page));
    if blocks.iter().all(|block| block.reason.is_some()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let servo = server(folder.path()).await;
    let output = run(&script(&blocks), folder.path(), &servo.url).await;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {:?}\n{stdout}\n{stderr}", page.display(), output.status);
    assert!(servo.stop().success(), "the server is well");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_readme_works() {
    check(&root().join("README.md")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_guides_works() {
    for page in pages().iter().filter(|page| !page.ends_with("README.md")) {
        check(page).await;
    }
}

#[test]
fn few_blocks_are_not_run_and_each_says_why() {
    let all: Vec<_> = pages().iter().flat_map(|page| blocks(&read(page))).collect();
    let reasons: Vec<_> = all.iter().filter_map(|block| block.reason.as_deref()).collect();
    assert!(reasons.iter().all(|reason| reason.len() > 10), "{reasons:?}");
    assert!(reasons.len() <= NOT_RUN_MAX, "{} blocks are not run: {reasons:?}", reasons.len());
    assert!(all.len() - reasons.len() >= 20, "the blocks were found");
    let marks: usize = pages().iter().map(|page| read(page).matches(MARK).count()).sum();
    assert_eq!(marks, reasons.len(), "a mark stands right above its block");
}

/// The control: a page with a mistake does not pass, and the mistake's block is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_command_in_a_page_is_found() {
    let page = "```sh\nX=1\n```\n\n<!-- not run: because -->\n```sh\nfalse\n```\ntext\n```sh\nservo runs lost $X\necho behind\n```\n";
    let found = blocks(page);
    assert_eq!(found.iter().map(|block| block.line).collect::<Vec<_>>(), [1, 6, 10]);
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&script(&found), folder.path(), "http://127.0.0.1:1").await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("line 10") && !stderr.contains("line 6") && output.stdout.is_empty(), "{stderr}");
}

/// Commands in running text are typed, too: they name commands that exist, on every page there is.
#[test]
fn commands_in_running_text_exist() {
    let commands = <servo_cli::Cli as clap::CommandFactory>::command();
    let mut seen = 0;
    for page in every_page() {
        for span in read(&page).split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("servo ")) {
            let mut at = &commands;
            for word in span
                .split_whitespace()
                .take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
            {
                if !at.has_subcommands() || word.starts_with('-') {
                    break;
                }
                at = at.find_subcommand(word).unwrap_or_else(|| panic!("{}: `servo {span}`", page.display()));
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} commands in the texts");
}

/// What a page's headings are linked by: their letters and digits in small, with `-` for each space, as GitHub has it.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#').strip_prefix(' ');
        let Some(heading) = heading.filter(|_| line.starts_with('#') && !is_code) else { continue };
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        anchors.push(anchor);
    }
    anchors
}

/// A link to a file of the project leads to one, and to a heading of a page if it names one.
#[test]
fn links_between_pages_lead_somewhere() {
    let (mut seen, mut headings) = (0, 0);
    for page in every_page() {
        let (text, folder) = (read(&page), page.parent().expect("a folder").to_owned());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
            if link.is_empty() || link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            assert!(target.exists(), "{}: {link}", page.display());
            seen += 1;
            if let Some(anchor) = anchor.filter(|_| target.extension().is_some_and(|end| end == "md")) {
                assert!(anchors(&read(&target)).iter().any(|known| known == anchor), "{}: {link}", page.display());
                headings += 1;
            }
        }
    }
    assert!(seen > 50 && headings > 50, "{seen} links, {headings} to headings");
}

#[test]
fn headings_have_anchors() {
    let page = "# A page\n\n```sh\n# no heading\n```\n### `GET /v1/runs/{id}`\n#tag\n## What it's for\n";
    assert_eq!(anchors(page), ["a-page", "get-v1runsid", "what-its-for"]);
}
