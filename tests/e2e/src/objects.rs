//! The objects of the test's namespace.

use anyhow::Result;
use capasg_api::{ASGMachine, ASGMachinePool};
use capasg_environment::dynamic;
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};

use crate::Rig;

impl Rig<'_> {
    /// The ASGMachinePools of the namespace.
    #[must_use]
    pub fn pools(&self) -> Api<ASGMachinePool> {
        Api::namespaced(self.scenario.client.clone(), &self.scenario.namespace)
    }

    /// The ASGMachines of the namespace.
    #[must_use]
    pub fn asg_machines(&self) -> Api<ASGMachine> {
        Api::namespaced(self.scenario.client.clone(), &self.scenario.namespace)
    }

    /// Cluster API's kind of this name in the namespace.
    #[must_use]
    pub fn core(&self, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.scenario.client, &self.scenario.namespace, "cluster.x-k8s.io", "v1beta2", kind)
    }

    /// The MachinePools of the namespace.
    #[must_use]
    pub fn machine_pools(&self) -> Api<DynamicObject> {
        self.core("MachinePool")
    }

    /// The Machines of the namespace.
    #[must_use]
    pub fn machines(&self) -> Api<DynamicObject> {
        self.core("Machine")
    }

    /// The Clusters of the namespace.
    #[must_use]
    pub fn clusters(&self) -> Api<DynamicObject> {
        self.core("Cluster")
    }

    /// The Machines of a pool.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn machines_of(&self, pool: &str) -> Result<Vec<DynamicObject>> {
        Ok(self.machines().list(&of_pool(pool)).await?.items)
    }

    /// The ASGMachines of a pool.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn asg_machines_of(&self, pool: &str) -> Result<Vec<ASGMachine>> {
        Ok(self.asg_machines().list(&of_pool(pool)).await?.items)
    }
}

fn of_pool(pool: &str) -> ListParams {
    let value = capasg_api::names::must_format_value(pool);
    ListParams::default().labels(&format!("cluster.x-k8s.io/pool-name={value}"))
}
