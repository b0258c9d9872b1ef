//! S16: whatever a request can grow by has a limit. Each is asked for at its limit, where it is taken, and one beyond, where it is
//! refused and changes nothing; and the worst that fits into all of them costs a bounded time.

mod compressed;
mod heads;
mod slow;
mod table;
mod worst;

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Options, Server, endless, wait_for};
use crate::serverless::support::{Obedient, definition_of};

const PREFIX: &str = "/api/serverless-runtime/v1";
const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.echo.v1~";
const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~vendor.app.flow.v1~";

/// A server with something of everything: a run, an invocation and an execution that do not end, and a function of each kind.
struct Scene {
    server: Server,
    run: String,
    invocation: String,
    execution: String,
}

impl Scene {
    async fn new(options: Options) -> Self {
        let handlers = Arc::new(Obedient::default());
        let server = Server::with(Options { handlers, ..options }).await;
        for (name, durable) in [("plain", false), ("durable", true)] {
            let spec = json!({"reach": {"kind": "inProcess"}, "durable": durable});
            let answer = server.send(Method::PUT, &format!("/v1/functions/{name}"), "", Some(&spec)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        for address in [FUNCTION, WORKFLOW] {
            activate(&server, &definition_of("default", address)).await;
        }
        let run = server.start_run(endless()).await.to_string();
        let begin = json!({"entrypoint_id": WORKFLOW, "params": {"do": "hang"}});
        let begun = server.post(&format!("{PREFIX}/invocations"), &begin).await;
        assert_eq!(begun.status, 201, "{}", begun.text);
        let invocation = begun.json["record"]["id"].as_str().unwrap().to_owned();
        let path = format!("{PREFIX}/invocations/{invocation}");
        wait_for("the invocation to run", async || (server.get(&path).await.json["status"] == "running").then_some(()))
            .await;
        let execution = hanging(&server).await;
        Self { server, run, invocation, execution }
    }

    /// All that requests could have made.
    async fn contents(&self) -> Value {
        let list = async |path: &str| {
            let answer = self.server.get(path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            answer.json
        };
        // What an execution that runs has cost so far is part of its row, and is not what requests make.
        let ids = |page: &Value, name: &str| -> Vec<String> {
            page["items"].as_array().unwrap().iter().map(|item| item[name].to_string()).collect()
        };
        let events = list(&format!("/v1/runs/{}/events?limit=1000", self.run)).await;
        let messages = list(&format!("/v1/runs/{}/events?limit=1000", self.invocation)).await;
        json!({
            "runs": ids(&list("/v1/runs?limit=1000").await, "runId"),
            "functions": ids(&list("/v1/functions?limit=1000").await, "name"),
            "keys": ids(&list("/v1/keys").await, "id"),
            "entrypoints": ids(&list(&format!("{PREFIX}/entrypoints?limit=200")).await, "id"),
            "events": events["lastEventSeq"],
            "messages": messages["lastEventSeq"],
        })
    }
}

/// Starts an execution that never ends and gives its ARN, escaped.
async fn hanging(server: &Server) -> String {
    let request = server.request(Method::POST, "/2015-03-31/functions/durable/invocations?Qualifier=%24LATEST");
    let answer = Answer::of(request.header("x-amz-invocation-type", "Event").body(r#"{"do":"hang"}"#)).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    escaped(answer.headers["x-amz-durable-execution-arn"].to_str().unwrap())
}

async fn activate(server: &Server, definition: &Value) {
    let answer = server.post(&format!("{PREFIX}/entrypoints"), definition).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let id = answer.json["id"].as_str().unwrap();
    let active = json!({"action": "activate"});
    let answer = server.post(&format!("{PREFIX}/entrypoints/{id}:status"), &active).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// As part of a path or a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
