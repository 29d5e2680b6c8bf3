//! Failures to get credentials, and their shared cache.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use aws_config::{
    BehaviorVersion, Region,
    provider_config::ProviderConfig,
    web_identity_token::{StaticConfiguration, WebIdentityTokenCredentialsProvider},
};
use aws_credential_types::provider::{self, ProvideCredentials, error::CredentialsError, future};
use capasg_cloud::{CloudError, ErrorClass};
use capasg_cloud_aws::AwsConnector;

use crate::{
    replay::{REGION, Replay, Reply, credentials, refused},
    secrets::{listen, logged},
};

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
         identity), instance metadata. See docs/users/iam.md, Credentials"
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

/// A cloud whose credentials come from STS for a service account's token, over the same connection.
async fn with_web_identity(replay: &Replay) -> Result<capasg_cloud::Result<String>> {
    let token = tempfile::NamedTempFile::new()?;
    std::fs::write(token.path(), TOKEN)?;
    let sts = ProviderConfig::without_region()
        .with_region(Some(Region::from_static(REGION)))
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_http_client(replay.http_client());
    let provider = WebIdentityTokenCredentialsProvider::builder()
        .configure(&sts)
        .static_configuration(StaticConfiguration {
            web_identity_token_file: token.path().to_owned(),
            role_arn: "arn:aws:iam::123456789012:role/capasg".to_owned(),
            session_name: "capasg".to_owned(),
        })
        .build();
    let cloud = AwsConnector::new(replay.config(provider)).connect(REGION);
    Ok(cloud.account().await)
}

const TOKEN: &str = "web-identity-token-canary";

#[tokio::test]
async fn a_service_account_gets_its_role() -> Result<()> {
    let assumed = Reply::result(
        "AssumeRoleWithWebIdentity",
        "<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t\
         </SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials><AssumedRoleUser>\
         <AssumedRoleId>A:capasg</AssumedRoleId><Arn>arn:aws:sts::123456789012:assumed-role/capasg/capasg</Arn>\
         </AssumedRoleUser>",
    );
    let identity = Reply::result("GetCallerIdentity", "<Account>123456789012</Account>");
    let replay = Replay::new([assumed, identity]);
    listen();
    assert_eq!(with_web_identity(&replay).await??, "123456789012");
    let actions: Vec<String> = replay.sent().into_iter().map(|sent| sent.action).collect();
    assert_eq!(actions, ["AssumeRoleWithWebIdentity", "GetCallerIdentity"]);
    assert!(replay.sent()[0].body.contains(TOKEN));
    assert!(!logged().contains(TOKEN));
    Ok(())
}

#[tokio::test]
async fn a_refused_role_is_denied_in_the_words_of_sts() -> Result<()> {
    let words = "Not authorized to perform sts:AssumeRoleWithWebIdentity";
    let replay = Replay::new([Reply::autoscaling_error(403, "AccessDenied", words)]);
    let error = refused(with_web_identity(&replay).await?)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Denied, false));
    let expected = format!(
        "AWS credentials could not be loaded: AssumeRoleWithWebIdentity: AccessDenied: {words}. The trust policy"
    );
    assert!(error.message.starts_with(&expected), "{error}");
    assert!(
        error.message.contains("system:serviceaccount:capasg-system:capasg-manager for the manager"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains(TOKEN));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_sts_may_pass() -> Result<()> {
    for fault in [Reply::autoscaling_error(500, "InternalFailure", "try again"), Reply::Broken] {
        let replay = Replay::new([fault]);
        let error = refused(with_web_identity(&replay).await?)?;
        assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, false), "{error}");
    }
    Ok(())
}
