//! The one way to send an AWS call: with the SDK's log off, and its errors translated into the port's.

use std::{error::Error, future::Future, sync::LazyLock, time::Duration};

use aws_sdk_sts::operation::RequestId;
use aws_smithy_runtime_api::client::{
    orchestrator::HttpResponse,
    result::{ConnectorError, SdkError},
};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use capasg_cloud::{CloudError, ErrorClass, Result, WriteReply, Written};
use tracing::{Dispatch, instrument::WithSubscriber, subscriber::NoSubscriber};

use crate::{causes::chain, credentials, message};

/// How long one call may take, credentials included, before its outcome counts as unknown.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Receives no log. Not `Dispatch::none`: call sites that are first reached under it stay silent everywhere.
static SILENCE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// Sends one call of the operation `api`.
///
/// # Errors
/// Whatever went wrong, with its class. `outcome_unknown` is set where the call may have taken effect: no
/// answer, an answer that cannot be read, or a fault of AWS's own (5xx).
pub(crate) async fn call<T, E>(
    api: &'static str,
    sent: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
) -> Result<T>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    // The SDK's trace log can hold bodies: user data, tokens.
    let answer = sent.with_subscriber(SILENCE.clone()).await;
    answer.map_err(|failure| {
        let request_id = failure.request_id();
        let mut error = cloud_error(api, &failure);
        tracing::debug!(api, class = error.class.as_str(), code = error.code, request_id, "AWS call failed");
        if let Some(encoded_message) = failure.message().and_then(message::encoded_details) {
            tracing::info!(
                api,
                encoded_message,
                "AWS denied the call: aws sts decode-authorization-message shows the policy that denies it"
            );
        }
        error.request_id = request_id.map(str::to_owned);
        error
    })
}

/// The reply to a change, with AWS's request ID.
pub(crate) fn made(written: Written, response: &impl RequestId) -> WriteReply {
    WriteReply { written, request_id: response.request_id().map(str::to_owned) }
}

/// Sends one call whose response holds nothing but success.
///
/// # Errors
/// As [`call`].
pub(crate) fn done<T, E>(
    api: &'static str,
    sent: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
) -> impl Future<Output = Result<WriteReply>> + Send
where
    T: RequestId,
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    // The SDK's futures are large, and would be held twice.
    let sent = Box::pin(sent);
    async move { call(api, sent).await.map(|response| made(Written::Done, &response)) }
}

/// A response misses a member that the API promises: nothing of it can be trusted.
pub(crate) fn unreadable(api: &'static str, member: &str) -> CloudError {
    CloudError::unanswered(api, "UnreadableReply", &format!("the response has no {member}"))
}

fn cloud_error<E>(api: &'static str, failure: &SdkError<E, HttpResponse>) -> CloudError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match failure {
        SdkError::ServiceError(answer) => {
            let (error, status) = (answer.err(), answer.raw().status().as_u16());
            // The SDK calls a success that it cannot parse an error of the service.
            if status < 400 {
                return CloudError::unanswered(api, "UnreadableReply", &chain(error));
            }
            answered(api, status, error.code(), error.message())
        }
        SdkError::ConstructionFailure(_) => CloudError::unsendable(api, &chain(failure)),
        SdkError::TimeoutError(_) => timeout(api),
        SdkError::DispatchFailure(dispatch) => match dispatch.as_connector_error() {
            Some(error) => not_dispatched(api, error),
            None => CloudError::unanswered(api, "Network", &chain(failure)),
        },
        SdkError::ResponseError(answer) => match answer.raw().status().as_u16() {
            status @ 400.. => answered(api, status, None, None),
            _ => CloudError::unanswered(api, "UnreadableReply", &chain(failure)),
        },
        _ => CloudError::unanswered(api, "Unknown", &chain(failure)),
    }
}

/// An error response; one without a code comes from a proxy or load balancer.
fn answered(api: &'static str, status: u16, code: Option<&str>, text: Option<&str>) -> CloudError {
    let code = code.map_or_else(|| format!("Http{status}"), str::to_owned);
    let message = text.map_or_else(|| format!("AWS answered with status {status}"), message::stable);
    let mut error = CloudError::answered(api, status, &code, &message);
    error.outcome_unknown = status >= 500 && error.class == ErrorClass::Transient;
    error
}

fn not_dispatched(api: &'static str, error: &ConnectorError) -> CloudError {
    if let Some(failure) = credentials::failure(api, error) {
        failure
    } else if error.is_timeout() {
        timeout(api)
    } else if error.is_user() {
        CloudError::unsendable(api, &chain(error))
    } else {
        CloudError::unanswered(api, "Network", &chain(error))
    }
}

fn timeout(api: &'static str) -> CloudError {
    CloudError::timed_out(api, &format!("no answer within {} s", CALL_TIMEOUT.as_secs()))
}
