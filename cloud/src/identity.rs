//! With which credentials AWS is called, and where: an identity, and the place that it is used in.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use crate::QueueName;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretText(String);

impl SecretText {
    /// Hides a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the call that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A role of IAM and the parameters with which it is assumed (`AssumeRole`, `AssumeRoleWithWebIdentity` of the AWS STS API
/// reference).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Role {
    /// `RoleArn`.
    pub arn: String,
    /// `RoleSessionName`: shows in the account's `CloudTrail`.
    pub session_name: String,
    /// `ExternalId`, which the trust policy of the role requires.
    pub external_id: Option<String>,
    /// `DurationSeconds`; STS's default is an hour, which is also the most if the role is assumed with another role.
    pub duration: Option<Duration>,
    /// Session tags.
    pub tags: BTreeMap<String, String>,
    /// A session policy, in JSON, which restricts the session further.
    pub policy: Option<String>,
    /// The ARNs of managed policies that restrict the session further.
    pub policy_arns: Vec<String>,
}

/// Where credentials come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CredentialSource {
    /// The credentials of this process: environment, profile, web identity, EKS Pod Identity or instance metadata.
    Process,
    /// `AssumeRole` with the credentials of another source.
    Role {
        /// The role.
        role: Role,
        /// What it is assumed with.
        from: Box<CredentialSource>,
    },
    /// `AssumeRoleWithWebIdentity` with the token of this process's service account.
    WebIdentity(Role),
    /// An access key.
    Keys {
        /// The ID of the access key.
        access_key_id: String,
        /// The secret access key.
        secret_access_key: SecretText,
        /// The session token of temporary credentials.
        session_token: Option<SecretText>,
    },
}

/// An identity: credentials under a name. Two identities are equal if they have the same name and the same credentials, so
/// that whatever was read with one of them is not taken for the other's after its credentials change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The name in messages and metrics, for example `ASGIdentity/tenant-a`.
    pub name: String,
    /// The credentials.
    pub source: CredentialSource,
    /// The event queue of each Region that is read with these credentials, if there is one.
    pub event_queue: Option<QueueName>,
}

impl Identity {
    /// The credentials of this process, without a name of their own.
    #[must_use]
    pub fn process() -> Self {
        Self { name: String::new(), source: CredentialSource::Process, event_queue: None }
    }

    /// Whether these are the credentials of this process.
    #[must_use]
    pub fn is_process(&self) -> bool {
        self.source == CredentialSource::Process
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            f.write_str("the AWS credentials of the controller")
        } else {
            f.write_str(&self.name)
        }
    }
}

/// An identity in a Region: what one inventory, one rate limit and one event queue belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The identity.
    pub identity: Arc<Identity>,
    /// The Region, for example `eu-west-1`.
    pub region: String,
}

impl Place {
    /// A Region with the credentials of this process.
    #[must_use]
    pub fn of_process(region: &str) -> Self {
        Self { identity: Arc::new(Identity::process()), region: region.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let source = CredentialSource::Keys {
            access_key_id: "AKIA".to_owned(),
            secret_access_key: SecretText::new("hidden".to_owned()),
            session_token: Some(SecretText::new("hidden".to_owned())),
        };
        let identity = Identity { name: "a".to_owned(), source, event_queue: None };
        assert!(!format!("{identity:?} {identity}").contains("hidden"));
    }
}
