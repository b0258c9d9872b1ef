//! What every route is called in the audit log, and how it gets there. A route that changes something and has no row here
//! fails a test; until then it is recorded as `undeclared`.

use axum::http::Method;

/// When an action is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Only when it is denied: it changes nothing, or it is what handlers do in a run, whose own log has it.
    IfDenied,
    /// Soon after the answer: the run's own log has the fact, with its actor, before it.
    Behind,
    /// Before the answer is sent.
    Before,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Action {
    /// Stable: programs search for it.
    pub name: &'static str,
    pub object_kind: &'static str,
    pub recorded: Recorded,
}

impl Action {
    /// For what nobody has declared: nothing that changes something goes unseen.
    pub(super) const UNDECLARED: Action = Action { name: "undeclared", object_kind: "route", recorded: Before };
    /// The same for what changes nothing.
    pub(super) const READ: Action = Action { name: "read", object_kind: "route", recorded: IfDenied };
}

const fn row(
    method: &'static str,
    path: &'static str,
    name: &'static str,
    object_kind: &'static str,
    recorded: Recorded,
) -> (&'static str, &'static str, Action) {
    (method, path, Action { name, object_kind, recorded })
}

use Recorded::{Before, Behind, IfDenied};

pub(crate) const ACTIONS: &[(&str, &str, Action)] = &[
    row("POST", "/v1/runs", "run.start", "run", Behind),
    row("GET", "/v1/runs", "run.read", "run", IfDenied),
    row("POST", "/v1/runs/import", "run.import", "run", Before),
    row("GET", "/v1/runs/{id}", "run.read", "run", IfDenied),
    row("DELETE", "/v1/runs/{id}", "run.delete", "run", Before),
    row("GET", "/v1/runs/{id}/events", "run.read", "run", IfDenied),
    row("POST", "/v1/runs/{id}/signals", "run.signal", "run", Behind),
    row("GET", "/v1/runs/{id}/export", "run.export", "run", IfDenied),
    row("POST", "/v1/runs/{id}/terminate", "run.terminate", "run", Behind),
    row("GET", "/v1/runs/{id}/logs", "run.logs", "run", IfDenied),
    row("GET", "/v1/functions", "function.read", "function", IfDenied),
    row("GET", "/v1/functions/{name}", "function.read", "function", IfDenied),
    row("GET", "/v1/functions/{name}/versions/{version}", "function.read", "function", IfDenied),
    row("PUT", "/v1/functions/{name}", "function.publish", "function", Before),
    row("DELETE", "/v1/functions/{name}", "function.remove", "function", Before),
    row("PUT", "/v1/functions/{name}/aliases/{alias}", "function.alias", "function", Before),
    row("DELETE", "/v1/functions/{name}/aliases/{alias}", "function.alias.remove", "function", Before),
    row("POST", "/v1/channel", "execution.channel", "run", IfDenied),
    row("GET", "/v1/whoami", "identity.read", "principal", IfDenied),
    row("POST", "/v1/keys", "key.create", "key", Before),
    row("GET", "/v1/keys", "key.read", "key", IfDenied),
    row("DELETE", "/v1/keys/{id}", "key.revoke", "key", Before),
    row("GET", "/v1/audit", "audit.read", "audit", IfDenied),
    row("GET", "/v1/alerts", "alert.read", "alert", IfDenied),
    row("GET", "/v1/series", "series.read", "series", IfDenied),
    row("GET", "/v1/dead-letters", "dead-letter.read", "dead-letter", IfDenied),
    row("POST", "/v1/dead-letters/redrive", "dead-letter.redrive", "dead-letter", Before),
    row("GET", "/v1/store/info", "store.read", "store", IfDenied),
    // It changes nothing and takes everything along.
    row("GET", "/v1/store/backup", "store.backup", "store", Before),
    row("POST", "/v1/store/verify", "store.verify", "store", Before),
    row("POST", "/v1/store/retention", "store.retention", "store", Before),
    row("POST", "/runtime/commands", "runtime.command", "runtime", Before),
    row("GET", "/runtime/snapshot", "runtime.read", "runtime", IfDenied),
    row("GET", "/runtime/events", "runtime.read", "runtime", IfDenied),
    row("GET", "/runtime/schema", "runtime.read", "runtime", IfDenied),
    row("GET", "/", "health.read", "server", IfDenied),
    row("GET", "/console", "console.read", "server", IfDenied),
    row("GET", "/console/", "console.read", "server", IfDenied),
    row("GET", "/console/{*path}", "console.read", "server", IfDenied),
    row("GET", "/livez", "health.read", "server", IfDenied),
    row("GET", "/readyz", "health.read", "server", IfDenied),
    row("GET", "/metrics", "metrics.read", "server", IfDenied),
    row("GET", "/version", "health.read", "server", IfDenied),
    row("POST", "/api/serverless-runtime/v1/entrypoints", "entrypoint.register", "entrypoint", Before),
    row("GET", "/api/serverless-runtime/v1/entrypoints", "entrypoint.read", "entrypoint", IfDenied),
    row("POST", "/api/serverless-runtime/v1/entrypoints:validate", "entrypoint.validate", "entrypoint", IfDenied),
    row("GET", "/api/serverless-runtime/v1/entrypoints/{id}", "entrypoint.read", "entrypoint", IfDenied),
    row("PUT", "/api/serverless-runtime/v1/entrypoints/{id}", "entrypoint.update", "entrypoint", Before),
    row("DELETE", "/api/serverless-runtime/v1/entrypoints/{id}", "entrypoint.delete", "entrypoint", Before),
    row("POST", "/api/serverless-runtime/v1/entrypoints/{id}", "entrypoint.status", "entrypoint", Before),
    row("POST", "/api/serverless-runtime/v1/invocations", "invocation.start", "run", Behind),
    row("GET", "/api/serverless-runtime/v1/invocations", "invocation.read", "run", IfDenied),
    row("GET", "/api/serverless-runtime/v1/invocations:counts", "invocation.read", "run", IfDenied),
    row("POST", "/api/serverless-runtime/v1/invocations:bulk", "invocation.bulk", "run", Before),
    row("GET", "/api/serverless-runtime/v1/invocations/{id}", "invocation.read", "run", IfDenied),
    row("POST", "/api/serverless-runtime/v1/invocations/{id}", "invocation.control", "run", Behind),
    row("GET", "/api/serverless-runtime/v1/invocations/{id}/timeline", "invocation.read", "run", IfDenied),
    row("GET", "/api/serverless-runtime/v1/types", "type.read", "type", IfDenied),
    row("GET", "/api/serverless-runtime/v1/types/{id}", "type.read", "type", IfDenied),
    row("GET", "/openapi.json", "health.read", "server", IfDenied),
    row("POST", "/2015-03-31/functions/{name}/invocations", "execution.start", "run", Behind),
    row("GET", "/2015-03-31/functions", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/{name}", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/{name}/configuration", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/{name}/versions", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/{name}/aliases", "function.read", "function", IfDenied),
    row("GET", "/2015-03-31/functions/{name}/aliases/{alias}", "function.read", "function", IfDenied),
    row("GET", "/2025-12-01/durable-executions/{arn}", "execution.read", "run", IfDenied),
    row("POST", "/2025-12-01/durable-executions/{arn}/checkpoint", "execution.checkpoint", "run", IfDenied),
    row("GET", "/2025-12-01/durable-executions/{arn}/state", "execution.read", "run", IfDenied),
    row("GET", "/2025-12-01/durable-executions/{arn}/history", "execution.read", "run", IfDenied),
    row("POST", "/2025-12-01/durable-executions/{arn}/stop", "execution.stop", "run", Behind),
    row("GET", "/2025-12-01/functions/{name}/durable-executions", "execution.read", "function", IfDenied),
    row("POST", "/2025-12-01/durable-execution-callbacks/{id}/succeed", "callback.succeed", "callback", Behind),
    row("POST", "/2025-12-01/durable-execution-callbacks/{id}/fail", "callback.fail", "callback", Behind),
    row("POST", "/2025-12-01/durable-execution-callbacks/{id}/heartbeat", "callback.heartbeat", "callback", IfDenied),
];

