//! The API server's audit log: who wrote what, and when.
//!
//! Tests use it to show an order of events, for example that a pod was evicted before its instance was ended.

use std::path::Path;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use serde::Deserialize;

/// What is in the audit log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audited {
    /// Writes, except of Leases and events.
    #[default]
    Writes,
    /// All requests, for benchmarks: also reads, and watches once they end.
    All,
}

impl Audited {
    pub(crate) fn policy(self) -> &'static str {
        match self {
            Self::Writes => WRITES,
            Self::All => ALL,
        }
    }
}

const ALL: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
";

/// Writes only, once each, without bodies: no secret gets into the log. Leases and events would drown the rest.
const WRITES: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: '', resources: [events]}
  - {group: events.k8s.io, resources: [events]}
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
";

/// One request that the API server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// When it was received: what it changed is seen after this, maybe before the answer.
    pub received: DateTime<Utc>,
    /// When it was answered.
    pub at: DateTime<Utc>,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`; with all requests also `get`, `list` and `watch`.
    pub verb: String,
    /// Who wrote; the impersonated user if there was one.
    pub user: String,
    /// The program, as it names itself.
    pub agent: String,
    /// The plural name of the kind, for example `pods`.
    pub resource: String,
    /// For example `eviction` or `status`; empty for the object itself.
    pub subresource: String,
    /// The object's namespace; empty if it has none.
    pub namespace: String,
    /// The object's name; empty for a create with a generated name.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The field manager that the request names, for example `capi-topology`; empty if it names none.
    pub manager: String,
    /// Whether nothing was to be kept.
    pub dry_run: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    impersonated_user: Option<User>,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: DateTime<Utc>,
    #[serde(rename = "requestURI", default)]
    request_uri: String,
    #[serde(default)]
    user_agent: String,
    stage_timestamp: DateTime<Utc>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// All writes so far, oldest first.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn read(log: &Path) -> Result<Vec<Write>> {
    let text = std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Write> {
    let event: Event =
        serde_json::from_str(line).context("a line of the audit log is not what it should be")?;
    let object = event.object_ref.unwrap_or_default();
    let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
    let parameter = |name: &str| {
        let mut values = query.split('&').filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        values.next_back().unwrap_or_default().to_owned()
    };
    Ok(Write {
        received: event.request_received_timestamp,
        at: event.stage_timestamp,
        verb: event.verb,
        user: event.impersonated_user.unwrap_or(event.user).username,
        agent: event.user_agent,
        resource: object.resource,
        subresource: object.subresource,
        namespace: object.namespace,
        name: object.name,
        code: event.response_status.map_or(0, |status| status.code),
        manager: parameter("fieldManager"),
        dry_run: parameter("dryRun") == "All",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_impersonated_user_is_the_writer() {
        let write = parse(
            r#"{"kind":"Event","verb":"create","user":{"username":"admin"},
            "impersonatedUser":{"username":"system:serviceaccount:capi-system:capi-manager"},
            "requestURI":"/api/v1/namespaces/default/pods/web/eviction?dryRun=All&fieldManager=capi-topology&force=true",
            "objectRef":{"resource":"pods","namespace":"default","name":"web","subresource":"eviction"},
            "responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-05-01T10:00:00.023456Z",
            "stageTimestamp":"2026-05-01T10:00:00.123456Z"}"#,
        )
        .unwrap();
        assert_eq!(write.user, "system:serviceaccount:capi-system:capi-manager");
        assert_eq!(
            (write.resource.as_str(), write.subresource.as_str(), write.code),
            ("pods", "eviction", 201)
        );
        assert_eq!((write.manager.as_str(), write.dry_run), ("capi-topology", true));
        assert_eq!(write.at.timestamp_subsec_micros(), 123_456);
    }

    #[test]
    fn a_half_written_line_is_left_for_later() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        std::fs::write(&log, "{\"verb\":\"del").unwrap();
        assert!(read(&log).unwrap().is_empty());
    }
}
