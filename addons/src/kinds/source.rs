//! Where the parts of a release are: Secrets, and references to objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference to a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,

    /// Namespace of the Secret. Defaults to the namespace of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
}

/// Credentials of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The Secret that contains the credentials.
    pub secret: SecretReference,

    /// Key in the Secret. For an OCI registry, its value is a Docker configuration file. Defaults to `config.json`.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub key: String,
}

/// How the certificate of a repository is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// The Secret that contains the certificate authority of the repository in its key `ca.crt`. Defaults to the
    /// authorities of the image.
    #[serde(rename = "caSecret", skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<SecretReference>,

    /// Whether the certificate is accepted without verification. Defaults to false.
    #[serde(rename = "insecureSkipTLSVerify", skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_tls_verify: bool,
}

/// A reference to an object, with the members that are set here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// API version of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 317))]
    pub api_version: String,

    /// Kind of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub kind: String,

    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,

    /// Namespace of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
}
