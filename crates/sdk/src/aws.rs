//! The client over `aws-sdk-lambda`, AWS's own crate. What failed means the same as with [`ServoClient`](crate::ServoClient).
//!
//! Deliberately not here: AWS's HTTP and TLS implementations. Requests go over the one that this SDK has anyway.

mod connector;
mod convert;

use std::error::Error;

use async_trait::async_trait;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::{BehaviorVersion, Builder, Config, Credentials, Region, StalledStreamProtectionConfig};
use aws_sdk_lambda::error::SdkError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use reqwest::StatusCode;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};

use crate::channel::Answer;
use crate::environment::Environment;
use crate::http;
use crate::service::{DurableServiceClient, ServiceError};
use crate::sigv4::AwsCredentials;
use connector::Connector;

/// AWS Lambda by AWS's own crate, for programs that have its settings already: profiles, roles, single sign-on, endpoints of
/// their own. Where the keys of the environment are enough, as on Lambda, [`ServoClient`](crate::ServoClient) does the same
/// with a hundred thousand lines less.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use servo_sdk::{AwsLambdaClient, DurableContext, DurableError, Options};
///
/// async fn invite(guest: String, ctx: DurableContext) -> Result<String, DurableError> {
///     ctx.step(|_| Ok(format!("Dear {guest}, will you come?")), None).await
/// }
///
/// # #[cfg(feature = "lambda")]
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     // Or `AwsLambdaClient::new(client)`, with an `aws_sdk_lambda::Client` of one's own.
///     let client = AwsLambdaClient::from_env()?;
///     servo_sdk::run_with(invite, Arc::new(client), Options::default()).await
/// }
/// # #[cfg(not(feature = "lambda"))]
/// # fn main() {}
/// ```
///
/// Clones share connections.
#[derive(Debug, Clone)]
pub struct AwsLambdaClient {
    client: Client,
}

impl AwsLambdaClient {
    /// Over a client that is set up already, with its own HTTP. Turn its retries off: this SDK repeats calls itself, and knows how
    /// long an invocation may go on.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// By these settings, such as `Builder::from(&aws_config::load_from_env().await)`, over the HTTP client that this SDK has
    /// anyway. Retries are turned off, because this SDK repeats calls itself.
    pub fn with_config(config: Builder) -> Self {
        let config = config
            .behavior_version(BehaviorVersion::latest())
            .retry_config(RetryConfig::disabled())
            // The connector has a limit on the time of the whole answer.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(Connector::default());
        Self::new(Client::from_conf(config.build()))
    }

    /// With these keys. Without an address it is AWS's of the keys' region; a Servo server takes the same calls.
    pub fn signed(endpoint: Option<&str>, keys: AwsCredentials) -> Result<Self, ServiceError> {
        let AwsCredentials { access_key_id, secret_access_key, session_token, region } = keys;
        let credentials = Credentials::new(access_key_id, secret_access_key, session_token, None, "servo-sdk");
        let config = Config::builder().region(Region::new(region)).credentials_provider(credentials);
        Ok(Self::with_config(match endpoint {
            Some(endpoint) => config.endpoint_url(http::address(endpoint)?),
            None => config,
        }))
    }

    /// By the variables that Lambda sets: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_REGION`; and
    /// by `AWS_ENDPOINT_URL_LAMBDA`, `AWS_ENDPOINT_URL` or `SERVO_URL` where the address is not AWS's.
    pub fn from_env() -> Result<Self, ServiceError> {
        let Environment { endpoint, keys, .. } = Environment::read();
        let Some(keys) = keys else {
            let missing = "no keys are set; set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or hand over a \
                           client of your own";
            return Err(ServiceError::Unreachable(missing.to_owned()));
        };
        Self::signed(endpoint.as_deref(), keys)
    }
}

#[async_trait]
impl DurableServiceClient for AwsLambdaClient {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        let CheckpointRequest { checkpoint_token, updates, client_token } = request;
        let updates = updates.map(|updates| updates.into_iter().map(convert::update).collect()).transpose()?;
        let call = self.client.checkpoint_durable_execution().durable_execution_arn(arn);
        let call = call.checkpoint_token(checkpoint_token).set_updates(updates).set_client_token(client_token);
        convert::checkpointed(call.send().await.map_err(|error| failed(&error))?)
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        let call = self.client.get_durable_execution_state().durable_execution_arn(arn);
        let call = call.checkpoint_token(token).marker(marker);
        convert::state(call.send().await.map_err(|error| failed(&error))?)
    }
}

/// What a failure of AWS's client is in this SDK's words. An answer is read here once more: AWS's client drops the parts of it
/// that it does not expect.
fn failed<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> ServiceError {
    let cause = cause(error);
    if let Some(answer) = error.raw_response()
        && let Some(body) = answer.body().bytes()
    {
        let status = answer.status().as_u16();
        if answer.status().is_success() {
            return ServiceError::Unreadable(cause.to_string());
        }
        let said = answer.headers().get(http::ERROR_TYPE);
        let name = http::name_of(said, StatusCode::from_u16(status).unwrap_or_default());
        return http::refusal(Answer { status, name, body: body.to_vec() });
    }
    match (cause.downcast_ref::<ServiceError>(), error) {
        (Some(ours), _) => ours.clone(),
        // It was never sent, and the next attempt would go no further.
        (None, SdkError::ConstructionFailure(_)) => ServiceError::Unreadable(cause.to_string()),
        (None, SdkError::DispatchFailure(failure)) if failure.is_user() => ServiceError::Unreadable(cause.to_string()),
        (None, _) => ServiceError::Unreachable(cause.to_string()),
    }
}

/// The innermost cause says more than the outermost.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}
