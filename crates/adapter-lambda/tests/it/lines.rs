//! What workers write, and to which invocation it belongs.

use std::path::PathBuf;

use servo_adapter_lambda::{CapturedLine, Source, WorkerCommand};
use servo_model::Timestamp;

use crate::support::{Fixture, NOW, fixture, pull_call, soon, tenant, until};

/// A worker that writes whatever file the test puts into its folder.
struct Writer {
    fixture: Fixture,
    dir: tempfile::TempDir,
    address: std::net::SocketAddr,
}

impl Writer {
    async fn start() -> Self {
        let fixture = fixture();
        let dir = tempfile::tempdir().unwrap();
        let text = "while :; do mv line.now line.taken 2>/dev/null && cat line.taken && mv line.taken line.written; sleep 0.01; done";
        let args = vec!["-c".to_owned(), text.to_owned()];
        let command = WorkerCommand { args, dir: Some(PathBuf::from(dir.path())), ..WorkerCommand::new("/bin/sh") };
        let address = fixture.handlers.supervise(&tenant(), "f", command).await.unwrap();
        Self { fixture, dir, address }
    }

    /// Ready when it is on its way.
    async fn print(&self, text: &str) {
        let path = |name: &str| self.dir.path().join(name);
        std::fs::write(path("line.fresh"), text).unwrap();
        std::fs::rename(path("line.fresh"), path("line.now")).unwrap();
        until("the worker has written", || path("line.written").exists()).await;
        std::fs::remove_file(path("line.written")).unwrap();
    }

    async fn write(&self, text: &str) -> CapturedLine {
        let before = self.fixture.lines.all().len();
        self.print(&format!("{text}\n")).await;
        until("the line is there", || self.fixture.lines.all().len() > before).await;
        self.fixture.lines.all().pop().unwrap()
    }
}

#[tokio::test]
async fn a_line_belongs_to_the_only_invocation_or_to_the_one_it_names() {
    let writer = Writer::start().await;
    assert_eq!(writer.write("before").await.request_id, None);
    let _first = writer.fixture.start(pull_call("r1"));
    soon(writer.fixture.next(writer.address)).await;
    let line = writer.write("hello").await;
    let expected = CapturedLine {
        tenant: tenant(),
        function: "f".to_owned(),
        request_id: Some("r1".to_owned()),
        run_id: line.run_id.clone(),
        execution_arn: None,
        source: Source::Stdout,
        text: "hello".to_owned(),
        at: Timestamp::from_millis(NOW),
    };
    assert_eq!(line, expected);
    assert!(line.run_id.is_some());
    let _second = writer.fixture.start(pull_call("r2"));
    soon(writer.fixture.next(writer.address)).await;
    assert_eq!(writer.write("whose?").await.request_id, None);
    for field in ["requestId", "AWSRequestId", "request_id"] {
        let line = writer.write(&format!(r#"{{"{field}":"r1"}}"#)).await;
        assert_eq!(line.request_id.as_deref(), Some("r1"), "{field}");
    }
    let arn = "arn:aws:lambda:us-east-1:000000000000:function:f:1/durable-execution/n/run_r2";
    let line = writer.write(&format!(r#"{{"executionArn":"{arn}"}}"#)).await;
    assert_eq!((line.request_id.as_deref(), line.execution_arn.as_deref()), (Some("r2"), Some(arn)));
    let foreign = writer.write(r#"{"requestId":"of-somebody-else"}"#).await;
    assert_eq!(foreign.request_id, None, "a handler cannot write into the logs of others");
    assert_eq!(writer.fixture.respond(writer.address, "r2", "x").await, 202);
    assert_eq!(writer.write("still").await.request_id.as_deref(), Some("r1"));
    assert_eq!(writer.fixture.respond(writer.address, "r1", "x").await, 202);
    assert_eq!(writer.write("after").await.request_id.as_deref(), Some("r2"), "the last one handed out");
    soon(writer.fixture.handlers.stop()).await;
}

/// What an invocation leaves without an end of line stays its own, and is there before the next one begins.
#[tokio::test]
async fn an_unfinished_line_is_not_the_beginning_of_the_next_invocations() {
    let writer = Writer::start().await;
    writer.write("it runs").await;
    for id in ["r1", "r2", "r3"] {
        let call = writer.fixture.start(pull_call(id));
        assert_eq!(soon(writer.fixture.next(writer.address)).await.0, id);
        writer.print(&format!("whole of {id}\nrest of {id}")).await;
        assert_eq!(writer.fixture.respond(writer.address, id, "x").await, 202);
        assert!(soon(call).await.unwrap().is_ok());
        let lines = writer.fixture.lines.all();
        let own: Vec<_> = lines.iter().filter(|line| line.request_id.as_deref() == Some(id)).collect();
        let texts: Vec<_> = own.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, [format!("whole of {id}"), format!("rest of {id}")]);
        assert!(own.iter().all(|line| line.run_id.is_some()));
    }
    assert_eq!(writer.fixture.lines.all().len(), 7);
    soon(writer.fixture.handlers.stop()).await;
}

#[tokio::test]
async fn long_lines_are_cut_and_odd_bytes_replaced() {
    let fixture = fixture();
    let text = "head -c 200000 /dev/zero | tr '\\0' a; echo; printf 'odd \\377\\r\\n' >&2; echo end; printf unfinished";
    let args = vec!["-c".to_owned(), format!("{text}; exec sleep 0")];
    let command = WorkerCommand { args, ..WorkerCommand::new("/bin/sh") };
    fixture.handlers.supervise(&tenant(), "f", command).await.unwrap();
    until("the last line is there", || fixture.lines.find("unfinished").is_some()).await;
    let long = fixture.lines.find("aaa").unwrap();
    assert_eq!(long.text.len(), 64 * 1024);
    let odd = fixture.lines.find("odd").unwrap();
    assert_eq!((odd.text.as_str(), odd.source.as_str()), ("odd \u{fffd}", "stderr"));
    assert_eq!(fixture.lines.find("end").unwrap().source.as_str(), "stdout");
    soon(fixture.handlers.stop()).await;
}