/// The action of a request to a route.
pub(super) fn of(method: &Method, route: &str) -> Action {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let declared = ACTIONS.iter().find(|(verb, path, _)| *verb == method.as_str() && *path == route);
    match declared {
        Some((_, _, action)) => *action,
        None if method.is_safe() => Action::READ,
        None => Action::UNDECLARED,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Every `.route("path", get(…).post(…))` below a folder of sources, where a path may be `&below("path")`.
    fn routes(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes(&path, found);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let has_prefix = path.ends_with("routes/serverless.rs");
            let prefix = if has_prefix { crate::failures::PREFIX } else { "" };
            for rest in source.split(".route(").skip(1) {
                let rest = rest.trim_start();
                let literal = rest.strip_prefix("&below(").unwrap_or(rest).strip_prefix('"');
                let literal = literal.unwrap_or_else(|| panic!("{}: a route is written out", path.display()));
                let (route, rest) = literal.split_once('"').unwrap();
                // Up to the next call of the router; handlers are plain paths, so verbs are all that is called here.
                let end = rest.find(".layer(").unwrap_or(rest.len());
                let verbs = &rest[..rest.find(';').unwrap_or(end).min(end)];
                for verb in ["get", "post", "put", "patch", "delete"] {
                    let call = format!("{verb}(");
                    if verbs
                        .match_indices(&call)
                        .any(|(at, _)| !verbs[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
                    {
                        found.push((verb.to_uppercase(), format!("{prefix}{route}")));
                    }
                }
            }
        }
    }

    /// SR-532: a route that is added without a row fails here.
    #[test]
    fn every_route_declares_its_action() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        routes(&sources.join("routes"), &mut found);
        let top = tempfile::tempdir().unwrap();
        std::fs::copy(sources.join("routes.rs"), top.path().join("routes.rs")).unwrap();
        routes(top.path(), &mut found);
        assert!(found.len() > 40, "{found:?}");
        for (method, route) in &found {
            let action = of(&Method::from_bytes(method.as_bytes()).unwrap(), route);
            assert!(action != Action::UNDECLARED && action != Action::READ, "{method} {route} has no row in ACTIONS");
        }
        for (method, route, _) in ACTIONS {
            assert!(found.iter().any(|(verb, path)| verb == method && path == route), "{method} {route} is no route");
        }
    }

    /// The names in the first column of the guide's table.
    fn documented() -> BTreeSet<String> {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/security.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let (_, table) = guide.split_once("| action | |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let is_name =
            |text: &&str| text.contains('.') && text.bytes().all(|b| b.is_ascii_lowercase() || b"._-".contains(&b));
        rows.flat_map(|row| row.split('`').filter(is_name)).map(str::to_owned).collect()
    }

    /// Finer names than a route's, as the handlers say them.
    fn finer() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/routes/serverless");
        let texts =
            ["entrypoints.rs", "invocations.rs"].map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
        let is_name = |text: &&str| {
            let rest = text.strip_prefix("entrypoint.").or_else(|| text.strip_prefix("invocation."));
            rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        };
        texts.iter().flat_map(|text| text.split('"').filter(is_name)).map(str::to_owned).collect()
    }

    /// The guide lists every action that can stand in an entry of something that was done, and no other.
    #[test]
    fn the_guide_lists_every_action() {
        let recorded = ACTIONS.iter().filter(|(_, _, action)| action.recorded != IfDenied);
        let mut expected: BTreeSet<String> = recorded.map(|(_, _, action)| action.name.to_owned()).collect();
        let finer = finer();
        assert!(finer.len() >= 13, "{finer:?}");
        expected.extend(finer);
        // What the runtime does by itself.
        expected.insert("invocation.compensate".to_owned());
        assert_eq!(documented(), expected);
    }

    #[test]
    fn what_changes_something_is_recorded() {
        for (method, route, action) in ACTIONS {
            let no_change = ["execution.checkpoint", "execution.channel", "callback.heartbeat", "entrypoint.validate"]
                .contains(&action.name);
            if *method != "GET" && !no_change {
                assert_ne!(action.recorded, IfDenied, "{method} {route}");
            }
        }
        assert_eq!(of(&Method::POST, "/nowhere").recorded, Before);
        assert_eq!(of(&Method::HEAD, "/v1/runs").name, "run.read");
    }
}
