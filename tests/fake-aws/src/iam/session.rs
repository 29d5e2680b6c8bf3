//! Sessions of roles, and the temporary credentials of each.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};

use super::{Iam, role};
use crate::{ApiError, Tree, time::timestamp};

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
}

/// What a new session is asked to be.
pub(crate) struct Wanted<'a> {
    pub(crate) role: &'a str,
    pub(crate) name: &'a str,
    pub(crate) seconds: i64,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) transitive: BTreeSet<String>,
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

impl Iam {
    /// Gives a session; the reply's members `Credentials` and `AssumedRoleUser`.
    pub(crate) fn issue(&mut self, wanted: Wanted<'_>, now: DateTime<Utc>) -> Result<Tree, ApiError> {
        let (account, role) = role::parts(wanted.role)
            .ok_or_else(|| ApiError::validation(format!("{} is invalid", wanted.role)))?;
        self.issued += 1;
        let access_key = format!("ASIA{account}{:04X}", self.issued);
        let partition = wanted.role.split(':').nth(1).unwrap_or_default();
        let arn = format!("arn:{partition}:sts::{account}:assumed-role/{role}/{}", wanted.name);
        let session = Session {
            role: wanted.role.to_owned(),
            arn: arn.clone(),
            name: wanted.name.to_owned(),
            token: format!("simulated-session-token-{}", self.issued),
            issued: now,
            expires: now + Duration::seconds(wanted.seconds),
            is_revoked: false,
            tags: wanted.tags,
            transitive: wanted.transitive,
        };
        let credentials = Tree::new()
            .with("AccessKeyId", &access_key)
            .with("SecretAccessKey", "simulated-secret-access-key")
            .with("SessionToken", &session.token)
            .with("Expiration", timestamp(session.expires));
        let user = Tree::new()
            .with("AssumedRoleId", format!("AROASIMULATED00000000:{}", wanted.name))
            .with("Arn", arn);
        self.sessions.insert(access_key, session);
        Ok(Tree::new().with("Credentials", credentials).with("AssumedRoleUser", user))
    }

    /// Every session, oldest first.
    pub(crate) fn dump_sessions(&self) -> Vec<SessionDump> {
        let mut dumps: Vec<SessionDump> = self
            .sessions
            .iter()
            .map(|(key, session)| SessionDump {
                access_key: key.clone(),
                role: session.role.clone(),
                arn: session.arn.clone(),
                issued: session.issued,
                expires: session.expires,
                is_revoked: session.is_revoked,
                tags: session.tags.clone(),
            })
            .collect();
        dumps.sort_by(|one, other| (one.issued, &one.access_key).cmp(&(other.issued, &other.access_key)));
        dumps
    }

    /// The sessions of a role, to be changed.
    pub(crate) fn sessions_of<'a>(&'a mut self, role: &'a str) -> impl Iterator<Item = &'a mut Session> {
        self.sessions.values_mut().filter(move |session| session.role == role)
    }
}
