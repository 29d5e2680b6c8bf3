//! The credentials of an identity other than that of the process: roles that are assumed, and access keys.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_config::{SdkConfig, sts::AssumeRoleProvider};
use aws_credential_types::{
    Credentials,
    provider::{self, ProvideCredentials, SharedCredentialsProvider, error::CredentialsError, future},
};
use aws_smithy_async::time::SharedTimeSource;
use capasg_cloud::{CredentialSource, Role};
use tokio::sync::{Mutex, OnceCell};

/// How long before they expire credentials are replaced: longer than a call with its waits takes.
const BEFORE_EXPIRY: Duration = Duration::from_mins(5);
/// How long a failure is kept: many pools ask with one identity, and STS has quotas.
const KEEP_FAILURE: Duration = Duration::from_secs(15);
/// How long credentials that AWS rejected are kept at least: a permission that is missing does not mean that they are bad.
const KEEP_REJECTED: Duration = Duration::from_mins(1);
/// The variable with the token that IAM roles for service accounts mount ("IAM roles for service accounts" of the EKS user
/// guide).
const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
/// What providers are called in errors of the SDK.
const NAME: &str = "Identity";

/// The provider of a source; `config` has the credentials of the process, and the Region whose STS endpoint is called.
pub(crate) fn provider(source: &CredentialSource, config: &SdkConfig) -> Option<SharedCredentialsProvider> {
    match source {
        CredentialSource::Process => config.credentials_provider(),
        CredentialSource::Keys { access_key_id, secret_access_key, session_token } => {
            let token = session_token.as_ref().map(|token| token.expose().to_owned());
            let keys = Credentials::new(access_key_id, secret_access_key.expose(), token, None, NAME);
            Some(SharedCredentialsProvider::new(keys))
        }
        CredentialSource::WebIdentity(role) => {
            let client = aws_sdk_sts::Client::new(config);
            Some(SharedCredentialsProvider::new(WebIdentity { client, role: role.clone() }))
        }
        CredentialSource::Role { role, from } => {
            let from = provider(from, config)?;
            let config = config.to_builder().credentials_provider(from).build();
            Some(SharedCredentialsProvider::new(Assumed {
                config,
                role: role.clone(),
                built: OnceCell::new(),
            }))
        }
    }
}

/// `AssumeRole` with the SDK's provider, which can be made only within a future.
struct Assumed {
    config: SdkConfig,
    role: Role,
    built: OnceCell<AssumeRoleProvider>,
}

impl Assumed {
    async fn load(&self) -> provider::Result {
        let built = self.built.get_or_init(|| self.build()).await;
        built.provide_credentials().await
    }

    async fn build(&self) -> AssumeRoleProvider {
        let Role { arn, session_name, external_id, duration, tags, policy, policy_arns } = &self.role;
        let mut builder = AssumeRoleProvider::builder(arn).configure(&self.config).session_name(session_name);
        if let Some(id) = external_id {
            builder = builder.external_id(id);
        }
        if let Some(duration) = duration {
            builder = builder.session_length(*duration);
        }
        if !tags.is_empty() {
            builder = builder.tags(tags.clone());
        }
        if let Some(policy) = policy {
            builder = builder.policy(policy);
        }
        if !policy_arns.is_empty() {
            builder = builder.policy_arns(policy_arns.clone());
        }
        builder.build().await
    }
}

/// `AssumeRoleWithWebIdentity` with the token of this process's service account. The SDK's own provider takes no duration,
/// and reads endpoints anew.
struct WebIdentity {
    client: aws_sdk_sts::Client,
    role: Role,
}

impl WebIdentity {
    async fn load(&self) -> provider::Result {
        let missing = || {
            CredentialsError::invalid_configuration(format!(
                "{TOKEN_FILE} is not set: the service account of this pod has no web identity token of AWS"
            ))
        };
        let file = std::env::var_os(TOKEN_FILE).map(PathBuf::from).ok_or_else(missing)?;
        let token = std::fs::read_to_string(&file).map_err(CredentialsError::provider_error)?;
        let Role { arn, session_name, duration, policy, .. } = &self.role;
        let seconds = duration.and_then(|duration| i32::try_from(duration.as_secs()).ok());
        let request = self.client.assume_role_with_web_identity().role_arn(arn);
        let request = request.role_session_name(session_name).set_duration_seconds(seconds);
        let request = request.set_policy(policy.clone());
        let reply = request.web_identity_token(token.trim()).send().await;
        let credentials = reply.map_err(CredentialsError::provider_error)?.credentials;
        let credentials =
            credentials.ok_or_else(|| CredentialsError::unhandled("the response has no Credentials"))?;
        let expiry = SystemTime::try_from(credentials.expiration).map_err(CredentialsError::unhandled)?;
        Ok(Credentials::new(
            credentials.access_key_id,
            credentials.secret_access_key,
            Some(credentials.session_token),
            Some(expiry),
            NAME,
        ))
    }
}

/// Credentials that are kept until shortly before they expire, or until AWS rejects them.
pub(crate) struct Kept {
    source: SharedCredentialsProvider,
    time: SharedTimeSource,
    state: Mutex<State>,
    rejected: AtomicBool,
}

#[derive(Default)]
enum State {
    #[default]
    Empty,
    Loaded {
        credentials: Credentials,
        at: SystemTime,
    },
    Failed {
        error: Arc<CredentialsError>,
        at: SystemTime,
    },
}

impl Kept {
    pub(crate) fn new(source: SharedCredentialsProvider, time: SharedTimeSource) -> Arc<Self> {
        Arc::new(Self { source, time, state: Mutex::default(), rejected: AtomicBool::new(false) })
    }

    /// AWS rejected a call for its credentials: the next call asks for others.
    pub(crate) fn reject(&self) {
        self.rejected.store(true, Ordering::Relaxed);
    }

    async fn load(&self) -> provider::Result {
        let mut state = self.state.lock().await;
        let now = self.time.now();
        let age = |at: &SystemTime| now.duration_since(*at).unwrap_or_default();
        match &*state {
            State::Loaded { credentials, at } => {
                let is_valid = credentials.expiry().is_none_or(|expiry| now + BEFORE_EXPIRY < expiry);
                let is_rejected = self.rejected.load(Ordering::Relaxed) && age(at) >= KEEP_REJECTED;
                if is_valid && !is_rejected {
                    return Ok(credentials.clone());
                }
            }
            State::Failed { error, at } if age(at) < KEEP_FAILURE => {
                return Err(CredentialsError::provider_error(Shared(Arc::clone(error))));
            }
            State::Failed { .. } | State::Empty => {}
        }
        match self.source.provide_credentials().await {
            Ok(credentials) => {
                self.rejected.store(false, Ordering::Relaxed);
                *state = State::Loaded { credentials: credentials.clone(), at: now };
                Ok(credentials)
            }
            Err(error) => {
                let error = Arc::new(error);
                *state = State::Failed { error: Arc::clone(&error), at: now };
                Err(CredentialsError::provider_error(Shared(error)))
            }
        }
    }
}

/// A failure that is reported to several calls.
#[derive(Debug)]
struct Shared(Arc<CredentialsError>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Shared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

macro_rules! provide_credentials {
    ($($kind:ident),*) => {$(
        impl ProvideCredentials for $kind {
            fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
            where
                Self: 'a,
            {
                future::ProvideCredentials::new(self.load())
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($kind))
            }
        }
    )*};
}

provide_credentials!(Assumed, WebIdentity, Kept);
