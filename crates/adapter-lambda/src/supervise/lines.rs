//! What supervised workers write: line by line, cut at a limit, with the invocation they belong to where that is known.

use std::io::Read as _;
use std::os::fd::AsFd;

use servo_adapter::{CapturedLine, Source};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot};

use crate::port::PortId;
use crate::pull::{Hub, Owner, run_of};
use crate::settings::Parts;

const LINE_BYTES_MAX: usize = 64 * 1024;

/// What is read at once, and how often before a drain gives up: as much as a pipe can hold, several times.
const READ_BYTES: usize = 16 * 1024;
const DRAIN_READS_MAX: usize = 64;

/// Somebody wants to know when all is read that is there.
pub(crate) type Drain = oneshot::Sender<()>;

/// Lines on their way from one of a worker's outputs.
pub(super) struct Lines<'a> {
    pub(super) source: Source,
    pub(super) hub: &'a Hub,
    pub(super) port: PortId,
    pub(super) parts: &'a Parts,
    pub(super) line: Vec<u8>,
}

/// Reads until the worker, and all that it started, closed their end.
pub(super) async fn forward(
    mut output: impl AsyncRead + AsFd + Unpin,
    mut drains: mpsc::UnboundedReceiver<Drain>,
    mut lines: Lines<'_>,
) {
    // The same pipe. The runtime may not know yet that there is something in it; a read of our own does.
    let direct = output.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        tokio::select! {
            biased;
            read = output.read(&mut bytes) => match read {
                Ok(0) => break,
                Ok(length) => lines.take(&bytes[..length]),
                Err(error) => {
                    tracing::debug!(%error, function = lines.hub.function, "output of a worker ended");
                    break;
                }
            },
            Some(drain) = drains.recv() => {
                if let Ok(mut direct) = direct.as_ref() {
                    for _ in 0..DRAIN_READS_MAX {
                        match direct.read(&mut bytes) {
                            Ok(length) if length > 0 => lines.take(&bytes[..length]),
                            // Empty, or ended; the latter is found again above.
                            Ok(_) | Err(_) => break,
                        }
                    }
                }
                // The invocation is over: what it left without an end of line is its own, not the beginning of the next one's.
                lines.finish();
                let _ = drain.send(());
            }
        }
    }
    lines.finish();
}

impl Lines<'_> {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let room = LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                self.emit();
            }
        }
    }

    fn finish(&mut self) {
        if !self.line.is_empty() {
            self.emit();
        }
    }

    fn emit(&mut self) {
        let Self { source, hub, port, parts, ref mut line } = *self;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let text = String::from_utf8_lossy(line).into_owned();
        line.clear();
        let named = Named::read(&text);
        let run = named.execution_arn.as_deref().and_then(run_of);
        let owner = hub.owner_of_line(port, named.request_id.as_deref(), run.as_ref());
        let (request_id, run_id) = owner.unzip();
        if source == Source::Stderr {
            hub.with_port(port, |port| port.note_last_word(request_id.as_deref(), &text));
        }
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
}

/// A line of our own in the log of a run.
pub(super) fn of_us(text: String, (request_id, run_id): Owner, hub: &Hub, parts: &Parts) {
    parts.lines.line(CapturedLine {
        tenant: hub.tenant.clone(),
        function: hub.function.clone(),
        request_id: Some(request_id),
        run_id: Some(run_id),
        execution_arn: None,
        source: Source::Stderr,
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
