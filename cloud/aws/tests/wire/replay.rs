//! A connection that records what is sent and answers from a list: no sockets, no clock.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider},
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use capasg_cloud::{Cloud, CloudError, Queue, Write};
use capasg_cloud_aws::AwsConnector;
use percent_encoding::percent_decode_str;

/// The region that all replayed clients use.
pub const REGION: &str = "eu-central-1";

/// How the other side behaves.
#[derive(Debug, Clone)]
pub enum Reply {
    /// An answer with this status and body.
    Answer(u16, String),
    /// Nothing, ever.
    Silence,
    /// The connection breaks.
    Broken,
}

impl Reply {
    /// A success with this body.
    pub fn ok(body: &str) -> Self {
        Self::Answer(200, body.to_owned())
    }

    /// An Auto Scaling (or STS) success of `operation` with this result.
    pub fn result(operation: &str, result: &str) -> Self {
        Self::ok(&format!(
            "<{operation}Response><{operation}Result>{result}</{operation}Result>\
             <ResponseMetadata><RequestId>req-1</RequestId></ResponseMetadata></{operation}Response>"
        ))
    }

    /// An Auto Scaling error.
    pub fn autoscaling_error(status: u16, code: &str, message: &str) -> Self {
        Self::Answer(
            status,
            format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>\
                 </Error><RequestId>req-1</RequestId></ErrorResponse>"
            ),
        )
    }

    /// An EC2 error.
    pub fn ec2_error(status: u16, code: &str, message: &str) -> Self {
        Self::Answer(
            status,
            format!(
                "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
                 <RequestID>req-1</RequestID></Response>"
            ),
        )
    }
}

/// One request as it was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The host.
    pub host: String,
    /// The host's first label: the service.
    pub service: String,
    /// The members of a query request, `Action` and `Version` apart.
    pub members: BTreeMap<String, String>,
    /// The operation.
    pub action: String,
    /// The body as it was sent.
    pub body: String,
    /// The `x-amz-user-agent` header.
    pub user_agent: String,
}

impl Sent {
    fn read(request: &HttpRequest) -> Self {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let header = |name: &str| request.headers().get(name).unwrap_or_default().to_owned();
        let host = request.uri().split("://").nth(1).unwrap_or_default();
        let mut members: BTreeMap<String, String> = body.split('&').filter_map(pair).collect();
        members.remove("Version");
        let target = header("x-amz-target").rsplit('.').next().unwrap_or_default().to_owned();
        Self {
            host: host.split('/').next().unwrap_or_default().to_owned(),
            service: host.split('.').next().unwrap_or_default().to_owned(),
            action: members.remove("Action").unwrap_or(target),
            members,
            body,
            user_agent: header("x-amz-user-agent"),
        }
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let (name, value) = text.split_once('=')?;
    Some((decoded(name), decoded(value)))
}

#[derive(Debug, Default)]
struct Log {
    replies: VecDeque<Reply>,
    sent: Vec<Sent>,
}

/// The connection. The last reply is given again and again.
#[derive(Debug, Clone, Default)]
pub struct Replay(Arc<Mutex<Log>>);

impl Replay {
    /// Answers in this order.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replay = Self::default();
        replay.log().replies.extend(replies);
        replay
    }

    /// A configuration with this connection and these credentials.
    pub fn config(&self, credentials: impl ProvideCredentials + 'static) -> SdkConfig {
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.http_client())
            .build()
    }

    /// This connection as the SDK takes it.
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_, _| connector.clone())
    }

    /// The cloud at the other end.
    pub fn cloud(&self) -> Arc<dyn Cloud> {
        AwsConnector::new(self.config(credentials())).connect(REGION)
    }

    /// The queues at the other end.
    pub fn queues(&self) -> Arc<dyn Queue> {
        AwsConnector::new(self.config(credentials())).queues(REGION)
    }

    /// What was sent so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.log().sent.clone()
    }

    /// The one request that was sent.
    pub fn only(&self) -> anyhow::Result<Sent> {
        let mut sent = self.sent();
        anyhow::ensure!(sent.len() == 1, "{} requests were sent", sent.len());
        sent.pop().ok_or_else(|| anyhow::anyhow!("nothing was sent"))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Reply> {
        let mut log = self.log();
        if log.replies.len() > 1 { log.replies.pop_front() } else { log.replies.front().cloned() }
    }
}

impl HttpConnector for Replay {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.log().sent.push(Sent::read(&request));
        match self.next() {
            Some(Reply::Answer(status, body)) => HttpConnectorFuture::ready(answer(status, body)),
            Some(Reply::Silence) => HttpConnectorFuture::new(std::future::pending()),
            Some(Reply::Broken) | None => {
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
                HttpConnectorFuture::ready(Err(ConnectorError::io(broken.into())))
            }
        }
    }
}

fn answer(status: u16, body: String) -> Result<HttpResponse, ConnectorError> {
    let status = StatusCode::try_from(status).map_err(|error| ConnectorError::user(error.into()))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("x-amzn-requestid", "req-1");
    Ok(response)
}

/// Credentials of nobody.
pub fn credentials() -> Credentials {
    Credentials::new("AKIDEXAMPLE", "not-a-secret", None, None, "test")
}

/// The error of a call that must fail.
pub fn refused<T: std::fmt::Debug>(result: capasg_cloud::Result<T>) -> anyhow::Result<CloudError> {
    match result {
        Ok(value) => Err(anyhow::anyhow!("the call went well: {value:?}")),
        Err(error) => Ok(error),
    }
}

/// Operation and members of what `write` sends, whatever comes back.
pub async fn sent(write: &Write) -> anyhow::Result<(String, BTreeMap<String, String>)> {
    let replay = Replay::new([Reply::autoscaling_error(500, "InternalFailure", "")]);
    refused(replay.cloud().write(write).await)?;
    let sent = replay.only()?;
    Ok((sent.action, sent.members))
}
