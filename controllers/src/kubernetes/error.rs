//! Errors of the Kubernetes port.

/// The result of a call to the API server.
pub type Result<T, E = KubeError> = std::result::Result<T, E>;

/// A failed call to the API server.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KubeError {
    /// The object does not exist, or another object of its name does.
    #[error("{what}: the object does not exist")]
    NotFound {
        /// The object concerned.
        what: String,
    },
    /// Another actor wrote first, or the precondition on its uid failed: requeue.
    #[error("{what}: the object has been modified")]
    Conflict {
        /// The object concerned.
        what: String,
    },
    /// RBAC does not allow it.
    #[error("{what}: {message}")]
    Forbidden {
        /// What was attempted.
        what: String,
        /// The API server's message.
        message: String,
    },
    /// The schema, a quota, an admission policy or a webhook rejects it.
    #[error("{what}: {message}")]
    Rejected {
        /// What was attempted.
        what: String,
        /// The API server's message.
        message: String,
    },
    /// Anything else.
    #[error("{what}: {message}")]
    Other {
        /// What was attempted.
        what: String,
        /// The API server's message.
        message: String,
    },
}

impl KubeError {
    /// Whether the API server rejects this write, so that others may succeed.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Rejected { .. })
    }

    /// The bounded label of metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "KubernetesNotFound",
            Self::Conflict { .. } => "KubernetesConflict",
            Self::Forbidden { .. } | Self::Rejected { .. } | Self::Other { .. } => "KubernetesError",
        }
    }
}
