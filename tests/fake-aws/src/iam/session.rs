//! Sessions of roles, and the temporary credentials of each.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Policy;
use crate::Tree;

/// A session of a role.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// The role's ARN.
    pub(crate) role: String,
    /// `arn:aws:sts::<account>:assumed-role/<role>/<name>`.
    pub(crate) arn: String,
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) issued: DateTime<Utc>,
    pub(crate) expires: DateTime<Utc>,
    /// Its calls are denied, as by the policy `AWSRevokeOlderSessions`.
    pub(crate) is_revoked: bool,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) transitive: BTreeSet<String>,
    /// What is left of the permissions of the role.
    pub(crate) policy: Option<Policy>,
}

/// What a new session is asked to be.
pub(crate) struct Wanted<'a> {
    pub(crate) role: &'a str,
    pub(crate) name: &'a str,
    pub(crate) seconds: i64,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) transitive: BTreeSet<String>,
    pub(crate) policy: Option<Policy>,
}

/// Temporary credentials, or an access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// For example `ASIA1111222233330001`.
    pub access_key: String,
    /// The session token; an access key of a user has none.
    pub session_token: Option<String>,
}

impl Credentials {
    /// Those in the reply of `AssumeRole` and the like.
    #[must_use]
    pub fn of_reply(reply: &Tree) -> Option<Self> {
        let credentials = reply.get("Credentials")?;
        Some(Self {
            access_key: credentials.text_of("AccessKeyId")?.to_owned(),
            session_token: credentials.text_of("SessionToken").map(str::to_owned),
        })
    }
}

/// A session as tests see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDump {
    /// The access key.
    pub access_key: String,
    /// The role's ARN.
    pub role: String,
    /// The session's ARN.
    pub arn: String,
    /// Virtual time.
    pub issued: DateTime<Utc>,
    /// Virtual time.
    pub expires: DateTime<Utc>,
    /// Whether its calls are denied.
    pub is_revoked: bool,
    /// The session tags.
    pub tags: BTreeMap<String, String>,
}
