//! What supervised workers write: line by line, cut at a limit, with the invocation they belong to where that is known.

use servo_adapter::{CapturedLine, Source};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::port::PortId;
use crate::pull::{Hub, run_of};
use crate::settings::Parts;

const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reads until the worker, and all that it started, closed their end.
pub(super) async fn forward(output: impl AsyncRead + Unpin, source: Source, hub: &Hub, port: PortId, parts: &Parts) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        let (length, ended) = match output.fill_buf().await {
            Ok([]) => break,
            Ok(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let part = &bytes[..end.unwrap_or(bytes.len())];
                let room = LINE_BYTES_MAX - line.len();
                line.extend_from_slice(&part[..part.len().min(room)]);
                (end.map_or(bytes.len(), |end| end + 1), end.is_some())
            }
            Err(error) => {
                tracing::debug!(%error, function = hub.function, "output of a worker ended");
                break;
            }
        };
        output.consume(length);
        if ended {
            emit(&mut line, source, hub, port, parts);
        }
    }
    if !line.is_empty() {
        emit(&mut line, source, hub, port, parts);
    }
}

fn emit(line: &mut Vec<u8>, source: Source, hub: &Hub, port: PortId, parts: &Parts) {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    let text = String::from_utf8_lossy(line).into_owned();
    line.clear();
    let named = Named::read(&text);
    let run = named.execution_arn.as_deref().and_then(run_of);
    let owner = hub.owner_of_line(port, named.request_id.as_deref(), run.as_ref());
    let (request_id, run_id) = owner.unzip();
    parts.lines.line(CapturedLine {
        tenant: hub.tenant.clone(),
        function: hub.function.clone(),
        request_id,
        run_id,
        execution_arn: named.execution_arn,
        source,
        text,
        at: (parts.now)(),
    });
}

/// What a structured line says about where it belongs, in the spellings of the runtimes in use.
#[derive(Default)]
struct Named {
    request_id: Option<String>,
    execution_arn: Option<String>,
}

impl Named {
    fn read(text: &str) -> Self {
        if !text.starts_with('{') {
            return Self::default();
        }
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(text) else { return Self::default() };
        let first = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str().map(str::to_owned));
        Self {
            request_id: first(&["requestId", "AWSRequestId", "request_id"]),
            execution_arn: first(&["executionArn", "durableExecutionArn", "execution_arn"]),
        }
    }
}
