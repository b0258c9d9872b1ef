//! S16: the worst that fits into all limits costs a bounded time. What is counted is the time that the process spends computing,
//! its own and the system's for it: not how long an answer takes, so a busy machine changes little.
//!
//! The goal is 100 ms in a release build. These tests are built without optimisation, in which our own code takes ten to thirty
//! times as long, and they count what the test's own client does, too: hence the factor. What grows with the square of its
//! input is beyond any factor: before they were mended, some of these took minutes, or gigabytes.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{FUNCTION, PREFIX, activate};
use crate::harness::{Options, Server};
use crate::serverless::support::{Obedient, definition_of};
use std::sync::Arc;

const GOAL_MS: u64 = 100;
/// Of a build without optimisation, and of the client beside the server. Most cost a tenth of what it allows.
const DEBUG: u64 = 80;
/// A refusal has at most a hundred issues, whose texts are cut.
const ANSWER_MAX: usize = 4 * MIB;
/// In MiB: requests and answers of 8 MiB, what they are parsed into, and the copies of the client.
const MEMORY_MAX: u64 = 1_500;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What this process has computed so far, in milliseconds.
fn spent() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program may have spaces; what follows it has none.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Clock ticks, of which Linux has a hundred a second.
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// The largest amount of memory that this process has had, in MiB.
fn largest() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

struct Cost {
    what: &'static str,
    ms: u64,
    /// Of the request and of its answer.
    bytes: (usize, usize),
}

/// Sends it and says what it has cost.
#[expect(clippy::print_stdout, reason = "figures for whoever runs it with its output shown")]
async fn cost(what: &'static str, server: &Server, path: &str, body: &str) -> Cost {
    let before = spent();
    let answer = if body.is_empty() { server.get(path).await } else { server.post_text(path, body).await };
    let ms = spent() - before;
    println!("{what}: {ms} ms, {} MiB at most, {} with {} bytes", largest(), answer.status, answer.text.len());
    Cost { what, ms, bytes: (path.len() + body.len(), answer.text.len()) }
}

/// Collects what is too expensive, so that one run tells about all.
fn judge(costs: &[Cost]) {
    let most = GOAL_MS * DEBUG;
    let over: Vec<_> =
        costs.iter().filter(|cost| cost.ms > most).map(|cost| format!("{}: {} ms", cost.what, cost.ms)).collect();
    assert!(over.is_empty(), "more than {most} ms: {over:#?}");
    // An invocation shows its params, and a plan its steps.
    let is_large = |cost: &&Cost| cost.bytes.1 > 2 * cost.bytes.0 + ANSWER_MAX;
    let large: Vec<_> = costs.iter().filter(is_large).map(|cost| (cost.what, cost.bytes)).collect();
    assert!(large.is_empty(), "answers larger than what was asked: {large:?}");
    assert!(largest() < MEMORY_MAX, "{} MiB of memory", largest());
}

async fn server() -> Server {
    let server = Server::with(Options { handlers: Arc::new(Obedient::default()), ..Options::default() }).await;
    let spec = json!({"reach": {"kind": "inProcess"}, "durable": false});
    let answer = server.send(Method::PUT, "/v1/functions/plain", "", Some(&spec)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    server
}

/// Texts that are joined by commas, as many as fit into this many bytes.
fn filled(bytes: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes);
    for index in 0.. {
        let next = item(index);
        if text.len() + next.len() + 1 > bytes {
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&next);
    }
    text
}

