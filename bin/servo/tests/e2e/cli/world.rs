//! A server with something of everything, and a maker of things to act on.

use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::process::{Servo, binary};

const TAX: &str = "def main(ctx, input):\n    ctx.log(\"a line\")\n    return {\"tax\": 1}\n";
const ORDER: &str = r#"
def charge():
    fail("no money")

def main(ctx, input):
    if input.get("broken"):
        ctx.step("charge", charge)
    answer = ctx.wait_signal("approval")
    return {"by": "somebody"}
"#;

pub(super) struct World {
    pub(super) servo: Servo,
    pub(super) folder: TempDir,
    number: AtomicU64,
}

/// The last letters of an id, more of them than the live log prints, so that no two runs of a test have them.
fn ending(id: &str) -> String {
    id[id.len() - 10..].to_owned()
}

impl World {
    pub(super) async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
        let world = Self { servo, folder, number: AtomicU64::new(0) };
        let step = |with: Value| json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "steps": [{"stepId": "a", "with": with}]});
        world.write("plan.json", &step(json!({})).to_string());
        world.write("slow.json", &step(json!({"sleepMs": 3_600_000})).to_string());
        world.write("broken.json", &step(json!({"failAttempts": 9})).to_string());
        world.write("tax.star", TAX);
        world.write("order.star", ORDER);
        world.write("servo.toml", "[engines]\nmock = true\n");
        world.must("entrypoints register tax.star --name vendor.app.tax --activate");
        world.must("entrypoints register order.star --name vendor.app.order --workflow --activate");
        let handler = crate::support::handler::serve(&world.servo.url).await;
        world.must(&format!("functions register approve --push {handler}"));
        world.must("runs start plan.json --wait");
        world
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("a file");
    }

    fn new_name(&self) -> String {
        format!("n{}", self.number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A line as words, with new things in place of `{…}`. A blank that belongs to a word is written `␣`.
    pub(super) fn words(&self, line: &str) -> Vec<String> {
        line.split(' ').map(|word| self.word(word).replace('␣', " ")).collect()
    }

    fn word(&self, word: &str) -> String {
        // JSON has braces, too.
        match word.split_once('{').and_then(|(before, rest)| Some((before, rest.strip_suffix('}')?))) {
            Some((before, what)) if !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                format!("{before}{}", self.make(what))
            }
            _ => word.to_owned(),
        }
    }

    fn make(&self, what: &str) -> String {
        let draft = || self.id(&format!("entrypoints register tax.star --name vendor.app.{}", self.new_name()));
        let then = |id: String, verb: &str| {
            self.must(&format!("{verb} {id}"));
            id
        };
        match what {
            "new" => self.new_name(),
            "last" => format!("n{}", self.number.load(Ordering::Relaxed)),
            "path" => self.new_name(),
            "finished" => self.id("runs start plan.json --wait"),
            "slow" => self.id("runs start slow.json"),
            "paused" => then(self.id("runs start slow.json"), "runs pause"),
            "unapproved" => self.id("runs start slow.json --approval"),
            "broken" => {
                let output = self.run(&self.words("runs start broken.json --wait"), "ids");
                assert_eq!(output.status.code(), Some(7), "{}", super::said(&output));
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            "exported" => {
                let (run, file) = (self.make("finished"), self.new_name());
                self.must(&format!("runs export {run} --file {file}"));
                self.must(&format!("runs delete {run} --yes"));
                file
            }
            "draft" => draft(),
            "active" => then(draft(), "entrypoints activate"),
            "disabled" => then(self.make("active"), "entrypoints disable"),
            "done" => self.id("invocations start vendor.app.tax --wait"),
            "waiting" => self.until_status("{}", "suspended"),
            "failed" => self.until_status("{\"broken\":true}", "failed"),
            "logged" => self.make("done"),
            "function" => self.id(&format!("functions register {} --pull", self.new_name())),
            "aliased" => {
                let function = self.make("function");
                self.must(&format!("functions alias {function} live 1"));
                function
            }
            "execution" => self.callback().0,
            "callback" => self.callback().1,
            "backup" => {
                let file = self.new_name();
                self.must(&format!("store backup {file}"));
                file
            }
            "finishedend" => ending(&self.make("finished")),
            "doneend" => ending(&self.make("done")),
            "keyend" => ending(&self.make("key")),
            "workflow" => self.make("waiting"),
            "draftname" => {
                let name = format!("vendor.app.{}", self.new_name());
                self.must(&format!("entrypoints register tax.star --name {name}"));
                name
            }
            "outdated" => {
                let name = self.make("draftname");
                self.must(&format!("entrypoints activate {name}"));
                self.must(&format!("entrypoints deprecate {name}"));
                name
            }
            "key" => self.id(&format!("keys create {} --role viewer", self.new_name())),
            "profile" => {
                let name = self.new_name();
                self.must(&format!("profiles add {name} --server http://127.0.0.1:1"));
                name
            }
            other => panic!("nobody knows how to make {{{other}}}"),
        }
    }

    /// A new order in this status.
    fn until_status(&self, params: &str, status: &str) -> String {
        let id = self.id(&format!("invocations start vendor.app.order --workflow --mode async --params {params}"));
        self.look(&format!("invocations get {id}"), |record| (record["status"] == status).then_some(()));
        id
    }

    /// An execution that waits for a callback, and the callback.
    fn callback(&self) -> (String, String) {
        let arn = self.id("functions invoke approve --event --payload {}");
        let id = self.look(&format!("executions history {arn}"), |history| {
            let found = history["Events"].as_array()?.iter().find(|event| event["EventType"] == "CallbackStarted")?;
            found["CallbackStartedDetails"]["CallbackId"].as_str().map(str::to_owned)
        });
        (arn, id)
    }

    /// Looks until there is something to see.
    fn look<T>(&self, line: &str, see: impl Fn(&Value) -> Option<T>) -> T {
        let end = std::time::Instant::now() + crate::support::PATIENCE;
        loop {
            let output = self.run(&self.words(line), "json");
            let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            match see(&document) {
                Some(seen) => return seen,
                None => assert!(std::time::Instant::now() < end, "not in time: {line}: {document}"),
            }
        }
    }

    /// The one id that a line prints.
    pub(super) fn id(&self, line: &str) -> String {
        let output = self.run(&self.words(line), "ids");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(
            output.status.success() && !text.is_empty() && !text.contains('\n'),
            "{line}: {}",
            super::said(&output)
        );
        text
    }

    fn must(&self, line: &str) {
        let output = self.run(&self.words(line), "json");
        assert!(output.status.success(), "{line}: {}", super::said(&output));
    }

    pub(super) fn command(&self) -> std::process::Command {
        let mut command = binary();
        command.current_dir(self.folder.path()).env("XDG_CONFIG_HOME", self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, words: &[String], format: &str) -> Output {
        let mut command = self.command();
        command.args(words).args(["-o", format]);
        // A profile's server is not to be overruled where it is the point.
        if words[0] != "profiles" {
            command.args(["--server", &self.servo.url]);
        }
        command.output().expect("servo runs")
    }
}
