//! Credentials and settings of the process, and the clients of each region.

use std::{fmt, sync::Arc, time::Duration};

use aws_config::{
    AppName, BehaviorVersion, Region, SdkConfig, environment::EnvironmentVariableRegionProvider,
    identity::IdentityCache, meta::region::RegionProviderChain, profile::ProfileFileRegionProvider,
    retry::RetryConfig, stalled_stream_protection::StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_http_client::{
    Builder as HttpClientBuilder, ConnectorBuilder,
    proxy::ProxyConfig,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{http::SharedHttpClient, runtime_components::RuntimeComponents};
use capasg_cloud::{Cloud, Identity, Queue, Result};

use crate::{
    assumed::{self, Kept},
    call::CALL_TIMEOUT,
    cloud::AwsCloud,
    ec2::console::{self, ConsoleOutput},
    sqs::AwsQueue,
};

/// How long a connection may take to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// How long credentials may take to load; they are kept until shortly before they expire.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may stall before the call is given up.
const STALL_GRACE: Duration = Duration::from_secs(10);

/// Connects to any region with the credentials of this process.
///
/// All regions share one pool of connections and one cache of credentials.
#[derive(Clone)]
pub struct AwsConnector {
    config: SdkConfig,
    /// The credentials, unless they are those of the process.
    kept: Option<Arc<Kept>>,
}

impl AwsConnector {
    /// Reads the settings from the environment and the profile files, and prepares the credentials chain.
    ///
    /// Nothing is sent to AWS yet: missing credentials show as [`capasg_cloud::ErrorClass::Denied`] on the
    /// first call. The region of the environment or profile, `us-east-1` without one, serves only to exchange a
    /// web identity token or to assume a profile's role; the instance metadata service is not queried for it,
    /// since that blocks the start for seconds where there is none.
    pub async fn load() -> Self {
        let region = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
            .or_else(ProfileFileRegionProvider::new())
            .or_else(Region::from_static("us-east-1"));
        let loader =
            aws_config::defaults(BehaviorVersion::latest()).region(region).http_client(http_client());
        Self::new(loader.load().await)
    }

    /// Uses credentials, endpoint and HTTP client of a given configuration.
    ///
    /// The SDK's own retries are switched off, and time-outs and the user agent are set: those belong to the
    /// port's contract of one method call being one AWS call.
    #[must_use]
    pub fn new(config: SdkConfig) -> Self {
        let timeouts =
            TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(CALL_TIMEOUT).build();
        let stalled = StalledStreamProtectionConfig::enabled().grace_period(STALL_GRACE).build();
        let shared_client = config.http_client().unwrap_or_else(http_client);
        let mut builder = config
            .into_builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(shared_client)
            .identity_cache(IdentityCache::lazy().load_timeout(CREDENTIALS_TIMEOUT).build())
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .stalled_stream_protection(stalled);
        builder.set_app_name(app_name());
        Self { config: builder.build(), kept: None }
    }

    /// Connects with the credentials of an identity, which STS of a Region gives, if it gives them. Nothing is sent yet.
    ///
    /// Each call of this function gives credentials of their own, which are kept until shortly before they expire or until
    /// AWS rejects them.
    #[must_use]
    pub fn with(&self, identity: &Identity, region: &str) -> Self {
        if identity.is_process() {
            return self.clone();
        }
        let time = self.config.time_source().unwrap_or_default();
        let kept =
            assumed::provider(&identity.source, &self.of(region)).map(|source| Kept::new(source, time));
        let mut builder = self.config.to_builder().identity_cache(IdentityCache::no_cache());
        let provider = kept.clone().map(|kept| kept as Arc<dyn ProvideCredentials>);
        builder.set_credentials_provider(provider.map(SharedCredentialsProvider::new));
        Self { config: builder.build(), kept }
    }

    /// The cloud of one region. Nothing is sent to AWS yet.
    #[must_use]
    pub fn connect(&self, region: &str) -> Arc<dyn Cloud> {
        Arc::new(AwsCloud::new(&self.of(region), self.kept.clone()))
    }

    /// The queues of one region. Nothing is sent to AWS yet.
    #[must_use]
    pub fn queues(&self, region: &str) -> Arc<dyn Queue> {
        Arc::new(AwsQueue::new(&self.of(region)))
    }

    /// The console output of an instance.
    ///
    /// # Errors
    /// If the instance does not exist, or AWS rejects the call.
    pub async fn console_output(&self, region: &str, instance: &str) -> Result<ConsoleOutput> {
        console::output(&aws_sdk_ec2::Client::new(&self.of(region)), instance).await
    }

    /// The user data of an instance; empty if it has none.
    ///
    /// # Errors
    /// As [`Self::console_output`].
    pub async fn user_data(&self, region: &str, instance: &str) -> Result<Vec<u8>> {
        console::user_data(&aws_sdk_ec2::Client::new(&self.of(region)), instance).await
    }

    fn of(&self, region: &str) -> SdkConfig {
        self.config.to_builder().region(Region::new(region.to_owned())).build()
    }
}

impl fmt::Debug for AwsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsConnector")
            .field("endpoint_url", &self.config.endpoint_url())
            .finish_non_exhaustive()
    }
}

/// `capasg-<version>`: shows in the user agent and so in the account's `CloudTrail`. A slash is not allowed there.
fn app_name() -> Option<AppName> {
    AppName::new(concat!("capasg-", env!("CARGO_PKG_VERSION"))).ok()
}

/// The SDK's usual HTTPS client, made here so that all clients share its connections.
fn http_client() -> SharedHttpClient {
    HttpClientBuilder::new().build_with_connector_fn(|settings, components| {
        let mut connector =
            ConnectorBuilder::default().tls_provider(tls::Provider::Rustls(CryptoMode::AwsLc));
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.set_proxy_config(Some(ProxyConfig::from_env()));
        connector.build()
    })
}
