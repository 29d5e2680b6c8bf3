//! The prerequisites that a pool waits for, as findings.

use capasg_api::{
    capi::owner_machine_pool,
    conditions::{self, Finding},
    names::annotations,
    reasons::{INTERNAL_ERROR, cloud_reachable, group_ready, launch_template_ready as reasons},
};

use crate::access::{Access, Refusal};
use crate::machine_pool::model::{BootstrapProblem, Desired, Observed, PoolObjects, counted, instances};

/// Another actor removed the record of who owns the group.
#[must_use]
pub fn identity_lost(condition: &'static str, holds: bool) -> Finding {
    let message = format!(
        "annotation {} or label cluster.x-k8s.io/cluster-name of the ASGMachinePool is missing, so the owner of \
         the Auto Scaling group is unknown. The controller makes no changes. Set the annotation to the value of the tag with \
         the same key on the group or the launch template (any value if neither exists), and the label to the name of the Cluster.",
        annotations::OWNER_ID
    );
    Finding::new(condition, holds, group_ready::GROUP_NOT_OWNED, message)
}

/// No MachinePool refers to the pool.
#[must_use]
pub fn for_machine_pool() -> Finding {
    waiting("waiting for a MachinePool that refers to this pool")
}

/// The controller owner of a pool that has a group does not refer to the pool. `other` is a MachinePool that does: Cluster
/// API does not replace the owner.
#[must_use]
pub fn unreferenced(
    objects: &PoolObjects,
    other: Option<&str>,
    desired: &Desired,
    observed: &Observed,
) -> Finding {
    let owner = owner_machine_pool(&objects.pool).map(|owner| owner.name.as_str());
    let (why, remedy) = match (owner, other) {
        (Some(owner), other) => {
            let why = format!(
                "spec.template.spec.infrastructureRef of MachinePool {owner} does not refer to this ASGMachinePool, or \
                 the MachinePool was deleted"
            );
            match other {
                Some(other) => (
                    format!(
                        "{why}. MachinePool {other} refers to it, but MachinePool {owner} is its controller \
                         owner"
                    ),
                    format!(
                        "remove the entry of MachinePool {owner} from metadata.ownerReferences (kubectl edit \
                         asgmachinepool {} -n {}): Cluster API then sets MachinePool {other} as the owner",
                        objects.key.name, objects.key.namespace
                    ),
                ),
                None => (why, "let a MachinePool refer to it".to_owned()),
            }
        }
        (None, Some(other)) => (
            format!("MachinePool {other} refers to this ASGMachinePool, but is not its controller owner yet"),
            format!("wait for Cluster API to set the owner reference, unless MachinePool {other} is paused"),
        ),
        (None, None) => (
            "no MachinePool refers to this ASGMachinePool".to_owned(),
            "let a MachinePool refer to it".to_owned(),
        ),
    };
    let (effect, end) = if objects.cluster.is_some() {
        let effect = "nodes are drained when their instances terminate, replacements may not join the cluster because \
                      their bootstrap data is not renewed, and nothing else changes";
        (effect, "drain and terminate")
    } else {
        ("nothing changes, since its Cluster does not exist", "terminate")
    };
    let count = instances::count(observed.instances.values().filter(|instance| instance.listed.is_some()));
    let message = format!(
        "{why}. Its Auto Scaling group {} has {}: {effect}. Delete the ASGMachinePool to {end} them, or {remedy}.",
        desired.group,
        counted(count, "instance"),
    );
    Finding::new(conditions::GROUP_READY, false, group_ready::NO_MACHINE_POOL, message)
}

/// Core has not reported yet that the Cluster's infrastructure is provisioned (C3).
#[must_use]
pub fn for_infrastructure() -> Finding {
    Finding::new(
        conditions::LAUNCH_TEMPLATE_READY,
        false,
        reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
        "waiting for status.initialization.infrastructureProvisioned of the Cluster to be true",
    )
}

/// The pool may not use its identity.
#[must_use]
pub fn for_identity(access: &Access) -> Finding {
    let (reason, message) = match &access.identity {
        Err(Refusal { reason, message }) => {
            (*reason, format!("{message}. The controller makes no calls to AWS for this pool."))
        }
        Ok(_) => (cloud_reachable::CLOUD_REACHABLE, String::new()),
    };
    Finding::new(conditions::CLOUD_REACHABLE, false, reason, message)
}

/// Another prerequisite is missing.
#[must_use]
pub fn waiting(message: &'static str) -> Finding {
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reasons::LAUNCH_TEMPLATE_NOT_READY, message)
}

/// There is no bootstrap data (H1), it is larger than AWS accepts (H6), or nothing decompresses it.
#[must_use]
pub fn for_bootstrap(problem: &BootstrapProblem) -> Finding {
    let (reason, message) = match problem {
        BootstrapProblem::Waiting(message) => (reasons::WAITING_FOR_BOOTSTRAP_DATA, message.clone()),
        BootstrapProblem::TooLarge { size, source } => {
            (reasons::BOOTSTRAP_DATA_TOO_LARGE, format!("{size}. Reduce {source}."))
        }
        BootstrapProblem::Compressed { source } => (
            reasons::BOOTSTRAP_DATA_COMPRESSED,
            format!(
                "bootstrap data is compressed with gzip, and Windows does not support compressed user data. Store {source} \
                 uncompressed."
            ),
        ),
        BootstrapProblem::Failed(message) => (INTERNAL_ERROR, message.clone()),
    };
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reason, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_api::capi::{Cluster, ClusterSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;
    use crate::machine_pool::decide::testing::Stage;

    /// The message about a pool with this controller owner, to which another MachinePool refers.
    fn message(owner: Option<&str>, other: Option<&str>, has_cluster: bool) -> String {
        let mut stage = Stage::new(2);
        let reference = |name: &str| OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "MachinePool".to_owned(),
            name: name.to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let pool = Arc::make_mut(&mut stage.objects.pool);
        pool.metadata.owner_references = owner.map(|name| vec![reference(name)]);
        stage.objects.cluster = has_cluster.then(|| Arc::new(Cluster::new("c", ClusterSpec::default())));
        unreferenced(&stage.objects, other, &stage.desired, &stage.observed).message.into_owned()
    }

    // Rules: C1
    #[test]
    fn c1_the_owner_reference_to_remove_is_named() {
        let message = message(Some("old"), Some("new"), true);
        assert!(
            message.contains("MachinePool new refers to it, but MachinePool old is its controller owner")
        );
        assert!(
            message.ends_with(
                "or remove the entry of MachinePool old from metadata.ownerReferences (kubectl edit \
                 asgmachinepool p -n ns): Cluster API then sets MachinePool new as the owner."
            ),
            "{message}"
        );
    }

    // Rules: C1
    #[test]
    fn c1_a_pool_without_a_machine_pool_says_what_to_do() {
        for owner in [None, Some("old")] {
            let message = message(owner, None, true);
            assert!(message.ends_with("or let a MachinePool refer to it."), "{message}");
            assert!(message.contains("Auto Scaling group g has 2 instances"), "{message}");
            assert!(message.contains("replacements may not join"), "{message}");
        }
        let message = message(None, Some("new"), true);
        assert!(message.contains("wait for Cluster API"), "{message}");
    }

    // Rules: C1
    #[test]
    fn c1_without_a_cluster_no_drain_is_promised() {
        let message = message(None, None, false);
        assert!(message.contains("has 2 instances: nothing changes, since its Cluster does not exist"));
        assert!(!message.contains("drain"), "{message}");
    }
}
