//! Failures to get credentials, and their shared cache.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use aws_credential_types::provider::{self, ProvideCredentials, error::CredentialsError, future};
use capasg_cloud::{CloudError, ErrorClass};
use capasg_cloud_aws::AwsConnector;

use crate::replay::{REGION, Replay, Reply, credentials, refused};

/// Credentials by a function, counted.
#[derive(Clone)]
struct Provider {
    load: fn() -> provider::Result,
    loads: Arc<AtomicUsize>,
}

impl Provider {
    fn new(load: fn() -> provider::Result) -> Self {
        Self { load, loads: Arc::default() }
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Provider")
    }
}

impl ProvideCredentials for Provider {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        self.loads.fetch_add(1, Ordering::SeqCst);
        future::ProvideCredentials::ready((self.load)())
    }
}

async fn failure(load: fn() -> provider::Result) -> Result<CloudError> {
    let replay = Replay::new([Reply::result("GetCallerIdentity", "<Account>1</Account>")]);
    let cloud = AwsConnector::new(replay.config(Provider::new(load))).connect(REGION);
    let error = refused(cloud.account().await)?;
    assert!(replay.sent().is_empty(), "nothing is sent without credentials");
    assert!(!error.outcome_unknown, "{error}");
    Ok(error)
}

#[tokio::test]
async fn missing_credentials_say_what_was_tried() -> Result<()> {
    let error = failure(|| Err(CredentialsError::not_loaded("nothing there"))).await?;
    assert_eq!(error.class, ErrorClass::Denied);
    assert_eq!(
        error.to_string(),
        "GetCallerIdentity: Credentials: no AWS credentials were found; tried, in this order: environment \
         variables, profile files, web identity (IAM role for a service account), container endpoint (EKS pod \
         identity), instance metadata"
    );
    Ok(())
}

#[tokio::test]
async fn credentials_that_are_refused_say_why() -> Result<()> {
    let error = failure(|| Err(CredentialsError::invalid_configuration("profile `ops` loops"))).await?;
    assert_eq!(error.class, ErrorClass::Denied);
    assert_eq!(
        error.message,
        "AWS credentials could not be loaded: the credentials provider was not properly configured: profile \
         `ops` loops"
    );
    Ok(())
}

#[tokio::test]
async fn a_slow_provider_may_answer_next_time() -> Result<()> {
    let error =
        failure(|| Err(CredentialsError::provider_timed_out(std::time::Duration::from_secs(5)))).await?;
    assert_eq!(error.class, ErrorClass::Transient);
    assert!(error.message.ends_with("credentials provider timed out after 5 seconds"), "{error}");
    Ok(())
}

#[tokio::test]
async fn regions_share_the_credentials() -> Result<()> {
    let replay = Replay::new([Reply::result("GetCallerIdentity", "<Account>1</Account>")]);
    let provider = Provider::new(|| Ok(credentials()));
    let connector = AwsConnector::new(replay.config(provider.clone()));
    for region in ["eu-central-1", "us-east-1", "eu-central-1"] {
        let cloud = connector.connect(region);
        cloud.account().await?;
        cloud.account().await?;
    }
    assert_eq!(replay.sent().len(), 6);
    assert_eq!(provider.loads.load(Ordering::SeqCst), 1);
    Ok(())
}
