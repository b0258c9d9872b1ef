//! Commands in a pipeline: ids from one to the next, and a look that goes on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::said;
use super::world::World;

/// What one command lists, another acts on; a line that is no id stops it before anything happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_go_from_one_command_to_the_next() {
    let world = World::open().await;
    let waiting = [world.words("{waiting}").remove(0), world.words("{waiting}").remove(0)];
    let wrong = given(&world, &["invocations", "cancel", "-"], &format!("{}\nINVOCATION  STATUS\n", waiting[0]));
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
    assert_eq!(status(&world, &waiting[0]), "suspended");

    let servo = env!("CARGO_BIN_EXE_servo");
    let line = format!(
        "'{servo}' invocations list -o ids --filter \"status eq 'suspended'\" | '{servo}' invocations cancel - -o json"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("SERVO_SERVER", &world.servo.url).env("XDG_CONFIG_HOME", world.folder.path());
    let output = shell.output().expect("sh runs");
    assert!(output.status.success(), "{}", said(&output));
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
    assert_eq!(answers.len(), 2);
    for id in &waiting {
        assert_eq!(status(&world, id), "canceled");
    }

    // Executions are listed by ARN, and every command that takes a run takes that.
    let arn = world.words("{execution}").remove(0);
    let run = arn.rsplit('/').next().expect("a run");
    let events = given(&world, &["runs", "events", "-", "-o", "jsonl"], &format!("{arn}\n"));
    assert!(String::from_utf8_lossy(&events.stdout).contains(run), "{}", said(&events));
    let stopped = given(&world, &["executions", "stop", "-"], &format!("{arn}\n"));
    assert!(stopped.status.success(), "{}", said(&stopped));
    let nothing = given(&world, &["runs", "cancel", "-"], "");
    assert!(nothing.status.success() && said(&nothing).contains("no ids"), "{}", said(&nothing));
}

/// Much work says now and then how far it has come, and one refusal does not stop the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_work_tells_how_far_it_is() {
    let world = World::open().await;
    let mut ids: Vec<String> = (0..20).map(|_| world.id("runs start slow.json")).collect();
    ids.push("inv_nobody".to_owned());
    let output = given(&world, &["runs", "cancel", "-", "-o", "ids"], &ids.join("\n"));
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 20);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cancel: 11 of 21") && told.contains("inv_nobody"), "{told}");
}

/// Not on a terminal: every new or changed item is one line of JSON, until somebody has seen enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_prints_news_until_it_is_interrupted() {
    let world = World::open().await;
    let mut command = world.command();
    command.args(["invocations", "list", "--watch", "--every", "100ms", "--server", &world.servo.url]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("servo runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let id = world.id("invocations start vendor.app.order --workflow --mode async --params {}");
    // Endless only if nothing comes, and then the test's own limit ends it.
    loop {
        let line = lines.next().expect("it goes on").expect("text");
        let record: Value = serde_json::from_str(&line).expect("a document per line");
        if record["invocation_id"] == id.as_str() && record["status"] == "suspended" {
            break;
        }
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("ours").code(), Some(130));
}

fn status(world: &World, id: &str) -> String {
    let output = world.run(&world.words(&format!("invocations get {id}")), "json");
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    record["status"].as_str().expect("a word").to_owned()
}

/// Runs a command with this on its standard input.
fn given(world: &World, words: &[&str], input: &str) -> std::process::Output {
    let mut command = world.command();
    command.args(words).args(["--server", &world.servo.url]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("servo runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("ours")
}
