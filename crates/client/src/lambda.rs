//! The Lambda API: invocations, durable executions and callbacks, under that API's own addresses and errors.

use reqwest::{Method, header};
use servo_model::RunId;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_wire::lambda::{GetExecutionResponse, HistoryResponse, ListExecutionsResponse, StopResponse};

use crate::client::{Client, Patience, header as header_of};
use crate::endpoints::Reply;
use crate::error::Error;
use crate::path::segment;

/// What to invoke, and how. `function` is a name, `name:qualifier` or an ARN.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    pub function: String,
    /// A version or an alias.
    pub qualifier: Option<String>,
    /// Names the execution: the same name with the same payload again gives the execution that it started.
    pub name: Option<String>,
    /// JSON.
    pub payload: Option<String>,
    /// Answer when it is recorded, not when it has ended.
    pub is_event: bool,
}

/// What an invocation was answered.
#[derive(Debug, Clone)]
pub struct Invoked {
    /// 200 for an execution that has ended, 202 for one that was recorded.
    pub status: u16,
    pub execution_arn: Option<String>,
    pub executed_version: Option<String>,
    /// Set when the function failed; the payload is then its error.
    pub function_error: Option<String>,
    pub payload: String,
}

/// Which executions of a function to list.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    pub qualifier: Option<String>,
    pub name: Option<String>,
    /// Any of these; all if there are none.
    pub statuses: Vec<ExecutionStatus>,
    pub limit: Option<u32>,
    pub marker: Option<String>,
}

/// Which part of a history to read.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    pub newest_first: bool,
    pub without_data: bool,
    pub limit: Option<u32>,
    pub marker: Option<String>,
}

/// What stands for the ARN of an execution where only its run is known: the server takes the run's id as well.
pub fn execution_arn(run: &RunId) -> String {
    run.to_string()
}

/// The run that an execution's ARN is about.
pub fn run_of_arn(arn: &str) -> Option<RunId> {
    let (_, rest) = arn.split_once("/durable-execution/")?;
    RunId::parse(rest.split_once('/')?.1).ok()
}

impl Client {
    /// Starts an execution and, unless it is an event, waits until it has ended. A function that fails is an answer.
    pub async fn invoke(&self, invocation: &Invocation) -> Result<Invoked, Error> {
        let path = format!("/2015-03-31/functions/{}/invocations", segment(&invocation.function));
        let kind = if invocation.is_event { "Event" } else { "RequestResponse" };
        let mut request = self
            .request(Method::POST, &path, &[("Qualifier", invocation.qualifier.clone())])
            .header("x-amz-invocation-type", kind);
        if let Some(name) = &invocation.name {
            request = request.header("x-amz-durable-execution-name", name);
        }
        if let Some(payload) = &invocation.payload {
            request = request.header(header::CONTENT_TYPE, "application/json").body(payload.clone());
        }
        let patience = if invocation.is_event { Patience::Usual } else { Patience::Invocation };
        let response = self.send(request, patience).await?;
        Ok(Invoked {
            status: response.status().as_u16(),
            execution_arn: header_of(&response, "x-amz-durable-execution-arn"),
            executed_version: header_of(&response, "x-amz-executed-version"),
            function_error: header_of(&response, "x-amz-function-error"),
            payload: self.text(response).await?,
        })
    }

    /// One page of a function's executions, newest first.
    pub async fn executions(&self, function: &str, filter: &ExecutionFilter) -> Reply<ListExecutionsResponse> {
        let mut query = vec![
            ("Qualifier", filter.qualifier.clone()),
            ("DurableExecutionName", filter.name.clone()),
            ("MaxItems", filter.limit.map(|limit| limit.to_string())),
            ("Marker", filter.marker.clone()),
        ];
        query.extend(filter.statuses.iter().map(|status| ("Statuses", Some(status.as_str().to_owned()))));
        self.get(&format!("/2025-12-01/functions/{}/durable-executions", segment(function)), &query).await
    }

    pub async fn execution(&self, arn: &str) -> Reply<GetExecutionResponse> {
        self.get(&execution_path(arn), &[]).await
    }

    /// One page of an execution's history.
    pub async fn history(&self, arn: &str, filter: &HistoryFilter) -> Reply<HistoryResponse> {
        let query = [
            ("IncludeExecutionData", filter.without_data.then(|| "false".to_owned())),
            ("ReverseOrder", filter.newest_first.then(|| "true".to_owned())),
            ("MaxItems", filter.limit.map(|limit| limit.to_string())),
            ("Marker", filter.marker.clone()),
        ];
        self.get(&format!("{}/history", execution_path(arn)), &query).await
    }

    /// Ends an execution. One that has ended stays as it is.
    pub async fn stop_execution(&self, arn: &str, error: &ErrorObject) -> Reply<StopResponse> {
        self.post(&format!("{}/stop", execution_path(arn)), error, Patience::Usual).await
    }

    /// Takes the result as text: it reaches the handler exactly so.
    pub async fn succeed_callback(&self, id: &str, result: Option<String>) -> Result<(), Error> {
        let mut request = self.request(Method::POST, &callback_path(id, "succeed"), &[]);
        if let Some(result) = result {
            request = request.header(header::CONTENT_TYPE, "application/octet-stream").body(result);
        }
        self.send(request, Patience::Usual).await.map(drop)
    }

    pub async fn fail_callback(&self, id: &str, error: &ErrorObject) -> Result<(), Error> {
        let request = self.request(Method::POST, &callback_path(id, "fail"), &[]).json(error);
        self.send(request, Patience::Usual).await.map(drop)
    }

    pub async fn heartbeat_callback(&self, id: &str) -> Result<(), Error> {
        self.send(self.request(Method::POST, &callback_path(id, "heartbeat"), &[]), Patience::Usual).await.map(drop)
    }
}

fn execution_path(arn: &str) -> String {
    format!("/2025-12-01/durable-executions/{}", segment(arn))
}

fn callback_path(id: &str, verb: &str) -> String {
    format!("/2025-12-01/durable-execution-callbacks/{}/{verb}", segment(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_its_arn_name_each_other() {
        let run = RunId::parse("inv_1").unwrap();
        assert_eq!(execution_arn(&run), "inv_1");
        let arn = "arn:aws:lambda:us-east-1:000000000000:function:x:1/durable-execution/x/inv_1";
        assert_eq!(run_of_arn(arn), Some(run));
        for wrong in ["inv_1", "arn:aws:lambda:us-east-1:0:function:f", "a/durable-execution/inv_1"] {
            assert_eq!(run_of_arn(wrong), None, "{wrong}");
        }
    }
}
