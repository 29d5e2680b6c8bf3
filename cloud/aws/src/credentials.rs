//! Failures to load credentials, with messages that name where a user has to check.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sts::operation::{
    assume_role::AssumeRoleError, assume_role_with_web_identity::AssumeRoleWithWebIdentityError,
};
use aws_smithy_runtime_api::client::{
    orchestrator::HttpResponse,
    result::{ConnectorError, SdkError},
};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use capasg_cloud::{CloudError, ErrorClass};

use crate::causes::{causes, chain};

/// The providers of the chain, in the order in which the SDK tries them.
const CHAIN: &str = "environment variables, profile files, web identity (IAM role for a service account), \
                     container endpoint (EKS pod identity), instance metadata";

/// The error to report if a call failed because of missing credentials; `None` if that was not the reason.
/// Nothing was sent then, so the outcome is known.
pub(crate) fn failure(api: &'static str, error: &(dyn Error + 'static)) -> Option<CloudError> {
    let cause = causes(error).find_map(|cause| cause.downcast_ref::<CredentialsError>())?;
    let message = match cause {
        CredentialsError::CredentialsNotLoaded(_) => {
            format!(
                "no AWS credentials were found; tried, in this order: {CHAIN}. See docs/users/iam.md, Credentials"
            )
        }
        _ => format!("AWS credentials could not be loaded: {}", reason(cause)),
    };
    let class = if is_transient(cause) { ErrorClass::Transient } else { ErrorClass::Denied };
    let code = "Credentials".to_owned();
    Some(CloudError { api, class, code, message, outcome_unknown: false, request_id: None })
}

/// What to correct if STS rejects the role of a service account ("IAM roles for service accounts" of the EKS user guide).
const TRUST: &str = "The trust policy of the IAM role must allow the service account of this pod: its subject (sub) is \
                     system:serviceaccount:<namespace>:<name>, in a release \
                     system:serviceaccount:capasg-system:capasg-manager for the manager and \
                     system:serviceaccount:capasg-extension-system:capasg-extension for the Runtime Extension";

/// STS's message if it rejected the role, else the providers' messages.
fn reason(error: &(dyn Error + 'static)) -> String {
    let message = causes(error).find_map(sts_message).unwrap_or_else(|| chain(error));
    let is_untrusted = causes(error).any(|cause| {
        let cause = cause.downcast_ref::<AssumeRoleWithWebIdentityError>();
        cause.and_then(ProvideErrorMetadata::code) == Some("AccessDenied")
    });
    if is_untrusted { format!("{}. {TRUST}", message.trim_end_matches('.')) } else { message }
}

fn sts_message(error: &(dyn Error + 'static)) -> Option<String> {
    let message = |api: &str, error: &dyn ProvideErrorMetadata| {
        Some(format!("{api}: {}: {}", error.code()?, error.message().unwrap_or_default()))
    };
    if let Some(error) = error.downcast_ref::<AssumeRoleWithWebIdentityError>() {
        message("AssumeRoleWithWebIdentity", error)
    } else if let Some(error) = error.downcast_ref::<AssumeRoleError>() {
        message("AssumeRole", error)
    } else {
        None
    }
}

/// Whether the same credentials may load next time: the network, a deadline or a fault of STS.
fn is_transient(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(cause.downcast_ref::<CredentialsError>(), Some(CredentialsError::ProviderTimedOut(_)))
            || cause.is::<ConnectorError>()
            || cause
                .downcast_ref::<SdkError<AssumeRoleWithWebIdentityError, HttpResponse>>()
                .is_some_and(is_fault)
            || cause.downcast_ref::<SdkError<AssumeRoleError, HttpResponse>>().is_some_and(is_fault)
    })
}

fn is_fault<E>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::ServiceError(answer) => answer.raw().status().as_u16() >= 500,
        SdkError::ConstructionFailure(_) => false,
        _ => true,
    }
}
