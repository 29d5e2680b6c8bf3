//! A condition without its message and times, as metrics show it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Deserialize;

/// Type, status and reason of a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConditionState {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Its reason.
    pub reason: String,
}

impl From<&Condition> for ConditionState {
    fn from(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
        }
    }
}
