//! The Lambda API is outside the OpenAPI document: its operations come from the table that has every route of it.

use reqwest::Method;
use serde_json::{Value, json};

use super::KEYS;
use super::world::{Call, Findings, Two, escaped};
use crate::roles::LAMBDA;

/// What is sent about something foreign and about something that is not there, and what the two differ in.
struct Row {
    body: fn(&Two, usize) -> Option<Value>,
    /// What the path names, and what stands behind it.
    subject: String,
    query: String,
    differs: String,
}

fn row(subject: &str, query: &str) -> Row {
    Row { body: |_, _| None, subject: subject.to_owned(), query: query.to_owned(), differs: subject.to_owned() }
}

/// Each as it is for what is foreign (0) and for what is unknown (1). `None` if the operation has no rows.
fn rows(two: &Two, path: &str, which: usize) -> Option<Vec<Row>> {
    let (name, arn, token, callback) = (&two.function[which], &two.arn[which], &two.token[which], &two.callback[which]);
    let run = arn.rsplit('/').next().unwrap();
    let place = "arn:aws:lambda:us-east-1:000000000000:function";
    let named = |subject: &str, query: &str| Row { differs: name.clone(), ..row(subject, query) };
    let functions = || {
        let subjects = [name.clone(), format!("{name}:live"), format!("{place}:{name}")];
        let plain = subjects.iter().map(|subject| named(subject, ""));
        plain.chain([named(name, "?Qualifier=1"), named(name, "?Qualifier=live")]).collect()
    };
    let executions = || vec![row(arn, ""), row(run, "")];
    Some(match path.split('/').skip(2).collect::<Vec<_>>().join("/").as_str() {
        "functions/{name}/invocations"
        | "functions/{name}/durable-executions"
        | "functions/{name}"
        | "functions/{name}/configuration"
        | "functions/{name}/versions"
        | "functions/{name}/aliases"
        | "functions/{name}/aliases/{alias}" => functions(),
        // They name nothing.
        "functions" | "functions/" => Vec::new(),
        "durable-executions/{arn}" | "durable-executions/{arn}/history" | "durable-executions/{arn}/stop" => {
            executions()
        }
        "durable-executions/{arn}/state" => {
            // With the token that is of this execution, and with one that is of none.
            let tokens = two.token.iter().map(|token| row(arn, &format!("?CheckpointToken={}", escaped(token))));
            tokens
                .chain([Row {
                    differs: token.clone(),
                    ..row(&two.arn[0], &format!("?CheckpointToken={}", escaped(token)))
                }])
                .collect()
        }
        "durable-executions/{arn}/checkpoint" => {
            let update = |two: &Two, which: usize| {
                let update = json!({"Id": "9", "Type": "STEP", "Action": "START", "Name": "mine"});
                Some(json!({"CheckpointToken": two.token[which], "Updates": [update]}))
            };
            let own: fn(&Two, usize) -> Option<Value> = |two, _| Some(json!({"CheckpointToken": two.token[0]}));
            vec![
                Row { body: own, ..row(arn, "") },
                Row { body: update, differs: token.clone(), ..row(&two.arn[0], "") },
            ]
        }
        "durable-execution-callbacks/{id}/succeed"
        | "durable-execution-callbacks/{id}/fail"
        | "durable-execution-callbacks/{id}/heartbeat" => vec![row(callback, "")],
        _ => return None,
    })
}

pub(super) async fn crossings(two: &Two) -> Vec<String> {
    let (before, mut findings, mut asked) = (two.of_acme().await, Findings::default(), 0);
    for (method, path, ..) in LAMBDA {
        let (Some(theirs), Some(nobodys)) = (rows(two, path, 0), rows(two, path, 1)) else {
            findings.0.push(format!("{method} {path} has no row: whose is what it names?"));
            continue;
        };
        for (foreign, unknown) in theirs.iter().zip(&nobodys) {
            for key in KEYS {
                let ask = async |row: &Row, which: usize| {
                    let subject = escaped(&row.subject);
                    let target = ["{name}", "{arn}", "{id}"]
                        .iter()
                        .fold(path.to_owned(), |path, part| path.replace(part, &subject));
                    let verb = Method::from_bytes(method.as_bytes()).unwrap();
                    two.ask(key, &Call::new(verb, format!("{target}{}", row.query), (row.body)(two, which))).await
                };
                let (theirs, nobodys) = (ask(foreign, 0).await, ask(unknown, 1).await);
                let case = format!("{method} {path} {} as {key}", foreign.query);
                findings.same(&case, (&theirs, &foreign.differs), (&nobodys, &unknown.differs));
                let status = theirs.status.as_u16();
                findings.expect(matches!(status, 400 | 403 | 404), || format!("{case}: {status} {}", theirs.text));
                asked += 1;
            }
        }
    }
    assert!(asked >= 100, "{asked}");
    findings.unchanged(two, &before).await;
    findings.0
}

/// Ids and the token are real: their owner gets along with them, also now.
pub(super) async fn still_works(two: &Two) {
    let (arn, token) = (escaped(&two.arn[0]), &two.token[0]);
    let state = format!("/2025-12-01/durable-executions/{arn}/state?CheckpointToken={}", escaped(token));
    let callback = format!("/2025-12-01/durable-execution-callbacks/{}/succeed", escaped(&two.callback[0]));
    let update = json!({"Id": "9", "Type": "STEP", "Action": "START", "Name": "mine"});
    let checkpoint = json!({"CheckpointToken": token, "Updates": [update]});
    let calls = [
        Call::new(Method::GET, state, None),
        Call::new(Method::POST, format!("/2025-12-01/durable-executions/{arn}/checkpoint"), Some(checkpoint)),
        Call::new(Method::POST, callback, Some(json!("yes"))),
        Call::new(Method::POST, format!("/2025-12-01/durable-executions/{arn}/stop"), None),
    ];
    for call in calls {
        let answer = two.ask("acme-operator", &call).await;
        assert_eq!(answer.status, 200, "{call:?}: {}", answer.text);
    }
}
