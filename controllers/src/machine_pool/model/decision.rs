//! The result of decide: the plan, and the desired state that it is for; and the result of act.

use capasg_cloud::CloudError;
use chrono::TimeDelta;

use crate::machine_pool::ReconcileError;
use crate::machine_pool::model::{Desired, Plan};

/// The result of decide.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// The desired state that the plan is for: with the owner of the replicas, and in a preview with the values that
    /// AWS has. `None` for a pool that is not compared with AWS.
    pub desired: Option<Desired>,
    /// The plan.
    pub plan: Plan,
}

/// The result of act.
#[derive(Debug, Default)]
pub struct Acted {
    /// Whether the pool must be observed again in the same reconcile, because a step (a launch template call) took
    /// effect at once.
    pub again: bool,
    /// Delay of a step that was skipped: AWS has just made the same change and the view may not show it yet, or has failed
    /// to make it repeatedly.
    pub wait: Option<TimeDelta>,
    /// Why a step or a read that decide requires failed. It is retried with backoff.
    pub failed: Option<ReconcileError>,
    /// Whether what AWS announces of instances was not acted on.
    pub notices_wait: bool,
    /// Why AWS is unreachable, if it is.
    pub unreachable: Option<CloudError>,
}

impl Acted {
    /// A step was skipped for this long at the most.
    pub fn wait_for(&mut self, wait: TimeDelta) {
        self.wait = Some(self.wait.map_or(wait, |other| other.min(wait)));
    }
}
