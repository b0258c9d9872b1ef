//! HTTP for AWS's client, over the one that this SDK has anyway: a second HTTP and TLS implementation stays out of the program.

use std::sync::{Arc, OnceLock};

use aws_sdk_lambda::config::{HttpClient, RuntimeComponents};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use reqwest::Method;

use crate::http;
use crate::service::ServiceError;

/// Connections without TLS and with it. Which of them are needed is known with the first request: the address may come from
/// settings that only AWS's client can read.
#[derive(Debug, Clone, Default)]
pub(super) struct Connector(Arc<[OnceLock<reqwest::Client>; 2]>);

impl Connector {
    fn to(&self, uri: &str) -> Result<reqwest::Client, ServiceError> {
        let plain = uri.starts_with("http://");
        let kept = &self.0[usize::from(!plain)];
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let client = http::connections(plain).build().map_err(|error| http::unreachable(&error))?;
        Ok(kept.get_or_init(|| client).clone())
    }

    async fn send(&self, request: &HttpRequest) -> Result<HttpResponse, ServiceError> {
        let unusable = |reason: &str| ServiceError::Unreadable(format!("the request cannot be sent: {reason}"));
        let method = Method::from_bytes(request.method().as_bytes()).map_err(|_| unusable("its method is none"))?;
        // Both calls have their whole body in memory, where it was signed.
        let body = request.body().bytes().ok_or_else(|| unusable("its body is a stream"))?;
        let mut outgoing = self.to(request.uri())?.request(method, request.uri()).timeout(http::ANSWER_TIMEOUT);
        for (name, value) in request.headers() {
            outgoing = outgoing.header(name, value);
        }
        let response = outgoing.body(body.to_vec()).send().await;
        let mut response = response.map_err(|error| http::unreachable(&error))?;
        let body = http::body(&mut response).await?;
        let status =
            StatusCode::try_from(response.status().as_u16()).map_err(|_| unusable("its answer has no status"))?;
        let mut answer = HttpResponse::new(status, SdkBody::from(body));
        for (name, value) in response.headers() {
            // What is no text is nothing that AWS's client reads.
            if let Ok(value) = value.to_str() {
                let _ = answer.headers_mut().try_append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(answer)
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        // The error is found again below AWS's own by its type.
        HttpConnectorFuture::new(async move {
            connector.send(&request).await.map_err(|error| ConnectorError::io(error.into()))
        })
    }
}
