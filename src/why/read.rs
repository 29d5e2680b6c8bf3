//! Reads a pool with its Machines from the management cluster, with the permissions of the user.

use anyhow::{Context as _, Result, bail};
use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, owner_machine_pool},
    names::labels,
};
use chrono::Utc;
use kube::{Api, Client, ResourceExt as _, api::ListParams, core::Selector};

use super::pool::PoolWhy;

/// The pool of this name.
///
/// # Errors
/// If it does not exist, or the API server rejects a read.
pub async fn pool(client: &Client, namespace: &str, name: &str) -> Result<PoolWhy> {
    let found = pools(client, namespace).get_opt(name).await.context("cannot read ASGMachinePools")?;
    match found {
        Some(pool) => of(client, namespace, pool).await,
        None => bail!("there is no ASGMachinePool {name} in namespace {namespace}"),
    }
}

/// The pool that a `MachinePool` refers to.
///
/// # Errors
/// As [`pool`].
pub async fn machine_pool(client: &Client, namespace: &str, name: &str) -> Result<PoolWhy> {
    match infrastructure(client, namespace, name).await? {
        Some(own) => pool(client, namespace, &own).await,
        None => {
            bail!("there is no MachinePool {name} in namespace {namespace} that refers to an ASGMachinePool")
        }
    }
}

/// The pool of a name, unless a Cluster has it.
///
/// # Errors
/// If no object has it, or the API server rejects a read.
pub async fn resolve(client: &Client, namespace: &str, name: &str) -> Result<Option<PoolWhy>> {
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), namespace);
    if clusters.get_opt(name).await.context("cannot read Clusters")?.is_some() {
        return Ok(None);
    }
    if let Some(own) = infrastructure(client, namespace, name).await? {
        return pool(client, namespace, &own).await.map(Some);
    }
    match pools(client, namespace).get_opt(name).await.context("cannot read ASGMachinePools")? {
        Some(pool) => of(client, namespace, pool).await.map(Some),
        None => bail!("there is no Cluster, MachinePool or ASGMachinePool {name} in namespace {namespace}"),
    }
}

/// Whether there is a pool of this name, as far as the user may know.
pub async fn has_pool(client: &Client, namespace: &str, name: &str) -> bool {
    matches!(pools(client, namespace).get_opt(name).await, Ok(Some(_)))
}

fn pools(client: &Client, namespace: &str) -> Api<ASGMachinePool> {
    Api::namespaced(client.clone(), namespace)
}

async fn infrastructure(client: &Client, namespace: &str, name: &str) -> Result<Option<String>> {
    let owners: Api<MachinePool> = Api::namespaced(client.clone(), namespace);
    let owner = owners.get_opt(name).await.context("cannot read MachinePools")?;
    Ok(owner.and_then(|owner| owner.infrastructure_pool().map(str::to_owned)))
}

async fn of(client: &Client, namespace: &str, pool: ASGMachinePool) -> Result<PoolWhy> {
    let owner = owner_machine_pool(&pool).map(|owner| owner.name.clone());
    let cluster = pool.labels().get(labels::CLUSTER_NAME).cloned();
    let (mut asg_machines, mut machines) = (Vec::new(), Vec::new());
    if let (Some(owner), Some(cluster)) = (&owner, &cluster) {
        let selector: Selector = labels::of_machine(cluster, owner).into_iter().collect();
        let selector = ListParams::default().labels_from(&selector);
        let own: Api<ASGMachine> = Api::namespaced(client.clone(), namespace);
        asg_machines = own.list(&selector).await.context("cannot read ASGMachines")?.items;
        let core: Api<Machine> = Api::namespaced(client.clone(), namespace);
        machines = core.list(&selector).await.context("cannot read Machines")?.items;
    }
    Ok(PoolWhy::new(&pool, owner, cluster, &asg_machines, &machines, Utc::now()))
}
