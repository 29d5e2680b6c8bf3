//! The root of `ASGIdentity`: where the credentials come from, and which namespaces may use them.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ASGIdentityStatus, NamespaceSelection};
use crate::{crd::shapes, values::string_enum};

string_enum! {
    /// Which pools of the allowed namespaces use an identity.
    pub enum SelectionPolicy {
        /// Those that name it, or whose Cluster does.
        Explicit = "Explicit",
        /// Those that name it, and those that name none.
        Default = "Default",
    }
}

string_enum! {
    /// Where the credentials of an identity come from.
    pub enum IdentitySourceType {
        /// The credentials of the manager.
        Controller = "Controller",
        /// A role that is assumed.
        Role = "Role",
        /// A role that is assumed with the token of the manager's service account.
        WebIdentity = "WebIdentity",
        /// An access key in a Secret.
        Secret = "Secret",
    }
}

/// AWS credentials, and the namespaces whose pools may use them. Cluster-scoped: only operators create identities.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ASGIdentity",
    plural = "asgidentities",
    singular = "asgidentity",
    shortname = "asgid",
    category = "cluster-api",
    status = "ASGIdentityStatus",
    derive = "PartialEq",
    doc = "ASGIdentity offers AWS credentials to namespaces. ASGMachinePools refer to it in spec.identityRef.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "Where the credentials come from."
    ),
    printcolumn(
        name = "Account",
        type_ = "string",
        json_path = ".status.account",
        description = "AWS account of the credentials."
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether AWS accepts the credentials."
    ),
    printcolumn(
        name = "Selection",
        type_ = "string",
        json_path = ".spec.selectionPolicy",
        description = "Which pools of the allowed namespaces use it."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.role) == (self.type == 'Role' || self.type == 'WebIdentity')")
        .message("spec.role: is required with type Role and type WebIdentity, and not allowed with other types")
        .field_path(".role"),
    validation = Rule::new("has(self.secret) == (self.type == 'Secret')")
        .message("spec.secret: is required with type Secret, and not allowed with other types")
        .field_path(".secret"),
    validation = Rule::new("self.type != 'WebIdentity' || !has(self.role) || !(has(self.role.externalID) || has(self.role.sessionTags) || has(self.role.sourceIdentityRef))")
        .message("spec.role: externalID, sessionTags and sourceIdentityRef are not allowed with type WebIdentity: AssumeRoleWithWebIdentity does not accept them")
        .field_path(".role"),
    validation = Rule::new("!has(self.role) || !has(self.role.sourceIdentityRef) || !has(self.role.durationSeconds) || self.role.durationSeconds <= 3600")
        .message("spec.role.durationSeconds: must be at most 3600 with sourceIdentityRef: AWS limits sessions of a role that is assumed with another role to one hour")
        .field_path(".role.durationSeconds"),
)]
pub struct ASGIdentitySpec {
    /// Where the credentials come from: `Controller` (the manager's own: environment, profile, IAM role for its service
    /// account, EKS Pod Identity or instance profile), `Role` (a role that is assumed), `WebIdentity` (a role that is
    /// assumed with the token of the manager's service account) or `Secret` (an access key). Changes apply in place.
    #[serde(rename = "type")]
    pub source: IdentitySourceType,

    /// The role, with type `Role` or `WebIdentity`. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleSource>,

    /// The access key, with type `Secret`. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSource>,

    /// Namespaces whose pools may use the identity. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<NamespaceSelection>,

    /// Which pools of the allowed namespaces use the identity: `Explicit` (those that name it, or whose Cluster does) or
    /// `Default` (these, and those that name none; at most one identity may be the default of a namespace). Defaults to
    /// `Explicit`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_policy: Option<SelectionPolicy>,

    /// Name or URL of the SQS queue with the events of the account, read with these credentials in each Region of the
    /// pools that use the identity; two identities must not name the same queue. Defaults to none, and with type `Controller`
    /// to the queue of the flag `--event-queue`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^(https?://[^ ]+|[A-Za-z0-9_-]{1,80}([.]fifo)?)$")
    )]
    pub event_queue: Option<String>,
}

impl ASGIdentity {
    /// Whether the pools of a namespace, of which the labels are known or not, may use the identity.
    #[must_use]
    pub fn allows(&self, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.spec.allowed_namespaces.as_ref().is_some_and(|allowed| allowed.contains(namespace, labels))
    }
}

/// A role of IAM, and how it is assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleSource {
    /// ARN of the role. Changes apply in place; a role of another account is rejected for pools that have a group.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$')")
        .message("spec.role.arn: must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/capasg"))]
    pub arn: String,

    /// External ID that the trust policy of the role requires. Defaults to none. Changes apply in place.
    #[serde(rename = "externalID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 1224), regex(pattern = r"^[A-Za-z0-9_+=,.@:/-]+$"))]
    pub external_id: Option<String>,

    /// Name of the session, which CloudTrail shows. Defaults to `capasg-` and the name of the identity, at most 64
    /// characters of it. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 64), regex(pattern = r"^[A-Za-z0-9_+=,.@-]+$"))]
    pub session_name: Option<String>,

    /// Session tags; the trust policy must allow `sts:TagSession`. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::session_tags")]
    pub session_tags: BTreeMap<String, String>,

    /// Duration of a session in seconds. Sessions are renewed before they end. Defaults to 3600. Changes apply in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 900, max = 43200))]
    pub duration_seconds: Option<i32>,

    /// The ASGIdentity with whose credentials the role is assumed. Defaults to the credentials of the manager. Changes
    /// apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_identity_ref: Option<LocalIdentityReference>,
}

/// Another ASGIdentity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalIdentityReference {
    /// Name of the ASGIdentity. Changes apply in place.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
}

/// An access key in a Secret of the manager's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretSource {
    /// Name of a Secret in the namespace of the manager, with the keys `AccessKeyID`, `SecretAccessKey` and, for temporary
    /// credentials, `SessionToken`. Changes apply in place, those of the Secret within a minute.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
}
