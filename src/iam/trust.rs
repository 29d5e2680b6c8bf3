//! Trust policies, and what the policy of a key requires.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::usage::{Identity, Usage};

/// How a pod gets the credentials of its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// IAM roles for service accounts: the ARN of the OIDC provider, and its issuer without `https://`.
    Oidc { provider: String, issuer: String },
    /// EKS Pod Identity.
    PodIdentity,
}

impl Source {
    /// The source of an OIDC provider, by its issuer URL or ARN.
    ///
    /// # Errors
    /// If it is a URL and the account is not known.
    pub fn oidc(usage: &Usage, provider: &str) -> Result<Self> {
        if let Some((_, issuer)) = provider.split_once(":oidc-provider/") {
            return Ok(Self::Oidc { provider: provider.to_owned(), issuer: issuer.to_owned() });
        }
        let account = usage.account.as_deref().context("--oidc-provider with a URL requires --account")?;
        let issuer = provider.trim_start_matches("https://").trim_end_matches('/').to_owned();
        let partition = concrete_partition(usage);
        let provider = format!("arn:{partition}:iam::{account}:oidc-provider/{issuer}");
        Ok(Self::Oidc { provider, issuer })
    }
}

/// A principal must be an ARN without wildcards.
fn concrete_partition(usage: &Usage) -> &'static str {
    usage.partition.map_or("aws", crate::cli::Partition::as_str)
}

/// The trust policy of the role of a service account.
#[must_use]
pub fn of_service_account(source: &Source, namespace: &str, name: &str) -> Value {
    let statement = match source {
        Source::Oidc { provider, issuer } => json!({
            "Effect": "Allow",
            "Principal": {"Federated": provider},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {"StringEquals": {
                format!("{issuer}:aud"): "sts.amazonaws.com",
                format!("{issuer}:sub"): format!("system:serviceaccount:{namespace}:{name}"),
            }},
        }),
        Source::PodIdentity => json!({
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {"StringEquals": {
                "aws:RequestTag/kubernetes-namespace": namespace,
                "aws:RequestTag/kubernetes-service-account": name,
            }},
        }),
    };
    json!({ "Version": "2012-10-17", "Statement": [statement] })
}

/// The trust policy of a role that the manager assumes.
///
/// # Errors
/// If the account of the manager's role is not known.
pub fn of_identity(usage: &Usage, identity: &Identity, manager_role: &str) -> Result<Value> {
    let principal = json!({"AWS": role(usage, manager_role, "a trust policy requires --account")?});
    let mut assume = json!({ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" });
    if let Some(id) = &identity.external_id {
        assume["Condition"] = json!({"StringEquals": {"sts:ExternalId": id}});
    }
    // sts:TagSession does not support the condition key sts:ExternalId.
    let tag = json!({ "Effect": "Allow", "Principal": principal, "Action": "sts:TagSession" });
    Ok(json!({ "Version": "2012-10-17", "Statement": [assume, tag] }))
}

/// The ARN of a role without wildcards.
///
/// # Errors
/// `missing`, if the account is not known.
pub fn role(usage: &Usage, name: &str, missing: &'static str) -> Result<String> {
    if name.starts_with("arn:") {
        return Ok(name.to_owned());
    }
    let account = usage.account.as_deref().context(missing)?;
    Ok(format!("arn:{}:iam::{account}:role/{name}", concrete_partition(usage)))
}

/// The service-linked role with which Auto Scaling launches instances.
///
/// # Errors
/// If the account is not known.
pub fn launcher(usage: &Usage) -> Result<String> {
    let name = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
    role(usage, name, "a key policy requires --account")
}

/// What Auto Scaling does with a key that encrypts volumes ("Required AWS KMS key policy for use with encrypted volumes").
pub const KEY_OPERATIONS: [&str; 8] = [
    "Encrypt",
    "Decrypt",
    "ReEncryptFrom",
    "ReEncryptTo",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "DescribeKey",
    "CreateGrant",
];

/// The statements that the policy of a key requires; in the policy of a key, the resource is the key itself.
///
/// # Errors
/// If the account is not known.
pub fn key_statements(usage: &Usage) -> Result<Value> {
    let principal = json!({"AWS": launcher(usage)?});
    Ok(json!([
        {
            "Sid": "UseForVolumes",
            "Effect": "Allow",
            "Principal": principal,
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            "Resource": "*",
        },
        {
            "Sid": "AttachVolumes",
            "Effect": "Allow",
            "Principal": principal,
            "Action": "kms:CreateGrant",
            "Resource": "*",
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
    ]))
}