/// Bodies that are read and refused.
#[tokio::test]
async fn the_worst_bodies() {
    let server = server().await;
    let size = 8 * MIB - KIB;
    let runs = "/v1/runs";
    let mut costs = Vec::new();
    let deep = format!("{{\"plan\":{}}}", filled(size, |_| format!("{}{}", "[".repeat(63), "]".repeat(63))));
    for (what, body) in [
        ("unclosed brackets", "[".repeat(size)),
        (
            "lists in lists",
            format!("{{\"plan\":[{}]}}", filled(size, |_| format!("{}{}", "[".repeat(60), "]".repeat(60)))),
        ),
        ("lists one after the other", deep),
        ("one name many times", format!("{{{}}}", filled(size, |_| "\"plan\":0".to_owned()))),
        ("many names", format!("{{{}}}", filled(size, |index| format!("\"{index}\":0")))),
        ("many names in a plan", format!("{{\"plan\":{{{}}}}}", filled(size, |index| format!("\"{index}\":0")))),
        ("quotes", format!("{{\"plan\":\"{}\"}}", "\\\"".repeat(size / 2))),
        ("escapes", format!("{{\"plan\":\"{}\"}}", "\\u0041".repeat(size / 6))),
        ("one long number", format!("{{\"plan\":{}}}", "9".repeat(size))),
        ("many long numbers", format!("{{\"plan\":[{}]}}", filled(size, |_| "9".repeat(19)))),
        ("spaces", " ".repeat(size)),
        ("a long unknown name", format!("{{\"{}\":0}}", "n".repeat(size))),
        ("a long name of a number", format!("{{\"plan\":{{\"{}\":{}}}}}", "n".repeat(size - 100), "9".repeat(40))),
        ("a long wrong word", format!("{{\"approvalRequired\":\"{}\"}}", "n".repeat(size))),
    ] {
        costs.push(cost(what, &server, runs, &body).await);
    }
    judge(&costs);
}

/// A plan as large and as entangled as it may be.
#[tokio::test]
async fn the_worst_plans() {
    let server = server().await;
    let mut costs = Vec::new();
    let steps = |count: usize, before: fn(usize) -> Vec<String>| -> Value {
        (0..count).map(|step| json!({"stepId": format!("s{step}"), "dependsOn": before(step)})).collect()
    };
    for (what, steps) in [
        ("a chain", steps(10_000, |step| step.checked_sub(1).map(|on| format!("s{on}")).into_iter().collect())),
        (
            "each on a hundred",
            steps(10_000, |step| (step.saturating_sub(100)..step).map(|on| format!("s{on}")).collect()),
        ),
        ("a circle", steps(10_000, |step| vec![format!("s{}", (step + 1) % 10_000)])),
        ("one name", (0..10_000).map(|_| json!({"stepId": "a"})).collect()),
    ] {
        let mut request = crate::harness::start(steps);
        // A run that began would cost something while the next is looked at.
        request["approvalRequired"] = true.into();
        let body = request.to_string();
        assert!(body.len() < 8 * MIB, "{what}: {}", body.len());
        costs.push(cost(what, &server, "/v1/runs", &body).await);
    }
    judge(&costs);
}

/// Queries as long as they may be.
#[tokio::test]
async fn the_worst_queries() {
    let server = server().await;
    activate(&server, &definition_of("default", FUNCTION)).await;
    let mut costs = Vec::new();
    let long = "x".repeat(30_000);
    let lists: Vec<_> = (0..25).map(|_| format!("correlation_id in ({})", vec!["'a'"; 28].join(","))).collect();
    let nots = format!("{}status eq 'failed'", "not ".repeat(20));
    for (what, query) in [
        ("a cursor", format!("cursor={}", "A".repeat(30_000))),
        ("a filter of lists", format!("%24filter={}", super::escaped(&lists.join(" or ")))),
        ("a filter of nots", format!("%24filter={}", super::escaped(&nots))),
        ("a filter of brackets", format!("%24filter={}", "(".repeat(30_000))),
        ("an unknown name", format!("{long}=1")),
        ("many names", vec!["a=1"; 7_500].join("&")),
        ("one name many times", vec!["limit=1"; 3_750].join("&")),
    ] {
        costs.push(cost(what, &server, &format!("{PREFIX}/invocations?{query}"), "").await);
        costs.push(cost(what, &server, &format!("/v1/runs?{query}"), "").await);
    }
    judge(&costs);
}

