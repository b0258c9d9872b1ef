//! Steps that take long: that they began is recorded, so that a run names the step it hangs in, and others go on meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_adapter_starlark::{EgressSettings, Settings};
use servo_model::invocation::Checkpointing;
use servo_model::operation::{ErrorObject, OperationStatus};
use servo_wire::lambda::{INVALID_TOKEN, InvocationStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::execution::Execution;
use crate::support::{World, code, settings};

fn impatient() -> Settings {
    let egress = EgressSettings { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], ..EgressSettings::default() };
    Settings { step_told_after: Duration::from_millis(20), egress, ..settings() }
}

/// Code that goes round and round.
const HANGS: &str = r#"
def round():
    for a in range(1000000000):
        for b in range(1000000000):
            pass

def main(ctx, input):
    ctx.step("quick", lambda: 1)
    at = ctx.now()
    ctx.map([1], lambda n: ctx.step("hangs", round))
"#;

#[tokio::test]
async fn a_step_that_hangs_is_told_with_all_that_led_to_it() {
    let world = World::with(impatient());
    let execution = Execution::new(&world, HANGS, "null");
    tokio::select! {
        output = execution.invoke(&world) => panic!("it hangs, and yet: {output:?}"),
        // The quick step and the time, begun and ended; the map, its branch and the step in it, begun.
        () = execution.until_told(7) => {}
    }
    assert_eq!(
        execution.told()[4..],
        ["CONTEXT/Map - START", "CONTEXT/MapIteration map-item-0 START", "STEP/Step hangs START"]
    );
}

/// Where the author says what is recorded, nobody else does.
#[tokio::test]
async fn other_strategies_are_told_nothing() {
    for checkpointing in [Checkpointing::Manual, Checkpointing::Disabled] {
        let world = World::with(impatient());
        let source = r#"
def slow():
    for n in range(3000000):
        pass

def main(ctx, input):
    ctx.step("slow", slow)
    ctx.fail("over")
"#;
        let execution = Execution::with(&world, servo_model::function::Code { checkpointing, ..code(source) }, "null");
        assert_eq!(execution.fails(&world).await.message, "over");
        assert_eq!(execution.told(), Vec::<String>::new());
    }
}

/// A server that answers when it is told to.
struct Server {
    url: String,
    asked: Arc<Notify>,
    answer: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with it")]
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(Notify::new());
        let asked = Arc::new(Notify::new());
        let (told, is_asked) = (answer.clone(), asked.clone());
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(stream.read(&mut [0; 4096]).await);
            is_asked.notify_one();
            told.notified().await;
            let text = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone";
            drop(stream.write_all(text.as_bytes()).await);
        });
        Self { url, asked, answer, task }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const ASKS: &str = "def main(ctx, input):\n    return ctx.http('GET', input, name = 'ask').body\n";

/// A request can take long, too. The step goes on where it was: its end is told by itself, and replays as ever.
#[tokio::test]
async fn a_step_that_took_long_ends_as_ever() {
    let server = Server::start().await;
    let world = World::with(impatient());
    let execution = Execution::new(&world, ASKS, &json!(server.url).to_string());
    let answering = async {
        execution.until_told(1).await;
        assert_eq!(execution.told(), ["STEP/Step ask START"]);
        server.answer.notify_one();
    };
    let (result, ()) = tokio::join!(execution.returns(&world), answering);
    assert_eq!(result, json!("done"));
    assert_eq!(execution.told(), ["STEP/Step ask START", "STEP/Step ask SUCCEED"]);
    assert_eq!(execution.checkpoints(), 2);
    assert_eq!(execution.returns(&world).await, json!("done"));
    assert_eq!(execution.checkpoints(), 2);
    assert!(execution.statuses().contains(&OperationStatus::Succeeded));
}

/// What came while another branch was busy is gone on from at once: the service told it, and will not call again for it.
#[tokio::test]
async fn a_branch_goes_on_with_what_came_meanwhile() {
    let server = Server::start().await;
    let world = World::with(Settings { egress: impatient().egress, ..settings() });
    let source = r#"
def main(ctx, input):
    def first():
        ctx.sleep(1)
        ctx.log("slept")
        return ctx.step("after", lambda: 1)
    def second():
        ctx.step("before", lambda: 0)
        ctx.http("GET", input, name = "ask")
        ctx.sleep("1d")
    ctx.parallel([first, second])
"#;
    let execution = Execution::new(&world, source, &json!(server.url).to_string());
    let answering = async {
        server.asked.notified().await;
        execution.advance(1);
        server.answer.notify_one();
    };
    tokio::join!(execution.suspends(&world), answering);
    let told = execution.told();
    assert!(told.contains(&"STEP/Step after SUCCEED".to_owned()), "{told:?}");
    assert_eq!(world.lines.texts(), ["slept"]);
    let checkpoints = execution.checkpoints();
    execution.suspends(&world).await;
    assert_eq!(execution.checkpoints(), checkpoints, "nothing was left undone");
}

/// What the service said to the beginning is heard at the end: somebody else has the execution.
#[tokio::test]
async fn a_beginning_that_was_refused_ends_the_call() {
    let server = Server::start().await;
    let world = World::with(impatient());
    let execution = Execution::new(&world, ASKS, &json!(server.url).to_string());
    execution.refuse_next(ErrorObject::new("InvalidParameterValueException", INVALID_TOKEN));
    let answering = async {
        while execution.refusals() > 0 {
            tokio::task::yield_now().await;
        }
        server.answer.notify_one();
    };
    let (output, ()) = tokio::join!(execution.invoke(&world), answering);
    assert_eq!(output.status, InvocationStatus::Pending);
    assert_eq!(execution.told(), Vec::<String>::new(), "its end is not recorded without its beginning");
}
