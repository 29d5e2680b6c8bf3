//! What a pool waits for before or instead of anything else, as findings.

use crate::machine_pool::model::BootstrapProblem;
use capasg_api::{
    conditions::{self, Finding},
    names::annotations,
    reasons::{INTERNAL_ERROR, group_ready, launch_template_ready as reasons},
};

/// Somebody took away what says that the group is ours.
#[must_use]
pub fn identity_lost(condition: &'static str, holds: bool) -> Finding {
    let message = format!(
        "annotation {} or label cluster.x-k8s.io/cluster-name is missing, so whether the Auto Scaling group is ours \
         cannot be told. Nothing is changed; set the annotation to the value of the group's tag of that name.",
        annotations::OWNER_ID
    );
    Finding::new(condition, holds, group_ready::GROUP_NOT_OWNED, message)
}

/// Core has not said yet that the Cluster's infrastructure is there (C3).
#[must_use]
pub fn for_infrastructure() -> Finding {
    Finding::new(
        conditions::LAUNCH_TEMPLATE_READY,
        false,
        reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
        "waiting for status.initialization.infrastructureProvisioned of the Cluster",
    )
}

/// Something else is not there yet.
#[must_use]
pub fn waiting(message: &'static str) -> Finding {
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reasons::LAUNCH_TEMPLATE_NOT_READY, message)
}

/// There is no bootstrap data (H1), or more than AWS takes (H6).
#[must_use]
pub fn for_bootstrap(problem: &BootstrapProblem) -> Finding {
    let (reason, message) = match problem {
        BootstrapProblem::Waiting(message) => (reasons::WAITING_FOR_BOOTSTRAP_DATA, message.clone()),
        BootstrapProblem::TooLarge { size, source } => {
            (reasons::BOOTSTRAP_DATA_TOO_LARGE, format!("{size}. Shorten {source}."))
        }
        BootstrapProblem::Failed(message) => (INTERNAL_ERROR, message.clone()),
    };
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reason, message)
}
