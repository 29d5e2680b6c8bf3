//! One write of a plan.

use capasg_cloud::Write;

use crate::kubernetes::KubeWrite;

/// One step of a plan; each is safe to repeat.
#[derive(Debug, Clone)]
pub enum Step {
    /// A write to AWS.
    Cloud(Write),
    /// A write to Kubernetes.
    Kubernetes(KubeWrite),
}

impl Step {
    /// The write to Kubernetes, if it is one.
    #[must_use]
    pub fn kubernetes(&self) -> Option<&KubeWrite> {
        match self {
            Self::Cloud(_) => None,
            Self::Kubernetes(write) => Some(write),
        }
    }

    /// The write to AWS, if it is one.
    #[must_use]
    pub fn cloud(&self) -> Option<&Write> {
        match self {
            Self::Cloud(write) => Some(write),
            Self::Kubernetes(_) => None,
        }
    }
}

impl From<Write> for Step {
    fn from(write: Write) -> Self {
        Self::Cloud(write)
    }
}

impl From<KubeWrite> for Step {
    fn from(write: KubeWrite) -> Self {
        Self::Kubernetes(write)
    }
}
