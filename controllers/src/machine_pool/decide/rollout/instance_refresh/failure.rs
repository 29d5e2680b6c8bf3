//! How an instance refresh failed.

use capasg_cloud::{InstanceRefresh, RefreshStatus};

/// How an instance refresh ended that did not make instances what is desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshFailure {
    /// Whether AWS took back what it had replaced.
    pub rolled_back: bool,
    /// Its status and AWS's message, for users.
    pub message: String,
}

impl RefreshFailure {
    /// The failure of a refresh that is over; `None` if it succeeded.
    #[must_use]
    pub fn of(refresh: &InstanceRefresh) -> Option<Self> {
        if refresh.status == RefreshStatus::Successful {
            return None;
        }
        let reason = refresh.reason.as_deref().or(refresh.rollback_reason.as_deref());
        let status = refresh.status.as_str();
        let message = match reason {
            Some(reason) => format!("the instance refresh is {status}: {}", reason.trim_end_matches('.')),
            None => format!("the instance refresh is {status}"),
        };
        Some(Self { rolled_back: refresh.status == RefreshStatus::RollbackSuccessful, message })
    }

    /// AWS does not list it any more.
    #[must_use]
    pub fn unknown() -> Self {
        Self { rolled_back: false, message: "an earlier attempt did not succeed".to_owned() }
    }

    /// Refreshes succeed and replace nothing that is outdated.
    #[must_use]
    pub fn without_effect() -> Self {
        let message = "instance refreshes succeed and leave instances outdated".to_owned();
        Self { rolled_back: false, message }
    }
}
