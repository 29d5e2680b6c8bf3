//! What was decided: the plan, and the desired state that it is for.

use capasg_cloud::CloudError;
use chrono::TimeDelta;

use crate::machine_pool::ReconcileError;
use crate::machine_pool::model::{Desired, Plan};

/// What was decided.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// The desired state that the plan is for: who sizes the group is settled, and a preview is held to what AWS has. `None`
    /// for a pool of which nothing is compared with AWS.
    pub desired: Option<Desired>,
    /// What to do.
    pub plan: Plan,
}

/// What acting came to.
#[derive(Debug, Default)]
pub struct Acted {
    /// A step's effect is known at once, so that observing again makes sense.
    pub again: bool,
    /// A step waits, since it is what was just done, as a view that lags shows it.
    pub wait: Option<TimeDelta>,
    /// What failed in passing, a step or a read that decide asked for. It is retried with backoff.
    pub failed: Option<ReconcileError>,
    /// Why AWS is unreachable, if it is.
    pub unreachable: Option<CloudError>,
}
