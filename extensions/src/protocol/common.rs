//! What all requests and responses have in common.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use super::Cluster;

/// The settings of a request: those of the `ExtensionConfig`, overridden by those of a patch of the `ClusterClass`.
pub type Settings = BTreeMap<String, String>;

/// A request of core.
pub trait Request: DeserializeOwned + Send + 'static {
    /// The settings.
    fn settings(&self) -> &Settings;

    /// The Cluster that the hook is called for; `None` if the request has none.
    fn cluster(&self) -> Option<&Cluster> {
        None
    }

    /// The same, to be replaced.
    fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        None
    }

    /// The Kubernetes versions that the Cluster has, or will have, as the request says.
    fn versions(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// A response to core.
pub trait Response: Serialize + Send + 'static {
    /// An empty success, which does not block.
    fn success() -> Self;

    /// A failure with its reason, which core shows in a condition.
    fn failure(message: String) -> Self;

    /// That the answer is not ready: the hook blocks and is called again, if the hook can block; else a failure.
    fn not_ready(message: String) -> Self;

    /// How metrics count the response.
    fn status(&self) -> Status;

    /// Seconds after which core calls again; 0 does not block.
    fn retry_after_seconds(&self) -> i32 {
        0
    }
}

/// The result of a call. Core treats any other value as an error (R2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// The call succeeded; the hook may block nevertheless.
    #[default]
    Success,
    /// The call failed; core repeats it with a backoff.
    Failure,
}

/// What core does if it cannot call a handler, or cannot read its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// It continues as after a success.
    Ignore,
    /// It does not continue, and repeats the call.
    Fail,
}

/// A response without further fields, of hooks that cannot block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A response of a hook that can block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed, or why the hook blocks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Seconds after which core calls the hook again; 0 does not block.
    pub retry_after_seconds: i32,
}

/// When core calls again if an answer was not ready in time, in seconds.
const NOT_READY_RETRY: i32 = 10;

impl RetryResponse {
    /// A response that blocks. `seconds` is at least 1, since 0 would not block.
    #[must_use]
    pub fn block(message: String, seconds: i32) -> Self {
        Self { status: Status::Success, message, retry_after_seconds: seconds.max(1) }
    }
}

impl Response for CommonResponse {
    fn success() -> Self {
        Self::default()
    }

    fn failure(message: String) -> Self {
        Self { status: Status::Failure, message }
    }

    fn not_ready(message: String) -> Self {
        Self::failure(message)
    }

    fn status(&self) -> Status {
        self.status
    }
}

impl Response for RetryResponse {
    fn success() -> Self {
        Self::default()
    }

    fn failure(message: String) -> Self {
        Self { status: Status::Failure, message, retry_after_seconds: 0 }
    }

    fn not_ready(message: String) -> Self {
        Self::block(message, NOT_READY_RETRY)
    }

    fn status(&self) -> Status {
        self.status
    }

    fn retry_after_seconds(&self) -> i32 {
        self.retry_after_seconds
    }
}

/// Go writes an empty list or map as `null` where it has no `omitempty`.
pub(super) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
