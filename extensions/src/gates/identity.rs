//! What a Cluster says about the identity of its pools: its infrastructure object, or the template that it is created from.

use capasg_api::{
    identity::{ClusterIdentity, IdentityReference, IdentityRequest},
    names::is_object_name,
};
use serde_json::Value;

use super::Step;
use crate::{
    lookups::NotAllowed,
    ports::{Kind, Kubernetes, ReadError},
    protocol::{Cluster, ClusterKey},
    topology::{IdentityHolder, PlannedPool, PlannedReference, identity_holder, planned_identity_ref},
};

/// What a Cluster says. What a request claims gives no access to AWS.
pub(crate) fn identity_of(cluster: &Cluster, is_confirmed: bool) -> Result<ClusterIdentity, NotAllowed> {
    if !is_confirmed {
        return Err(NotAllowed("the API server did not confirm the Cluster".to_owned()));
    }
    Ok(cluster.aws_identity_holder().map_or(ClusterIdentity::Named(None), ClusterIdentity::Of))
}

/// What the class of a Cluster says before the Cluster has an infrastructure object.
pub(super) struct PlannedIdentity(Result<Option<IdentityReference>, NotAllowed>);

impl PlannedIdentity {
    /// What determines the identity of a pool.
    pub(super) fn request(
        &self,
        pool: &PlannedPool,
        cluster: &ClusterKey,
    ) -> Result<IdentityRequest, NotAllowed> {
        let PlannedReference::Known(own) = pool.identity.clone() else {
            return Err(NotAllowed("its identity is known once the Cluster is created".to_owned()));
        };
        // The identity of the Cluster does not count.
        let of_cluster = if own.is_some() { None } else { self.0.clone()? };
        let cluster_identity = ClusterIdentity::Named(of_cluster);
        Ok(IdentityRequest {
            namespace: cluster.namespace.clone(),
            own,
            cluster: cluster_identity,
            recorded: None,
        })
    }
}

/// What the class of a Cluster, which is in `namespace`, says.
///
/// # Errors
/// The template of the infrastructure object cannot be read.
pub(super) async fn planned_identity(
    step: &Step<'_>,
    class: &Value,
    namespace: &str,
    kubernetes: &dyn Kubernetes,
) -> Result<PlannedIdentity, ReadError> {
    if !step.is_confirmed {
        return Ok(PlannedIdentity(identity_of(step.cluster, false).map(|_| None)));
    }
    let Some(IdentityHolder { kind, name }) = identity_holder(class) else {
        return Ok(PlannedIdentity(Ok(None)));
    };
    let shown = match kind {
        Kind::ControlPlaneTemplate => "AWSManagedControlPlaneTemplate",
        _ => "AWSClusterTemplate",
    };
    let template = if is_object_name(name) { kubernetes.object(kind, namespace, name).await? } else { None };
    let Some(template) = template else {
        let message =
            format!("{shown} {name} of the ClusterClass does not exist, so that the identity is unknown");
        return Ok(PlannedIdentity(Err(NotAllowed(message))));
    };
    Ok(PlannedIdentity(match planned_identity_ref(step.cluster, class, kind, template) {
        PlannedReference::Known(reference) => Ok(reference),
        PlannedReference::Unknown => Err(NotAllowed(format!(
            "patches may change spec.identityRef of {shown} {name}: the identity is known once the Cluster is created"
        ))),
    }))
}
