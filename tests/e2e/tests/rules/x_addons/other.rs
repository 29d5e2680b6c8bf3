//! The other add-on provider, CAAPH, for a test.

use std::time::Duration;

use anyhow::Result;
use capasg_e2e::{CLUSTER, Caaph, Rig, shared_workload_api};
use capasg_environment::{ManagementOptions, Manager, WorkloadCluster};

/// A management cluster for it, with the test's namespace and a Cluster in it.
pub async fn other(rig: &Rig<'_>, name: &str) -> Result<Caaph> {
    let environment = &rig.scenario.environment;
    let options = ManagementOptions { name: name.to_owned(), ..ManagementOptions::default() };
    let caaph = Caaph::new(environment, options, rig.charts_folder("caaph")).await?;
    let workload = shared_workload_api(environment).await?;
    let (management, namespace) = (&caaph.management, &rig.scenario.namespace);
    management.api().kubectl().run(["create", "namespace", namespace]).await?;
    WorkloadCluster::stub(management, environment.tools(), namespace, CLUSTER, workload).await?;
    Ok(caaph)
}

/// Ends it as Kubernetes does.
pub async fn stop(manager: Manager) -> Result<()> {
    manager.process().stop(Duration::from_secs(20)).await.map(drop)
}
