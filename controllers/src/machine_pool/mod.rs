//! The pool controller: observe, decide, act, report. The only writer to the cloud.

pub mod act;
mod block_move;
mod claim;
pub mod decide;
pub mod desired;
mod finish;
pub mod launches;
mod memory;
mod news;
pub mod observe;
mod reconcile;
pub mod report;
mod retry;
pub mod stamp;
pub mod state;
pub mod user_data;

use capasg_cloud::{CloudError, ErrorClass};
use chrono::TimeDelta;

pub use memory::PoolMemory;
pub use reconcile::{forget, reconcile};

use crate::{
    backoff::{BUSY, Curve, OVERTAKEN, PERMANENT, TRANSIENT},
    kubernetes::KubeError,
};

/// When to look at a pool again although nothing wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Next {
    /// After this long at the latest; `None` leaves it to events and the periodic resync.
    pub after: Option<TimeDelta>,
}

/// A reconcile that stopped in passing; it is tried again with backoff. What AWS refuses is no error: it is in a
/// condition.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A cloud call failed in passing.
    #[error("{0}")]
    Cloud(CloudError),
    /// A call to the API server failed.
    #[error("{0}")]
    Kubernetes(KubeError),
}

impl ReconcileError {
    /// The bounded label of metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Cloud(error) => error.class.as_str(),
            Self::Kubernetes(error) => error.reason(),
        }
    }

    /// How soon it is tried again: what only a person can mend ever more seldom.
    #[must_use]
    pub fn curve(&self) -> Curve {
        match self {
            Self::Kubernetes(KubeError::Conflict { .. } | KubeError::NotFound { .. }) => OVERTAKEN,
            Self::Cloud(error) if error.class == ErrorClass::Conflict => BUSY,
            Self::Cloud(error) if error.class.is_permanent() => PERMANENT,
            _ => TRANSIENT,
        }
    }
}

impl From<KubeError> for ReconcileError {
    fn from(error: KubeError) -> Self {
        Self::Kubernetes(error)
    }
}
