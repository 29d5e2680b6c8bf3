//! What tests do to identities.

use serde_json::Value;

use crate::{
    ApiError, Call, Credentials, Policy, Request, Role, Scope, Service, SessionDump, Simulator, Tree, iam,
};

impl Simulator {
    /// Carries a call out as the holder of credentials, in the account that their access key names; see
    /// [`Simulator::call`].
    ///
    /// # Errors
    /// As there, and what the service answers to credentials that are not valid.
    pub fn call_as(
        &self,
        credentials: &Credentials,
        region: &str,
        service: Service,
        action: &str,
        params: Tree,
    ) -> Result<Tree, ApiError> {
        let call = Call {
            scope: Scope::of_access_key(&credentials.access_key, region),
            service,
            action: action.to_owned(),
            params,
            access_key: Some(credentials.access_key.clone()),
            session_token: credentials.session_token.clone(),
            wall_time: None,
        };
        self.answer(call).result
    }

    /// Adds or replaces a role.
    pub fn put_role(&self, role: Role) {
        self.world().iam.roles.insert(role.arn.clone(), role);
    }

    /// Deletes a role; its sessions end.
    pub fn remove_role(&self, arn: &str) {
        let mut world = self.world();
        world.iam.roles.remove(arn);
        world.iam.sessions.retain(|_, session| session.role != arn);
    }

    /// Lets everybody assume roles that were not declared, which is refused by default.
    pub fn set_any_role(&self, can_be_assumed: bool) {
        self.world().iam.any_role = can_be_assumed;
    }

    /// Names the user of an access key, or makes a deleted key exist again.
    pub fn put_access_key(&self, key: &str, user: &str) {
        let mut world = self.world();
        world.iam.deleted.remove(key);
        world.iam.users.insert(key.to_owned(), user.to_owned());
    }

    /// Deletes an access key: calls with it are refused from now on. Any other key exists.
    pub fn remove_access_key(&self, key: &str) {
        self.world().iam.deleted.insert(key.to_owned());
    }

    /// Replaces the policies of a user or role; without any it may do everything, which is the default.
    ///
    /// # Errors
    /// Says what is no valid policy, or not known here; see [`Policy::parse`].
    pub fn set_policies(&self, arn: &str, policies: &[Value]) -> Result<(), String> {
        let policies = policies.iter().map(Policy::parse).collect::<Result<Vec<_>, _>>()?;
        let mut world = self.world();
        if policies.is_empty() {
            world.iam.policies.remove(arn);
        } else {
            world.iam.policies.insert(arn.to_owned(), policies.into());
        }
        Ok(())
    }

    /// From now on [`Simulator::asked`] knows what is asked.
    pub fn record_asked(&self) {
        self.world().iam.asked = Some(std::collections::BTreeMap::new());
    }

    /// What calls asked of the policies of a user or role since [`Simulator::record_asked`], without repetition.
    #[must_use]
    pub fn asked(&self, arn: &str) -> Vec<Request> {
        let world = self.world();
        let asked = world.iam.asked.as_ref().and_then(|asked| asked.get(arn));
        asked.into_iter().flatten().cloned().collect()
    }

    /// Names the role of an instance profile, which by default has the profile's name.
    pub fn put_profile_role(&self, account: &str, profile: &str, role: &str) {
        self.world().iam.profiles.insert((account.to_owned(), profile.to_owned()), role.to_owned());
    }

    /// Associates a service account (`system:serviceaccount:<namespace>:<name>`) with a role, as EKS Pod Identity does.
    pub fn associate(&self, subject: &str, role: &str) {
        self.world().iam.associations.insert(subject.to_owned(), role.to_owned());
    }

    /// Denies every call of the sessions that a role has now, as `Revoke active sessions` of the console does; later
    /// sessions are not concerned. Gives how many there are.
    #[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn revoke_sessions(&self, role: &str) -> usize {
        let mut world = self.world();
        world.iam.sessions_of(role).map(|session| session.is_revoked = true).count()
    }

    /// Ends the sessions that a role has now before their time. Gives how many there are.
    #[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn expire_sessions(&self, role: &str) -> usize {
        let mut world = self.world();
        let now = world.now;
        world.iam.sessions_of(role).map(|session| session.expires = session.expires.min(now)).count()
    }

    /// The sessions of roles, oldest first, those that have ended too.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionDump> {
        self.world().iam.dump_sessions()
    }

    /// The credentials that the agent of EKS Pod Identity gives for a token of a service account.
    ///
    /// # Errors
    /// If the token has expired or its service account has no association with a role that trusts the service.
    pub(crate) fn pod_credentials(
        &self,
        token: &str,
        wall_time: chrono::DateTime<chrono::Utc>,
    ) -> Result<Tree, ApiError> {
        let mut world = self.world();
        let asked = iam::Asked { caller: None, now: world.now, token_time: wall_time };
        iam::pod_credentials(&mut world.iam, &asked, token)
    }
}
