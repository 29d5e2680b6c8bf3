//! `capasg iam print`: the permissions in AWS that CAPASG requires, restricted to what pools use.

mod cluster;
mod commands;
mod identities;
mod parts;
mod policy;
mod pretty;
#[cfg(test)]
mod tests;
mod trust;
mod usage;

use std::{collections::BTreeMap, io::Write as _};

use anyhow::{Context as _, Result, bail};
use kube::Client;
use serde_json::{Value, json};

use self::{
    parts::{NO_TRUST, Parts},
    usage::{Usage, Used},
};
use crate::{
    cli::{IamDocument, IamOutput, IamPrintArgs},
    kubernetes,
};

/// Prints a document, or commands; warnings go to the standard error.
///
/// # Errors
/// If a flag is invalid, a document requires a flag that is absent, or the management cluster cannot be read.
pub async fn print(args: &IamPrintArgs) -> Result<()> {
    let mut usage = Usage::of_flags(args)?;
    let mut warnings = Vec::new();
    if args.from_cluster {
        let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
        let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;
        (usage, warnings) = cluster::read(&client, usage, args.identity.as_deref()).await?;
    }
    warnings.extend(omitted(args, &usage));
    for warning in warnings {
        eprintln!("capasg: {warning}");
    }
    let parts = Parts::of(args, &usage)?;
    let text = match args.output {
        IamOutput::Json => pretty::text(&document(&parts, &usage)?),
        IamOutput::AwsCli => commands::all(&parts, &usage)?,
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")
}

/// The policy of the Runtime Extension, in as few characters as possible: STS accepts 2048 of a session policy.
#[must_use]
pub fn extension_policy() -> String {
    policy::extension(&Usage::default()).to_string()
}

/// What the policy of the manager does not contain.
fn omitted(args: &IamPrintArgs, usage: &Usage) -> Vec<String> {
    let mut omitted = Vec::new();
    let is_policy = args.output == IamOutput::AwsCli || args.document == IamDocument::ManagerPolicy;
    if is_policy && usage.roles.is_empty() {
        omitted.push(
            "the statement PassInstanceProfileRoles is omitted: pass --role with the role of the instance profile, \
             unless pools have none"
                .to_owned(),
        );
    }
    if is_policy && usage.queues == Used::Only([].into()) {
        omitted.push("the statement TakeEvents is omitted: no event queue is configured".to_owned());
    }
    if is_policy && usage.parameters == Used::Only([].into()) {
        omitted.push("the statement ReadImageParameters is omitted: no pool uses a parameter".to_owned());
    }
    omitted
}

fn document(parts: &Parts<'_>, usage: &Usage) -> Result<Value> {
    let required = |trust: Option<Value>| trust.context(NO_TRUST);
    Ok(match parts.args.document {
        IamDocument::ManagerPolicy => policy::manager(usage),
        IamDocument::ExtensionPolicy => policy::extension(usage),
        IamDocument::ManagerTrust => required(parts.manager_trust())?,
        IamDocument::ExtensionTrust => required(parts.extension_trust())?,
        IamDocument::KeyPolicy => trust::key_statements(usage)?,
        IamDocument::IdentityTrust => {
            if usage.identities.is_empty() {
                bail!("pass --assume-role with the ARN of a role that the manager assumes");
            }
            let of_each = usage.identities.iter().map(|identity| {
                let trust = trust::of_identity(usage, identity, &parts.args.manager_role)?;
                Ok((identity.role.clone(), trust))
            });
            json!(of_each.collect::<Result<BTreeMap<_, _>>>()?)
        }
    })
}
