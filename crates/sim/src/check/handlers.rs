//! Executions against what their handlers were told.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Evidence;
use crate::workers::{Program, Workers};

/// Says what is wrong, and how many executions succeeded.
pub(crate) fn check(evidence: &Evidence, workers: &Workers, found: &mut Vec<String>) -> u64 {
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    let mut succeeded = 0;
    for stored in &evidence.log {
        let run = stored.run_id.as_str();
        let Ok(body) = serde_json::from_str::<Value>(&stored.payload) else { continue };
        match stored.event_type.as_ref() {
            "ExecutionStarted" => {
                let Some(program) = body["input"].as_str().and_then(Program::read) else { continue };
                if let Some((first, _)) = programs.iter().find(|(_, other)| other.name == program.name) {
                    let parent = body["parent"]["runId"].as_str().unwrap_or("nobody");
                    found.push(format!("{run}: {} of {parent} was started twice, at first as {first}", program.name));
                }
                programs.insert(run, program);
            }
            "ExecutionEnded" => {
                let Some(program) = programs.get(run) else { continue };
                let told = workers.told(&program.name, program.ops.len());
                let result =
                    body["result"].as_str().and_then(|text| serde_json::from_str::<Vec<Option<u64>>>(text).ok());
                match body["status"].as_str() {
                    Some("SUCCEEDED") if result.as_ref() == Some(&told) => succeeded += 1,
                    Some("SUCCEEDED") => found.push(format!("{run}: told {told:?}, and ended with {result:?}")),
                    // A signal of the story, or too many deaths of its worker.
                    Some("STOPPED") => {}
                    Some("FAILED") if body["error"]["ErrorType"] == "Runtime.ExitError" => {}
                    Some("FAILED") if body["error"]["ErrorType"] == "Checkpoint" => {}
                    _ => found.push(format!("{run}: ended with {body}")),
                }
            }
            _ => {}
        }
    }
    succeeded
}
