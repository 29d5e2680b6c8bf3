//! The workload cluster of both demos.

use anyhow::Result;
use capasg_environment::{Environment, Join, KubeletOptions, Kubelets, WorkloadCluster};

use super::{objects::NAMESPACE, stage::Stage, steps::Steps};

/// Waits until the control plane is initialized, and starts the kubelets of its instances.
pub async fn control_plane(environment: &Environment, stage: &Stage) -> Result<(WorkloadCluster, Kubelets)> {
    let (management, tools) = (environment.management(), environment.tools());
    let cluster = WorkloadCluster::existing(management, tools, NAMESPACE, Steps::CLUSTER, false).await?;
    stage.reached("the control plane of the workload cluster is initialized");
    let options = KubeletOptions {
        join: Join::BootstrapToken,
        version: tools.kubernetes_version().to_owned(),
        remove_nodes: false,
    };
    let kubelets = Kubelets::start(&cluster, environment.cloud().instances(Steps::REGION), options).await?;
    Ok((cluster, kubelets))
}
