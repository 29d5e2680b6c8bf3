//! Which identity a pool uses: its own, then that of its Cluster, then the default of its namespace, then the manager's
//! credentials; and whether its namespace may use it.

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{
    ASGIdentity,
    capi::ContractReference,
    guard::Guards,
    identity::{
        ClusterIdentity, IdentityInUse, IdentityKind, IdentityOrigin, IdentityReference, IdentityRequest,
        IdentitySourceType, SelectionPolicy, not_allowed,
    },
    reasons::cloud_reachable::{
        IDENTITY_AMBIGUOUS, IDENTITY_NOT_ALLOWED, IDENTITY_NOT_FOUND, IDENTITY_NOT_USABLE,
    },
};
use capasg_cloud::{Clock, Identity, QueueName};
use kube::ResourceExt as _;
use serde_json::Value;

use super::{Access, AccessCache, Refusal};
use crate::ObjectKey;
use crate::kubernetes::{AccessKey, AccessSource, Result, SecretPlace};

/// What a pool may use.
///
/// # Errors
/// A read from the API server failed.
pub async fn access(
    source: &dyn AccessSource,
    cache: &AccessCache,
    clock: &dyn Clock,
    request: &IdentityRequest,
) -> Result<Access> {
    let resolver = Resolver { source, cache, clock, namespace: &request.namespace };
    let guards = Arc::new(resolver.guards());
    let (origin, reference) = match resolver.reference(request).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Access { identity: Err(refusal), in_use: None, guards }),
    };
    let kind = reference
        .as_ref()
        .and_then(|reference| IdentityKind::ALL.iter().find(|kind| kind.as_str() == reference.kind).copied());
    let name = reference.as_ref().map(|reference| reference.name.clone());
    let in_use = Some(IdentityInUse { kind, name: name.filter(|_| kind.is_some()), origin });
    let identity = match &reference {
        Some(reference) => resolver.identity(reference, origin).await?,
        None => resolver.of_manager(IdentityOrigin::Manager),
    };
    Ok(Access { identity: identity.map(Arc::new), in_use, guards })
}

/// The credentials of an ASGIdentity, whatever namespace may use it, for its own status.
///
/// # Errors
/// A read from the API server failed.
pub async fn identity_of(
    source: &dyn AccessSource,
    cache: &AccessCache,
    clock: &dyn Clock,
    identity: &ASGIdentity,
) -> Result<std::result::Result<Identity, Refusal>> {
    let resolver = Resolver { source, cache, clock, namespace: "" };
    resolver.named(identity).await
}

/// Resolves for one namespace.
pub(super) struct Resolver<'a> {
    source: &'a dyn AccessSource,
    cache: &'a AccessCache,
    clock: &'a dyn Clock,
    namespace: &'a str,
}

/// A reference and what it comes from; none for the credentials of the manager.
type Referred = (IdentityOrigin, Option<IdentityReference>);

