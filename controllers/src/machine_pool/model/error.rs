//! Why a reconcile failed, and when it is retried.

use capasg_cloud::{CloudError, ErrorClass};

use crate::{
    backoff::{CONFLICT, Curve, IN_PROGRESS, PERMANENT, TRANSIENT},
    kubernetes::KubeError,
};

/// A reconcile that failed, and is retried with backoff. A call that AWS rejects is no error: a condition reports it.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A call to AWS failed.
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

    /// What failed: the operation of AWS, or the API server. Each has a backoff of its own.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Cloud(error) => error.api,
            Self::Kubernetes(_) => "Kubernetes",
        }
    }

    /// Whether other calls made now would fail for the same reason.
    #[must_use]
    pub fn concerns_all_calls(&self) -> bool {
        match self {
            Self::Cloud(error) => {
                error.is_timeout() || matches!(error.class, ErrorClass::Throttled | ErrorClass::NotLeading)
            }
            Self::Kubernetes(_) => true,
        }
    }

    /// Whether this process has lost the Lease, so that it must write nothing.
    #[must_use]
    pub fn is_not_leading(&self) -> bool {
        matches!(self, Self::Cloud(error) if error.class == ErrorClass::NotLeading)
    }

    /// The delays between retries: they are longest for what only a user can correct.
    #[must_use]
    pub fn curve(&self) -> Curve {
        match self {
            Self::Kubernetes(KubeError::Conflict { .. } | KubeError::NotFound { .. }) => CONFLICT,
            Self::Cloud(error) if error.class == ErrorClass::Conflict => IN_PROGRESS,
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
