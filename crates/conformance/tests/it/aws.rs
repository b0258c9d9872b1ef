//! The client over `aws-sdk-lambda`: against a server that verifies its signatures, and beside the SDK's own client on a socket.

mod exchange;
mod same;

use std::collections::BTreeMap;

use servo_model::{Role, TenantId};
use servo_sdk::aws_sdk_lambda::config::{Builder, Credentials, Region};
use servo_sdk::{AwsCredentials, AwsLambdaClient, CheckpointRequest, DurableServiceClient as _, ServiceError};
use servo_server::auth::{AccessKey, Auth, Key};

use crate::server::Server;
use crate::service::Service;

const ID: &str = "AKIASERVO0EXAMPLE";
const SECRET: &str = "s3cret/with+signs+and+length";
const REGION: &str = "us-east-1";
/// What the test's own requests show.
pub(crate) const TOKEN: &str = "admin-of-the-cases";
const ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:f:1/durable-execution/a/inv_0";

/// Nobody is let in without a key, so every call of a handler was signed, and its signature was right.
pub(crate) fn auth() -> Auth {
    let tenant = TenantId::default_tenant();
    let sha256 = servo_canon::Digest::of(TOKEN.as_bytes());
    let admin = Key {
        name: "admin".to_owned(),
        tenant: tenant.clone(),
        roles: vec![Role::PlatformAdmin],
        sha256,
        self_made: true,
    };
    let handlers = AccessKey { id: ID.to_owned(), secret: SECRET.to_owned(), tenant, roles: vec![Role::Operator] };
    Auth::Keys { keys: vec![admin], access_keys: vec![handlers] }
}

fn keys(secret: &str) -> AwsCredentials {
    AwsCredentials {
        access_key_id: ID.to_owned(),
        secret_access_key: secret.to_owned(),
        session_token: None,
        region: REGION.to_owned(),
    }
}

pub(crate) fn client(base: &str) -> AwsLambdaClient {
    AwsLambdaClient::signed(Some(base), keys(SECRET)).unwrap()
}

/// With what status both calls are refused.
async fn refused(client: AwsLambdaClient) -> [u16; 2] {
    let request = CheckpointRequest { checkpoint_token: "t".to_owned(), updates: None, client_token: None };
    let status = |error| match error {
        ServiceError::Refused { status, .. } => status,
        other => panic!("{other}"),
    };
    let checkpoint = client.checkpoint(ARN, request).await.unwrap_err();
    [status(checkpoint), status(client.get_state(ARN, "t+/= ü", "m").await.unwrap_err())]
}

/// DX-044: the server looks at what AWS's client signs. With another secret it refuses; with the right one, however the client
/// came by it, the calls get past the door, where it is the token that is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_are_verified() {
    let server = Server::start(Service::Aws, BTreeMap::new()).await;
    let signed = |secret| AwsLambdaClient::signed(Some(server.base()), keys(secret)).unwrap();
    assert_eq!(refused(signed("another-secret-of-this-length")).await, [403, 403]);
    assert_eq!(refused(signed(SECRET)).await, [400, 400]);
    let settings = || {
        let credentials = Credentials::new(ID, SECRET, None, None, "test");
        Builder::new().region(Region::new(REGION)).endpoint_url(server.base()).credentials_provider(credentials)
    };
    assert_eq!(refused(AwsLambdaClient::with_config(settings())).await, [400, 400]);
}

/// An address that is none is said when the client is made, not with its first call.
#[test]
fn an_address_is_looked_at_early() {
    assert!(AwsLambdaClient::signed(Some("not an address"), keys(SECRET)).is_err());
}
