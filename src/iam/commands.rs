//! The documents as commands of the AWS CLI.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use super::{
    parts::{NO_TRUST, Parts},
    policy, trust,
    usage::Usage,
};

/// Commands that create everything, in the order in which they have to run.
///
/// # Errors
/// If a part requires an account that is not known.
pub fn all(parts: &Parts<'_>, usage: &Usage) -> Result<String> {
    let mut out = String::new();
    let manager = &parts.args.manager_role;
    let extension = &parts.args.extension_role;
    role(&mut out, manager, parts.manager_trust().as_ref(), &policy::manager(usage));
    association(&mut out, parts, usage, (&parts.args.manager_namespace, "capasg-manager"), manager)?;
    role(&mut out, extension, parts.extension_trust().as_ref(), &policy::extension(usage));
    association(&mut out, parts, usage, (&parts.args.extension_namespace, "capasg-extension"), extension)?;
    for identity in &usage.identities {
        let account = identity.role.split(':').nth(4).unwrap_or_default();
        let name = identity.role.rsplit('/').next().unwrap_or_default();
        let own = Usage { account: Some(account.to_owned()), identities: Vec::new(), ..usage.clone() };
        line(&mut out, &format!("# In the account {account}:"));
        let trust = trust::of_identity(usage, identity, manager)?;
        role(&mut out, name, Some(&trust), &policy::manager(&own));
    }
    for key in &usage.keys {
        let region = key.split(':').nth(3).unwrap_or_default();
        line(
            &mut out,
            &format!(
                "aws kms create-grant --region {region} --key-id {key} --grantee-principal {} --operations {}",
                trust::launcher(usage)?,
                trust::KEY_OPERATIONS.join(" ")
            ),
        );
    }
    Ok(out)
}

/// An inline policy, so that no second command has to name the policy by its ARN.
fn role(out: &mut String, name: &str, trust: Option<&Value>, policy: &Value) {
    match trust {
        Some(trust) => line(
            out,
            &format!(
                "aws iam create-role --role-name {name} --assume-role-policy-document {}",
                quoted(trust)
            ),
        ),
        None => line(out, &format!("# The role {name} has to exist: {NO_TRUST}.")),
    }
    line(
        out,
        &format!(
            "aws iam put-role-policy --role-name {name} --policy-name {name} --policy-document {}",
            quoted(policy)
        ),
    );
}

/// Gives the role to the service account, with EKS Pod Identity.
fn association(
    out: &mut String,
    parts: &Parts<'_>,
    usage: &Usage,
    (namespace, service_account): (&str, &str),
    role: &str,
) -> Result<()> {
    if let Some(cluster) = &parts.args.pod_identity_cluster {
        let role = trust::role(usage, role, "--pod-identity-cluster requires --account")?;
        let command = "aws eks create-pod-identity-association";
        line(
            out,
            &format!(
                "{command} --cluster-name {cluster} --namespace {namespace} --service-account {service_account} \
                 --role-arn {role}"
            ),
        );
    }
    Ok(())
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

/// JSON in the quotes of a shell.
fn quoted(value: &Value) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}
