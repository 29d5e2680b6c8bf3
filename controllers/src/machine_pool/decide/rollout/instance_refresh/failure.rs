//! How an instance refresh failed.

use capasg_cloud::{InstanceRefresh, RefreshStatus};

/// How an instance refresh ended that did not bring instances to the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshFailure {
    /// Whether AWS rolled it back.
    pub rolled_back: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Its status and AWS's message, for users.
    pub message: String,
}

impl RefreshFailure {
    /// The failure of an instance refresh that has ended; `None` if it succeeded.
    #[must_use]
    pub fn of(refresh: &InstanceRefresh) -> Option<Self> {
        if refresh.status == RefreshStatus::Successful {
            return None;
        }
        let reason = refresh.reason.as_deref().or(refresh.rollback_reason.as_deref());
        let status = refresh.status.as_str();
        let message = match reason {
            Some(reason) => {
                format!("the instance refresh has status {status}: {}", reason.trim_end_matches('.'))
            }
            None => format!("the instance refresh has status {status}"),
        };
        Some(Self {
            rolled_back: refresh.status == RefreshStatus::RollbackSuccessful,
            cancelled: refresh.status == RefreshStatus::Cancelled,
            message,
        })
    }

    /// The failure of one that AWS does not list any more.
    #[must_use]
    pub fn unknown() -> Self {
        Self::with_message("an earlier instance refresh failed")
    }

    /// Instance refreshes succeed, but replace no outdated instance.
    #[must_use]
    pub fn without_effect() -> Self {
        Self::with_message("instance refreshes succeeded, but instances are still outdated")
    }

    fn with_message(message: &str) -> Self {
        Self { rolled_back: false, cancelled: false, message: message.to_owned() }
    }
}