impl Resolver<'_> {
    async fn reference(&self, request: &IdentityRequest) -> Result<std::result::Result<Referred, Refusal>> {
        if let Some(reference) = &request.own {
            return Ok(Ok((IdentityOrigin::Pool, Some(reference.clone()))));
        }
        let recorded = request.recorded.clone();
        let of_cluster = match &request.cluster {
            ClusterIdentity::Of(holder) => self.of_cluster(holder).await?,
            ClusterIdentity::Named(reference) => Ok(reference.clone()),
            ClusterIdentity::Absent => Ok(recorded.clone()),
        };
        let found = match of_cluster {
            Ok(found) => found,
            // The infrastructure object is deleted before its pools only if a user removes finalizers: the pool is deleted
            // with what it used.
            Err(refusal) => match recorded {
                Some(recorded) => Some(recorded),
                None => return Ok(Err(refusal)),
            },
        };
        match found {
            // The other provider sets it for every Cluster that names none.
            Some(one) if one.kind == IdentityKind::AWSClusterControllerIdentity.as_str() => {
                return Ok(self.default().map(|found| {
                    found.map_or((IdentityOrigin::Cluster, Some(one)), |name| {
                        (IdentityOrigin::Namespace, Some(ours(name)))
                    })
                }));
            }
            Some(one) => return Ok(Ok((IdentityOrigin::Cluster, Some(one)))),
            None => {}
        }
        Ok(self.default().map(|found| {
            let origin = if found.is_some() { IdentityOrigin::Namespace } else { IdentityOrigin::Manager };
            (origin, found.map(ours))
        }))
    }

    /// What the infrastructure object of the Cluster names.
    async fn of_cluster(
        &self,
        holder: &ContractReference,
    ) -> Result<std::result::Result<Option<IdentityReference>, Refusal>> {
        let key = ObjectKey::new(self.namespace, &holder.name);
        let read = self.source.referenced_spec(&holder.api_group, &holder.kind, &key);
        let spec = self.cache.spec(self.clock, format!("{} {key}", holder.kind), read).await?;
        let shown = format!("{} {}", holder.kind, holder.name);
        let Some(spec) = spec else {
            let message = format!("{shown} of the Cluster does not exist, so that its identity is unknown");
            return Ok(Err(Refusal::new(IDENTITY_NOT_FOUND, message)));
        };
        let reference = spec.get("identityRef").filter(|reference| !reference.is_null());
        Ok(reference.map(|reference| serde_json::from_value(reference.clone())).transpose().map_err(
            |error| {
                Refusal::new(
                    IDENTITY_NOT_USABLE,
                    format!("spec.identityRef of {shown} cannot be read: {error}"),
                )
            },
        ))
    }

    /// The name of the default identity of the namespace.
    fn default(&self) -> std::result::Result<Option<String>, Refusal> {
        let labels = self.labels();
        let defaults = self.source.identities().into_iter().filter(|identity| {
            identity.spec.selection_policy == Some(SelectionPolicy::Default)
                && identity.allows(self.namespace, labels.as_ref())
        });
        let mut names: Vec<String> = defaults.map(|identity| identity.name_any()).collect();
        names.sort();
        if names.len() > 1 {
            let message = format!(
                "namespace {} has several default identities: ASGIdentities {}. Set selectionPolicy Default of one of them, or spec.identityRef of the pool",
                self.namespace,
                names.join(", ")
            );
            return Err(Refusal { reason: IDENTITY_AMBIGUOUS, message });
        }
        Ok(names.pop())
    }

    async fn identity(
        &self,
        reference: &IdentityReference,
        origin: IdentityOrigin,
    ) -> Result<std::result::Result<Identity, Refusal>> {
        let IdentityReference { kind, name } = reference;
        if kind == IdentityKind::ASGIdentity.as_str() {
            let Some(identity) = self.ours(name) else {
                let message = format!("ASGIdentity {name} does not exist");
                return Ok(Err(Refusal { reason: IDENTITY_NOT_FOUND, message }));
            };
            if !identity.allows(self.namespace, self.labels().as_ref()) {
                return Ok(Err(self.not_allowed(&format!("ASGIdentity {name}"))));
            }
            return self.named(&identity).await;
        }
        let (kind, spec) = match self.provider_identity(reference).await? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if kind == IdentityKind::AWSClusterControllerIdentity {
            return Ok(self.of_manager(origin));
        }
        let source = self.of_provider(kind, name, spec).await?;
        Ok(source.map(|source| Identity { name: format!("{kind}/{name}"), source, event_queue: None }))
    }

    /// The credentials of the manager. Every namespace has them as long as no ASGIdentity of type Controller says which
    /// namespaces do, except where a pool asks for the controller's identity of Cluster API Provider AWS: that one exists for
    /// all namespaces, and speaks for the credentials of another controller.
    fn of_manager(&self, origin: IdentityOrigin) -> std::result::Result<Identity, Refusal> {
        let mut all = self.source.identities();
        all.sort_by_key(|identity| identity.name_any());
        let mut offers =
            all.iter().filter(|one| one.spec.source == IdentitySourceType::Controller).peekable();
        if offers.peek().is_none() && origin != IdentityOrigin::Pool {
            return Ok(Identity::process());
        }
        let labels = self.labels();
        let allowed = offers.find(|identity| identity.allows(self.namespace, labels.as_ref()));
        match allowed {
            Some(identity) => Ok(Identity { event_queue: queue_of(identity), ..Identity::process() }),
            None => Err(Refusal {
                reason: IDENTITY_NOT_ALLOWED,
                message: format!(
                    "namespace {} may not use the AWS credentials of the controller: no ASGIdentity of type Controller \
                     allows it in spec.allowedNamespaces",
                    self.namespace
                ),
            }),
        }
    }

    async fn named(&self, identity: &ASGIdentity) -> Result<std::result::Result<Identity, Refusal>> {
        let source = self.of_ours(identity).await?;
        Ok(source.map(|source| {
            let is_process = source == capasg_cloud::CredentialSource::Process;
            let name =
                if is_process { String::new() } else { format!("ASGIdentity/{}", identity.name_any()) };
            Identity { name, source, event_queue: queue_of(identity) }
        }))
    }

    fn guards(&self) -> Guards {
        Guards::of_namespace(self.source.guards(), self.namespace, self.labels().as_ref())
    }

    pub(super) fn namespace(&self) -> &str {
        self.namespace
    }

    pub(super) fn labels(&self) -> Option<BTreeMap<String, String>> {
        self.source.namespace_labels(self.namespace)
    }

    pub(super) fn ours(&self, name: &str) -> Option<Arc<ASGIdentity>> {
        self.source.identities().into_iter().find(|identity| identity.name_any() == name)
    }

    pub(super) fn not_allowed(&self, what: &str) -> Refusal {
        Refusal { reason: IDENTITY_NOT_ALLOWED, message: not_allowed(what, self.namespace) }
    }

    pub(super) fn who(&self) -> &'static str {
        self.source.who()
    }

    pub(super) fn aws_provider_namespace(&self) -> &str {
        self.source.aws_provider_namespace()
    }

    pub(super) async fn cluster_scoped_spec(&self, kind: IdentityKind, name: &str) -> Result<Option<Value>> {
        let read = self.source.cluster_scoped_spec(capasg_api::GROUP, kind.as_str(), name);
        self.cache.spec(self.clock, format!("{kind} {name}"), read).await
    }

    pub(super) async fn may_use(&self, secret: &SecretPlace) -> Result<bool> {
        let read = self.source.may_use(secret);
        self.cache.permission(self.clock, secret.to_string(), read).await
    }

    pub(super) async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        self.cache.key(self.clock, secret.to_string(), self.source.access_key(secret)).await
    }
}

fn ours(name: String) -> IdentityReference {
    IdentityReference { kind: IdentityKind::ASGIdentity.as_str().to_owned(), name }
}

fn queue_of(identity: &ASGIdentity) -> Option<QueueName> {
    let queue = identity.spec.event_queue.clone()?;
    Some(if queue.contains("://") { QueueName::Url(queue) } else { QueueName::Name(queue) })
}
