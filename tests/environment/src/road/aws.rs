//! Cluster API Provider AWS on a management cluster, with moto as its AWS.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    command::Runner,
    management::Management,
    manager::{Manager, ManagerOptions},
    moto::{Moto, MotoSeed, SeedImage},
    tools::{Capa, Tools},
};

/// The label that clusterctl gives it.
pub const LABEL: &str = "infrastructure-aws";

/// The instance profile of nodes in the templates, as `clusterawsadm bootstrap iam` names it.
pub const NODE_PROFILE: &str = "nodes.cluster-api-provider-aws.sigs.k8s.io";

/// The same of control plane machines.
pub const CONTROL_PLANE_PROFILE: &str = "control-plane.cluster-api-provider-aws.sigs.k8s.io";

/// Its entry in the list of providers of `clusterctl.yaml`.
#[must_use]
pub fn provider(capa: &Capa) -> Value {
    json!({"name": "aws", "type": "InfrastructureProvider", "url": capa.components})
}

/// The variables that its components require, beside those of Cluster API: its file of credentials. It is never read, since
/// credentials in the environment take precedence.
#[must_use]
pub fn variables() -> BTreeMap<String, String> {
    [("AWS_B64ENCODED_CREDENTIALS".to_owned(), STANDARD.encode("[default]\n"))].into()
}

/// Adds it to a management cluster that exists, by `clusterctl init`.
///
/// # Errors
/// When clusterctl fails; then with what it said.
pub async fn install(management: &Management, tools: &Tools, capa: &Capa) -> Result<()> {
    let known = std::fs::read_to_string(management.clusterctl().config())?;
    let mut config: Value = serde_saphyr::from_str(&known)?;
    config["providers"].as_array_mut().context("no list of providers")?.push(provider(capa));
    let file = management.clusterctl().config().with_file_name("clusterctl-aws.yaml");
    std::fs::write(&file, serde_saphyr::to_string(&config)?)?;
    let mut clusterctl = Runner::new(tools.program("clusterctl"))
        .with("--config")
        .with(&file)
        .env("KUBECONFIG", management.api().kubeconfig())
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true");
    for (name, value) in variables() {
        clusterctl = clusterctl.env(name, value);
    }
    clusterctl.run(["init", "--infrastructure", &format!("aws:{}", capa.version)]).await?;
    management.reconcile_webhooks().await
}

/// Starts its manager from its Deployment, under its service account, with its webhooks. `clusterctl init` has installed it, and
/// [`Management::reconcile_webhooks`] was called since. It gets the endpoint and static credentials, and nothing else.
///
/// # Errors
/// When it is not installed, or not ready within a minute.
pub async fn start(management: &Management, capa: &Capa, moto: &Moto, region: &str) -> Result<Manager> {
    let options = ManagerOptions { webhooks: true, env: moto.env(region), ..ManagerOptions::default() };
    management.plan_manager(LABEL, &capa.manager, &options).await?.start_ready().await
}

/// An image with a Kubernetes version, with the name by which Cluster API Provider AWS finds it, and the parameter
/// `/images/node/<version>` that names it.
#[must_use]
pub fn image(id: &str, version: &str) -> MotoSeed {
    let name = format!("capa-ami-ubuntu-24.04-{version}-1764000000");
    MotoSeed {
        images: vec![SeedImage {
            id: id.to_owned(),
            name,
            architecture: "x86_64".to_owned(),
            version: Some(version.to_owned()),
        }],
        parameters: [(format!("/images/node/{version}"), id.to_owned())].into(),
        ..MotoSeed::default()
    }
}

/// The key pair `default` and the instance profiles of the templates.
#[must_use]
pub fn account() -> MotoSeed {
    MotoSeed {
        key_pairs: vec!["default".to_owned()],
        instance_profiles: vec![NODE_PROFILE.to_owned(), CONTROL_PLANE_PROFILE.to_owned()],
        ..MotoSeed::default()
    }
}
