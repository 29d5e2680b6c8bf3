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
         the same key on the group, and the label to the name of the Cluster.",
        annotations::OWNER_ID
    );
    Finding::new(condition, holds, group_ready::GROUP_NOT_OWNED, message)
}

/// No MachinePool refers to a pool that has a group.
#[must_use]
pub fn unreferenced(objects: &PoolObjects, desired: &Desired, observed: &Observed) -> Finding {
    let why = match owner_machine_pool(&objects.pool) {
        Some(owner) => format!(
            "spec.template.spec.infrastructureRef of MachinePool {} does not refer to this ASGMachinePool, or the \
             MachinePool was deleted",
            owner.name
        ),
        None => "no MachinePool refers to this ASGMachinePool".to_owned(),
    };
    let count = instances::count(observed.instances.values().filter(|instance| instance.listed.is_some()));
    let message = format!(
        "{why}. Its Auto Scaling group {} has {}: nodes are drained when their instances terminate, and nothing else \
         changes. Delete the ASGMachinePool to drain and terminate them, or let a MachinePool refer to it.",
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

/// There is no bootstrap data (H1), or it is larger than AWS accepts (H6).
#[must_use]
pub fn for_bootstrap(problem: &BootstrapProblem) -> Finding {
    let (reason, message) = match problem {
        BootstrapProblem::Waiting(message) => (reasons::WAITING_FOR_BOOTSTRAP_DATA, message.clone()),
        BootstrapProblem::TooLarge { size, source } => {
            (reasons::BOOTSTRAP_DATA_TOO_LARGE, format!("{size}. Reduce {source}."))
        }
        BootstrapProblem::Failed(message) => (INTERNAL_ERROR, message.clone()),
    };
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reason, message)
}
