//! The sessions that STS gives, and what tests see of them.

use chrono::{DateTime, Duration, Utc};

use super::{
    Iam, role,
    session::{Session, SessionDump, Wanted},
};
use crate::{ApiError, Tree, time::timestamp};

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
            policy: wanted.policy,
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
