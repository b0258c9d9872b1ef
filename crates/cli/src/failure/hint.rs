//! What to do next, per error code. Codes that explain themselves have no line.

use servo_wire::Problem;

pub(super) fn for_problem(problem: &Problem) -> Option<String> {
    let fixed = match problem.code.as_str() {
        "RUN_NOT_FOUND" => "`servo runs list` shows the runs that are there",
        "RUN_EXISTS" => "`servo runs delete RUN` makes room for the file, if it is to replace the run that is there",
        "FUNCTION_NOT_FOUND" => FUNCTIONS,
        "FUNCTION_IN_USE" => {
            "wait until its runs have ended, or stop them (`servo functions show NAME` counts them), and disable its entrypoints"
        }
        "KEY_NOT_FOUND" => "`servo keys list` shows the keys of your tenant",
        "STEP_NOT_FOUND" => "`servo runs get RUN` shows the steps of a run",
        "ILLEGAL_TRANSITION" | "SIGNAL_REJECTED" | "RUN_CLOSED" => "`servo runs get RUN` shows where the run stands",
        "RUN_QUARANTINED" => "`servo runs terminate RUN` ends it without reading its log",
        "RUN_REQUEST_MISMATCH" => "use another --request-id, or repeat the earlier request unchanged",
        "INVALID_CURSOR" => "leave --cursor out to begin again",
        "PLAN_SOURCE_NOT_ALLOWED" => "send the plan itself, or add its place to plan_sources in the configuration",
        "AUTHORITY_HELD" | "AUTHORITY_NOT_HELD" | "AUTHORITY_FENCED" => "`servo runtime snapshot` shows who holds it",
        "DISPATCH_NOT_FOUND" | "DISPATCH_ILLEGAL_MOVE" => "`servo runtime events` shows what happened to dispatches",
        "UNAUTHENTICATED" => "give a key with --token or SERVO_TOKEN",
        "FORBIDDEN" => "use a key that has the role for this",
        "STORE_IN_USE" => "stop the process that has the folder open, or leave --data-dir out and ask it",
        "STORE_TOO_NEW" => "use the version of servo that wrote the store, or a newer one",
        "STORE_FULL" => "free some space; nothing acknowledged is lost",
        "STORE_CORRUPT" => "`servo store verify` finds the damage, `servo store restore` brings back a backup",
        "SHUTTING_DOWN" => "try again when the server is back",
        "LIMIT_EXCEEDED" => "send less at once, or raise the limit in the configuration",
        code if code.starts_with("gts.") && for_gts(code).is_some() => for_gts(code).unwrap_or_default(),
        _ => match (problem.retry_after, problem.status) {
            (Some(seconds), _) => return Some(format!("try again in {seconds} s")),
            (None, 429) => "try again later",
            (None, 500..) => return Some(server_fault(problem)),
            _ => return None,
        },
    };
    Some(fixed.replace("RUN`", &format!("{}`", run(problem).unwrap_or("RUN"))))
}

/// What to do about a refusal of the serverless runtime API.
fn for_gts(code: &str) -> Option<&'static str> {
    Some(match code.rsplit(".err.").next()? {
        "not_found.v1~" => "`servo entrypoints list` and `servo invocations list` show what is there",
        "not_active.v1~" => "`servo entrypoints activate ID` lets a draft be called, `enable` what was disabled",
        "unauthenticated.v1~" => "give a key with --token or SERVO_TOKEN",
        "forbidden.v1~" => "use a key that has the role for this",
        _ => return None,
    })
}

const FUNCTIONS: &str = "`servo functions list` shows what is registered";

/// What to do about a refusal of the Lambda API, by its name.
pub(super) fn for_lambda(problem: &Problem) -> Option<String> {
    let fixed = match problem.code.as_str() {
        "ResourceNotFoundException" if problem.title.starts_with("Function not found") => FUNCTIONS,
        "ResourceNotFoundException" => "`servo runs list` shows the runs that are there",
        "ResourceConflictException" => "`servo runs list` shows where the run stands",
        "DurableExecutionAlreadyStartedException" => "use another name, or repeat the earlier invocation unchanged",
        "InvalidRequestContentException" => "send JSON",
        "RequestTooLargeException" => "send less, or a reference to data that is kept elsewhere",
        "TooManyRequestsException" => "try again in a moment",
        "UnrecognizedClientException" | "MissingAuthenticationTokenException" => {
            "give a key with --token or SERVO_TOKEN"
        }
        "AccessDeniedException" => "use a key that has the role for this",
        _ if problem.status >= 500 => return Some(server_fault(problem)),
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// The run that the request was about, so that a hint can be copied.
fn run(problem: &Problem) -> Option<&str> {
    let (_, rest) = problem.instance.as_deref()?.split_once("/v1/runs/")?;
    rest.split('/').next().filter(|run| servo_model::RunId::parse(run).is_ok())
}

fn server_fault(problem: &Problem) -> String {
    match &problem.request_id {
        Some(id) => format!("the server's log has more under request {id}"),
        None => "the server's log has more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::codes;

    /// Hints are matched by text, so that a code which is renamed must not lose its hint unnoticed.
    #[test]
    fn hinted_codes_exist() {
        let source = include_str!("hint.rs");
        let table = &source[..source.find("_ => match").unwrap()];
        let mut seen = 0;
        for word in
            table.split('"').filter(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        {
            assert!(codes::ALL.iter().any(|code| code.code == word), "{word} is no code");
            seen += 1;
        }
        assert!(seen > 15);
    }

    #[test]
    fn a_hint_names_the_run_where_it_is_known() {
        let mut problem = Problem::new(codes::RUN_CLOSED);
        assert_eq!(for_problem(&problem).unwrap(), "`servo runs get RUN` shows where the run stands");
        problem.instance = Some("/v1/runs/inv_1/signals".to_owned());
        assert_eq!(for_problem(&problem).unwrap(), "`servo runs get inv_1` shows where the run stands");
    }

    #[test]
    fn the_server_says_when_to_try_again() {
        let mut problem = Problem::new(codes::OVERLOADED);
        assert_eq!(for_problem(&problem).unwrap(), "try again later");
        problem.retry_after = Some(7);
        assert_eq!(for_problem(&problem).unwrap(), "try again in 7 s");
        assert_eq!(for_problem(&Problem::new(codes::INTERNAL)).unwrap(), "the server's log has more");
    }
}
