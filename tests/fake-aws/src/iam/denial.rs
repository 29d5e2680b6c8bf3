//! What a policy denied.

use serde::{Deserialize, Serialize};

/// What of a call was denied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// For example `iam:PassRole`, which another call may ask.
    pub action: String,
    /// An ARN, or `*`.
    pub resource: String,
    /// Whether a statement denies it, not only none allows it.
    pub is_explicit: bool,
    /// Whether the resource does not exist, so that no condition on its tags holds. What AWS answers then is not documented;
    /// the worse case is a denial.
    #[serde(default)]
    pub is_absent: bool,
}
