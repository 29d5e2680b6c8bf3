//! The response to discovery: which handlers there are (R1, R3).

use serde::{Deserialize, Serialize};

use super::{API_VERSION, FailurePolicy, Hook, Status};

/// Seconds that core waits for a handler; its default as well.
pub(crate) const TIMEOUT_SECONDS: i32 = 10;

/// The response to discovery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The handlers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<ExtensionHandler>,
}

/// A handler of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionHandler {
    /// The name of the handler, a DNS label that is unique in the extension. A `ClusterClass` refers to it as
    /// `<handler>.<name of the ExtensionConfig>` (R15).
    pub name: String,
    /// The hook that it handles.
    pub request_hook: RequestHook,
    /// Seconds that core waits for an answer, 0 to 30; 0 is core's default, 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// What core does if it cannot call the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
}

/// A hook with its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHook {
    /// Group and version.
    pub api_version: String,
    /// The name of the hook.
    pub hook: String,
}

impl ExtensionHandler {
    /// The handler of a hook.
    #[must_use]
    pub fn of(hook: Hook) -> Self {
        Self {
            name: hook.handler(),
            request_hook: RequestHook { api_version: API_VERSION.to_owned(), hook: hook.name().to_owned() },
            timeout_seconds: Some(TIMEOUT_SECONDS),
            failure_policy: Some(hook.failure_policy()),
        }
    }
}
