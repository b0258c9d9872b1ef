//! Handlers as workers of a Lambda Runtime API: on AWS Lambda, or on a Servo server, whose address Lambda's own variable
//! `AWS_LAMBDA_RUNTIME_API` names.

use std::sync::Arc;

use lambda_runtime::{LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_wire::lambda::DurableExecutionInvocationInput;

use crate::http::ServoClient;
use crate::{DurableServiceClient, Handler, Options, handle};

/// Serves invocations until the process is told to end. The service's address comes from the environment, see
/// [`ServoClient::from_env`].
pub async fn run<E, R, H>(handler: H) -> Result<(), lambda_runtime::Error>
where
    E: DeserializeOwned + Send,
    R: Serialize + Send,
    H: Handler<E, R>,
{
    run_with(handler, Arc::new(ServoClient::from_env()?), Options::default()).await
}

/// The same with a client and options of one's own.
pub async fn run_with<E, R, H>(
    handler: H,
    client: Arc<dyn DurableServiceClient>,
    options: Options,
) -> Result<(), lambda_runtime::Error>
where
    E: DeserializeOwned + Send,
    R: Serialize + Send,
    H: Handler<E, R>,
{
    let handler = &handler;
    let service = service_fn(move |event: LambdaEvent<DurableExecutionInvocationInput>| {
        let (client, options) = (client.clone(), options.clone());
        async move {
            let call = |event, ctx| handler.call(event, ctx);
            // An error makes the service invoke again.
            handle(call, event.payload, client, options).await.map_err(lambda_runtime::Error::from)
        }
    });
    lambda_runtime::run(service).await
}
