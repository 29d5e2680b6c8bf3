//! `capasg why`: what the extension reported about a Cluster. It only reads, with the permissions of the user.

use anyhow::{Context as _, Result};
use capasg_extensions::client::history;
use chrono::Utc;
use kube::Client;

use crate::{cli::WhyArgs, kubernetes};

/// Prints the last answer of each hook, since when it blocks, and what ends the block.
///
/// # Errors
/// If the API server cannot be configured, or rejects a read.
pub async fn why(args: &WhyArgs) -> Result<()> {
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;
    let found = history(client, &namespace, &args.cluster, Utc::now()).await;
    let found = found.with_context(|| {
        format!("cannot read what hooks of Cluster {namespace}/{} answered", args.cluster)
    })?;
    print!("{found}");
    Ok(())
}
