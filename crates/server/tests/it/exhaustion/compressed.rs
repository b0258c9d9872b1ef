//! S16: bodies are never unpacked, so that a small one cannot become a large one. Compressed ones are refused, whatever is in them.

use reqwest::Method;
use serde_json::json;

use super::{FUNCTION, PREFIX, Scene};
use crate::harness::{Answer, Options, one_step, start};

/// What `gzip` makes of 64 MiB of spaces and a word, and what holds a small document as it is: a head, blocks, and a trailer that
/// nobody gets to.
fn gzip(blocks: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    packed.extend_from_slice(blocks);
    packed.extend_from_slice(&[0; 8]);
    packed
}

/// A block of bytes that are not compressed.
fn stored(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), text].concat()
}

/// The middle of a long run of one byte: each of these bytes becomes more than a thousand.
fn bomb() -> Vec<u8> {
    let mut blocks = vec![0xed, 0xc1, 0x01, 0x01, 0x00, 0x00, 0x00, 0x80, 0x90, 0xfe, 0xaf, 0xee, 0x08, 0x0a];
    blocks.extend(std::iter::repeat_n(0, 64 * 1024));
    gzip(&blocks)
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    let scene = Scene::new(Options::default()).await;
    let run = start(one_step()).to_string();
    let invocation = json!({"entrypoint_id": FUNCTION, "params": {}}).to_string();
    let stop = format!("/2025-12-01/durable-executions/{}/stop", scene.execution);
    let before = scene.contents().await;
    for (path, good, name) in [
        ("/v1/runs", run.as_str(), "MALFORMED_JSON"),
        ("/v1/runs/import", "{}", "MALFORMED_JSON"),
        ("/runtime/commands", "{}", "MALFORMED_JSON"),
        (&format!("{PREFIX}/invocations"), invocation.as_str(), "bad_request"),
        (&stop, "{}", "UnsupportedMediaTypeException"),
        ("/2015-03-31/functions/plain/invocations", "{}", "UnsupportedMediaTypeException"),
    ] {
        for encoding in ["gzip", "br", "zstd", "deflate", "gzip, identity", "identity, gzip", "x"] {
            for body in [bomb(), gzip(&stored(good.as_bytes())), good.as_bytes().to_vec(), Vec::new()] {
                let request = scene.server.request(Method::POST, path).header("content-encoding", encoding);
                let answer = Answer::of(request.body(body.clone())).await;
                let header = answer.headers.get("x-amzn-errortype").and_then(|name| name.to_str().ok());
                let code = header.or(answer.json["code"].as_str()).unwrap_or_default();
                assert!(code == name || code.ends_with(&format!(".err.{name}.v1~")), "{path}: {}", answer.text);
                assert!(matches!(answer.status.as_u16(), 400 | 415), "{path} {encoding}: {}", answer.text);
            }
        }
        // Nor is it unpacked where nobody says that it is packed.
        let request = scene.server.request(Method::POST, path).body(bomb());
        let answer = Answer::of(request).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.text);
    }
    assert_eq!(scene.contents().await, before);
    let request = scene.server.request(Method::POST, "/v1/runs").header("content-encoding", "identity").body(run);
    assert_eq!(Answer::of(request).await.status, 201, "what says that it is not compressed is taken");
}