fn registered(params: &Value) -> String {
    let mut document = definition_of("default", FUNCTION);
    document["schema"]["params"] = params.clone();
    document.to_string()
}

/// Schemas as large and as expensive as they may be, at their registration.
#[tokio::test]
async fn the_worst_schemas() {
    let server = server().await;
    let mut costs = Vec::new();
    let size = 255 * KIB;
    let members = |text: String| -> Map<String, Value> { serde_json::from_str(&format!("{{{text}}}")).unwrap() };
    let patterns = |make: fn(usize) -> String| {
        members(filled(size, |index| format!("\"p{index}\":{{\"pattern\":{}}}", Value::from(make(index)))))
    };
    let long_name = "n".repeat(size / 2);
    let inside = members(filled(size / 2, |index| format!("\"{index}\":{{}}")));
    let chain: Map<String, Value> =
        (0..90).map(|at| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}))).collect();
    for (what, schema) in [
        (
            "many properties",
            json!({"type": "object", "properties": members(filled(size, |index| format!("\"{index}\":{{}}")))}),
        ),
        ("a long name around many", json!({"type": "object", "properties": {long_name: {"properties": inside}}})),
        (
            "large patterns",
            json!({"type": "object", "properties": patterns(|index| format!("^\\w{{{}}}$", 10 + index % 10))}),
        ),
        ("different patterns", json!({"type": "object", "properties": patterns(|index| format!("^\\w{{8}}{index}$"))})),
        (
            "repeated patterns",
            json!({"type": "object", "properties": patterns(|index| format!("^((a{{1,9}}){{1,9}}){{1,9}}{index}$"))}),
        ),
        (
            "the largest patterns",
            json!({"type": "object", "properties": patterns(|index| format!("^\\w{{40}}{index}$"))}),
        ),
        ("a chain of references", json!({"type": "object", "$defs": chain, "$ref": "#/$defs/d0"})),
        ("a large enum", json!({"type": "object", "properties": {"a": {"enum": (0..20_000).collect::<Vec<_>>()}}})),
        (
            "much required",
            json!({"type": "object", "required": (0..20_000).map(|at| at.to_string()).collect::<Vec<_>>()}),
        ),
    ] {
        costs.push(cost(what, &server, &format!("{PREFIX}/entrypoints:validate"), &registered(&schema)).await);
    }
    judge(&costs);
}

/// Distinct lists of nothing but lists, each of this many brackets: hashing sees no difference between them.
fn brackets(index: usize) -> String {
    let mut text = String::new();
    for bit in 0..16 {
        text.push_str(if index >> bit & 1 == 1 { "[[]]," } else { "[]," });
    }
    format!("[{}]", text.trim_end_matches(','))
}

