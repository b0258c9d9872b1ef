//! What is registered, as Lambda's own clients ask for it.

use reqwest::Method;
use serde_json::{Value, json};

use super::{refused, server};
use crate::harness::Answer;

/// What tools and waiters ask of registered functions: one, all, its versions and its aliases.
#[tokio::test]
async fn registered_functions_are_told_in_lambdas_words() {
    let server = server().await;
    let spec =
        json!({"reach": {"kind": "inProcess"}, "durable": false, "invocationTimeoutSeconds": 7, "maxConcurrent": 3});
    for path in ["/v1/functions/echo", "/v1/functions/other"] {
        assert_eq!(server.send(Method::PUT, path, "", Some(&spec)).await.status, 200);
    }
    assert_eq!(
        server.send(Method::PUT, "/v1/functions/echo/aliases/live", "", Some(&json!({"version": 1}))).await.status,
        200
    );
    let get = async |path: &str| server.get(&format!("/2015-03-31/functions{path}")).await;
    let arn = "arn:aws:lambda:us-east-1:000000000000:function:echo";
    for (path, version, named) in [
        ("/echo/configuration", "$LATEST", arn.to_owned()),
        ("/echo:1/configuration", "1", format!("{arn}:1")),
        ("/echo/configuration?Qualifier=2", "2", format!("{arn}:2")),
        ("/echo/configuration?Qualifier=live", "1", format!("{arn}:live")),
        ("/echo/configuration?Qualifier=%24LATEST", "$LATEST", format!("{arn}:$LATEST")),
    ] {
        let answer = get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let shown = ["FunctionName", "Version", "FunctionArn", "State", "LastUpdateStatus"]
            .map(|name| answer.json[name].as_str().unwrap_or_default());
        assert_eq!(shown, ["echo", version, named.as_str(), "Active", "Successful"], "{path}");
    }
    let one = get("/echo").await.json;
    assert_eq!((&one["Configuration"]["Timeout"], &one["Configuration"]["DurableConfig"]), (&json!(7), &Value::Null));
    assert_eq!(one["Concurrency"]["ReservedConcurrentExecutions"], 3);
    assert!(get("/echo:1").await.json["Configuration"]["DurableConfig"]["ExecutionTimeout"].is_u64());

    let names = |answer: &Answer| -> Vec<String> {
        let functions = answer.json["Functions"].as_array().unwrap().iter();
        functions.map(|function| function["FunctionName"].as_str().unwrap().to_owned()).collect()
    };
    for path in ["", "/"] {
        assert_eq!(names(&get(path).await), ["echo", "other"]);
    }
    let first = get("?MaxItems=1").await;
    assert_eq!(names(&first), ["echo"]);
    let marker = first.json["NextMarker"].as_str().unwrap().to_owned();
    assert_eq!(names(&get(&format!("?MaxItems=1&Marker={marker}")).await), ["other"]);
    assert_eq!(names(&get("?Marker=other").await), [""; 0]);

    let versions = get("/echo/versions").await.json;
    let shown: Vec<&str> =
        versions["Versions"].as_array().unwrap().iter().map(|version| version["Version"].as_str().unwrap()).collect();
    assert_eq!(shown, ["$LATEST", "2", "1"]);
    let aliases = get("/echo/aliases").await.json;
    let live = json!({"AliasArn": format!("{arn}:live"), "Name": "live", "FunctionVersion": "1"});
    assert_eq!(aliases["Aliases"], json!([live]));
    assert_eq!(get("/echo/aliases?FunctionVersion=2").await.json["Aliases"], json!([]));
    assert_eq!(get("/echo/aliases/live").await.json, live);

    for (path, expected) in [
        ("/nothing", (404, "ResourceNotFoundException")),
        ("/echo:9/configuration", (404, "ResourceNotFoundException")),
        ("/nothing/versions", (404, "ResourceNotFoundException")),
        ("/echo/aliases/dead", (404, "ResourceNotFoundException")),
        ("?MaxItems=0", (400, "InvalidParameterValueException")),
        ("?Marker=a%20b", (400, "InvalidParameterValueException")),
        ("/echo/versions?Marker=x", (400, "InvalidParameterValueException")),
    ] {
        let answer = server.request(Method::GET, &format!("/2015-03-31/functions{path}")).send().await.unwrap();
        let (status, name, _) = refused(answer).await;
        assert_eq!((status, name.as_str()), expected, "{path}");
    }
}
