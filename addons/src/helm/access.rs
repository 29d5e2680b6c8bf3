//! How a repository is accessed: credentials and the verification of its certificate. Secrets are written to files of the
//! private folder alone, and `Debug` does not print them.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    files::{AUTHORITY, REPOSITORY},
    repository::Repository,
};

/// The keys of a Secret with a user name and a password, as in Secrets of the type `kubernetes.io/basic-auth`.
const USERNAME: &str = "username";
/// As above.
const PASSWORD: &str = "password";
/// The beginning of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// A Secret that contains no usable credentials or certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Neither a Docker configuration nor a user name with a password.
    #[error("the Secret has neither the key that spec.credentials names nor the keys username and password")]
    NoCredentials,
    /// A chart repository has no use for a Docker configuration.
    #[error("the Secret of a repository with https:// must have the keys username and password")]
    NoPassword,
    /// Not UTF-8.
    #[error("a value of the Secret is not UTF-8")]
    NotText,
    /// Not JSON of the expected form.
    #[error("the Docker configuration is not valid JSON with the member auths")]
    DockerConfiguration,
    /// A program would provide the credentials.
    #[error(
        "the Docker configuration must not name credential helpers (credsStore, credHelpers): they are programs"
    )]
    CredentialHelper,
    /// No certificate.
    #[error("the Secret has no certificate in PEM in its key ca.crt")]
    NoCertificate,
}

/// Credentials of a repository.
#[derive(Clone, PartialEq, Eq)]
pub enum RepositoryCredentials {
    /// A user name and a password.
    Password {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// A Docker configuration with entries for registries.
    Docker(DockerConfiguration),
}

/// The entries of a Docker configuration; everything else is left out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DockerConfiguration {
    auths: BTreeMap<String, BTreeMap<String, String>>,
}

/// How the certificate of a repository is verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// The authority in PEM. Defaults to the authorities of the image.
    pub authority: Option<String>,
    /// Whether the certificate is accepted without verification.
    pub is_skipped: bool,
}

/// Everything that a repository requires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The credentials.
    pub credentials: Option<RepositoryCredentials>,
    /// The verification.
    pub verification: Verification,
}

impl RepositoryCredentials {
    /// Reads a Secret. A registry accepts a Docker configuration in `key`, or a user name and a password; a chart repository
    /// the latter.
    ///
    /// # Errors
    /// If the Secret has none of them, or a Docker configuration that names programs.
    pub fn from_secret(
        repository: &Repository,
        data: &BTreeMap<String, ByteString>,
        key: &str,
    ) -> Result<Self, AccessError> {
        let text = |key: &str| match data.get(key) {
            None => Ok(None),
            Some(bytes) => String::from_utf8(bytes.0.clone()).map(Some).map_err(|_| AccessError::NotText),
        };
        let is_registry = matches!(repository, Repository::Registry { .. });
        if is_registry && let Some(docker) = text(key)? {
            return DockerConfiguration::parse(&docker).map(Self::Docker);
        }
        match (text(USERNAME)?, text(PASSWORD)?) {
            (Some(username), Some(password)) => Ok(Self::Password { username, password }),
            _ if is_registry => Err(AccessError::NoCredentials),
            _ => Err(AccessError::NoPassword),
        }
    }
}

impl DockerConfiguration {
    fn parse(text: &str) -> Result<Self, AccessError> {
        let all: Value = serde_json::from_str(text).map_err(|_| AccessError::DockerConfiguration)?;
        let is_set = |name: &str| {
            let empty = [Value::Null, json!(""), json!({})];
            all.get(name).is_some_and(|value| !empty.contains(value))
        };
        if is_set("credsStore") || is_set("credHelpers") {
            return Err(AccessError::CredentialHelper);
        }
        serde_json::from_value(all).map_err(|_| AccessError::DockerConfiguration)
    }
}

impl Verification {
    /// Reads the authority from a Secret.
    ///
    /// # Errors
    /// If the Secret has no certificate: Helm would end with a stack trace.
    pub fn with_authority(self, data: &BTreeMap<String, ByteString>) -> Result<Self, AccessError> {
        let bytes = data.get("ca.crt").ok_or(AccessError::NoCertificate)?;
        let text = String::from_utf8(bytes.0.clone()).map_err(|_| AccessError::NotText)?;
        if !text.contains(CERTIFICATE) {
            return Err(AccessError::NoCertificate);
        }
        Ok(Self { authority: Some(text), ..self })
    }
}

impl Access {
    /// The configuration of registries for Helm: it has the form of a Docker configuration.
    pub(super) fn registry_configuration(&self, repository: &Repository) -> Value {
        match (&self.credentials, repository) {
            (Some(RepositoryCredentials::Docker(docker)), _) => json!(docker),
            (Some(RepositoryCredentials::Password { username, password }), Repository::Registry { url }) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let host = rest.split('/').next().unwrap_or_default();
                json!({"auths": {host: {"auth": STANDARD.encode(format!("{username}:{password}"))}}})
            }
            _ => json!({"auths": {}}),
        }
    }

    /// The configuration of chart repositories for Helm. Credentials are sent to the host of the repository alone.
    pub(super) fn repository_configuration(&self, repository: &Repository) -> Value {
        let Repository::Index { url } = repository else {
            return json!({"apiVersion": "v1", "repositories": []});
        };
        let mut entry = json!({
            "name": REPOSITORY,
            "url": url,
            "insecure_skip_tls_verify": self.verification.is_skipped,
            "pass_credentials_all": false,
        });
        if let Some(RepositoryCredentials::Password { username, password }) = &self.credentials {
            entry["username"] = json!(username);
            entry["password"] = json!(password);
        }
        if self.verification.authority.is_some() {
            entry["caFile"] = json!(AUTHORITY);
        }
        json!({"apiVersion": "v1", "repositories": [entry]})
    }
}

impl fmt::Debug for RepositoryCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Password { .. } => "Password { .. }",
            Self::Docker(_) => "Docker(..)",
        })
    }
}

#[cfg(test)]
mod tests;