/// Params as large as they may be, against schemas that make the most of them.
async fn judge_params(cases: Vec<(&'static str, Value, String)>) {
    let server = server().await;
    let mut costs = Vec::new();
    for (number, (what, schema, params)) in cases.into_iter().enumerate() {
        let address = FUNCTION.replace(".echo.", &format!(".worst{number}."));
        let mut document = definition_of("default", &address);
        document["schema"]["params"] = schema;
        activate(&server, &document).await;
        let body = format!(r#"{{"entrypoint_id":"{address}","dry_run":true,"params":{params}}}"#);
        assert!(body.len() < 8 * MIB, "{what}: {}", body.len());
        costs.push(cost(what, &server, &format!("{PREFIX}/invocations"), &body).await);
    }
    judge(&costs);
}

/// How much is sent as params: as much as may be with `SERVO_TEST_WORST_MIB=5`, by default enough to tell what grows too fast.
fn params_bytes() -> usize {
    #[expect(clippy::disallowed_methods, reason = "the campaign's command sets it")]
    let asked = std::env::var("SERVO_TEST_WORST_MIB").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(2) * MIB
}

fn list_of(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": {"items": schema}}})
}

#[tokio::test]
async fn the_worst_params_that_are_right() {
    let all_of = |count: usize| json!({"allOf": vec![json!({"type": ["number", "string"]}); count]});
    let patterns: Map<String, Value> = (0..900).map(|name| (format!("^q{name}"), json!({}))).collect();
    let words: Vec<String> = (0..10_000).map(|word| format!("word{word}")).collect();
    let known: Map<String, Value> = (0..10_000).map(|name| (format!("known{name}"), json!({}))).collect();
    let names = format!("{{{}}}", filled(params_bytes(), |index| format!("\"name{index}x\":0")));
    let zeros = format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "0".to_owned()));
    judge_params(vec![
        ("many numbers", list_of(&json!({"type": "number"})), zeros.clone()),
        ("thirty schemas of each number", list_of(&all_of(30)), zeros.clone()),
        // More than is done for one document.
        ("many schemas of each number", list_of(&all_of(900)), zeros),
        ("many patterns of each name", json!({"type": "object", "patternProperties": patterns}), names),
        (
            "many words for each",
            list_of(&json!({"enum": words})),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "\"word9999\"".to_owned())),
        ),
        (
            "many members for each",
            list_of(&json!({"properties": known})),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "{}".to_owned())),
        ),
        (
            "unique numbers",
            json!({"type": "object", "properties": {"a": {"uniqueItems": true}}}),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |index| index.to_string())),
        ),
        (
            "unique lists",
            json!({"type": "object", "properties": {"a": {"uniqueItems": true}}}),
            // So many that comparing each with each would take half a minute.
            format!("{{\"a\":[{}]}}", filled(params_bytes().max(4 * MIB), |index| brackets(index % (1 << 16)))),
        ),
        (
            "a text and a pattern",
            json!({"type": "object", "properties": {"a": {"pattern": "[01]*1[01]{400}$"}}}),
            format!("{{\"a\":\"{}\"}}", "01".repeat(params_bytes() / 2)),
        ),
        (
            "a schema that refers to itself",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}),
            format!("{}{}", "{\"a\":".repeat(50), "}".repeat(50)).replace(":}", ":{}}"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn the_worst_params_that_are_wrong() {
    let known: Map<String, Value> = (0..10_000).map(|name| (format!("known{name}"), json!({}))).collect();
    let required: Vec<String> = (0..5_000).map(|name| format!("name{name}")).collect();
    let words: Vec<String> = (0..10_000).map(|word| format!("word{word}")).collect();
    let forms: Vec<Value> = (0..200).map(|form| json!({"required": [format!("form{form}")]})).collect();
    let strangers = format!("{{{}}}", filled(params_bytes(), |index| format!("\"name{index}x\":0")));
    judge_params(vec![
        (
            "wrong numbers",
            list_of(&json!({"type": "string"})),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "0".to_owned())),
        ),
        (
            "unknown names",
            json!({"type": "object", "properties": known, "additionalProperties": false}),
            strangers.clone(),
        ),
        ("missing names", json!({"type": "object", "required": required}), strangers),
        (
            "wrong words",
            list_of(&json!({"enum": words})),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "\"worb1\"".to_owned())),
        ),
        (
            "no form",
            list_of(&json!({"anyOf": forms})),
            format!("{{\"a\":[{}]}}", filled(params_bytes(), |_| "{}".to_owned())),
        ),
        (
            "a long name around what is wrong",
            json!({"type": "object", "additionalProperties": {"additionalProperties": {"type": "string"}}}),
            format!(
                "{{\"{}\":{{{}}}}}",
                "n".repeat(params_bytes() / 2),
                filled(params_bytes() / 2, |index| format!("\"{index}\":0"))
            ),
        ),
        (
            "a long unknown name",
            json!({"type": "object", "additionalProperties": false}),
            format!("{{\"{}\":0}}", "n".repeat(params_bytes())),
        ),
    ])
    .await;
}
