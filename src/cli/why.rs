//! The arguments of `capasg why`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `capasg why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Name of the Cluster.
    #[arg(value_name = "CLUSTER")]
    pub cluster: String,

    /// Namespace of the Cluster. Defaults to the one of the kubeconfig's current context.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}
