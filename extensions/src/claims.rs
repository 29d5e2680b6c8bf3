//! What a request claims of its Cluster, compared with the API server before anything is written: every client that reaches
//! the port of the hooks can send any request.

use tokio::time::timeout_at;
use tracing::debug;

use crate::{
    call::{Limits, Services},
    protocol::{Cluster, Hook, Request},
    version::Version,
};

/// The condition of Clusters at which core calls `AfterControlPlaneInitialized`.
const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";

/// What became of the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    /// They are those of the API server: the Cluster of the request was replaced by the one there.
    Confirmed,
    /// The API server did not answer, or the request names no Cluster: it is answered, and nothing is written.
    Unread,
    /// They are wrong: why. The answer is a failure.
    Refuted(&'static str),
}

/// Replaces the Cluster of a request by the one of the API server.
pub(crate) async fn check(
    request: &mut impl Request,
    hook: Hook,
    services: &Services,
    limits: Limits,
) -> Claims {
    let Some(claimed) = request.cluster().filter(|cluster| cluster.key().is_some()) else {
        return Claims::Unread;
    };
    let live = match timeout_at(limits.record_until(), services.kubernetes.cluster(claimed)).await {
        Ok(Ok(Some(live))) => live,
        Ok(Ok(None)) => return Claims::Refuted("the API server has no Cluster with this name and UID"),
        Ok(Err(_)) | Err(_) => return Claims::Unread,
    };
    if let Some(why) = contradiction(hook, &request.versions(), &live) {
        debug!(hook = hook.name(), why, "rejected a request");
        return Claims::Refuted(why);
    }
    if let Some(cluster) = request.cluster_mut() {
        *cluster = live;
    }
    Claims::Confirmed
}

/// What in the Cluster of the API server contradicts the request. Core reads Clusters from a cache, and calls hooks for what
/// it saw there: the API server is never behind.
fn contradiction(hook: Hook, versions: &[&str], live: &Cluster) -> Option<&'static str> {
    let requested = live.version().and_then(|version| version.parse::<Version>().ok());
    let is_requested = |claimed: &str| {
        let claimed = claimed.parse::<Version>().ok();
        claimed.zip(requested.as_ref()).is_some_and(|(claimed, requested)| claimed.compare(requested).is_le())
    };
    if !versions.iter().all(|version| is_requested(version)) {
        return Some(
            "a Kubernetes version of the request is newer than spec.topology.version of the Cluster",
        );
    }
    match hook {
        Hook::BeforeClusterDelete if !live.is_being_deleted() => Some("the Cluster is not being deleted"),
        Hook::AfterControlPlaneInitialized if !live.has_condition(CONTROL_PLANE_INITIALIZED) => {
            Some("the control plane of the Cluster is not initialized")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
