//! With which identity the checks of a pool in AWS are made: the resolver of the controllers decides, and sessions only read.

use std::sync::Arc;

use async_trait::async_trait;
use capasg_api::identity::IdentityRequest;
use capasg_cloud::{CredentialSource, Identity, Place, SystemClock};
use capasg_controllers::{
    access::{AccessCache, access},
    client::{AccessReader, Namespaces},
    kubernetes::KubeError,
};
use capasg_extensions::lookups::{Access, NotAllowed};
use kube::Client;
use tracing::warn;

use crate::iam;

/// Resolves identities by the rules of operators, which are kept for 30 seconds.
pub struct PoolAccess {
    reader: AccessReader,
    cache: AccessCache,
    clock: SystemClock,
    /// What sessions of roles are restricted to.
    policy: String,
}

impl PoolAccess {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client, namespaces: Namespaces) -> Self {
        let policy = iam::extension_policy();
        let (reader, cache) = (AccessReader::new(client, namespaces), AccessCache::default());
        Self { reader, cache, clock: SystemClock, policy }
    }

    async fn resolve(
        &self,
        request: &IdentityRequest,
    ) -> Result<capasg_controllers::access::Access, KubeError> {
        let namespace = &request.namespace;
        let read = Box::pin(self.reader.read(namespace));
        let snapshot = self.cache.snapshot(&self.clock, namespace, read).await?;
        access(&self.reader.with(snapshot), &self.cache, &self.clock, request).await
    }
}

#[async_trait]
impl Access for PoolAccess {
    async fn place(&self, request: &IdentityRequest, region: &str) -> Result<Place, NotAllowed> {
        let resolved = Box::pin(self.resolve(request)).await.map_err(|error| {
            let namespace = &request.namespace;
            warn!(%error, namespace, "failed to read the identity for the checks of a hook");
            let message = "its identity cannot be read; the log of the extension has the error";
            NotAllowed(message.to_owned())
        })?;
        if let Some(why) = resolved.guards.region(region) {
            return Err(NotAllowed(why));
        }
        let identity = resolved.identity.map_err(|refusal| NotAllowed(refusal.message))?;
        let identity = Arc::new(reading(&identity, &self.policy));
        Ok(Place { identity, region: region.to_owned() })
    }
}

/// The identity without an event queue, and with a session policy that leaves only reads of what its role may do: roles are
/// those of the manager. A session that the operator restricts stays as it is, since session policies add up.
fn reading(identity: &Identity, policy: &str) -> Identity {
    let Identity { name, mut source, event_queue: _ } = identity.clone();
    if let CredentialSource::Role { role, .. } | CredentialSource::WebIdentity(role) = &mut source
        && role.policy.is_none()
        && role.policy_arns.is_empty()
    {
        role.policy = Some(policy.to_owned());
    }
    Identity { name, source, event_queue: None }
}
