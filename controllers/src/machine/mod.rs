//! ASGMachines without a pool. As long as there is a pool, its controller reconciles them.

use std::{sync::Arc, time::Duration};

use capasg_api::{
    ASGMachine,
    capi::pause_state,
    names::{finalizers, labels},
};
use kube::ResourceExt;
use tokio_util::sync::CancellationToken;

use crate::{
    ObjectKey,
    kubernetes::{KubeWrite, Kubernetes, Result, pools_of_asg_machine},
};

/// How often orphans are released: they exist only after a user removed the pool's finalizer.
pub const INTERVAL: Duration = Duration::from_mins(1);

/// Releases orphans every [`INTERVAL`] until `shutdown`.
pub async fn run(kubernetes: Arc<dyn Kubernetes>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        release_orphans(kubernetes.as_ref()).await;
    }
}

/// Removes our finalizer from ASGMachines that are being deleted while their pool does not exist any more: no other
/// controller would, and the namespace could never be deleted.
pub async fn release_orphans(kubernetes: &dyn Kubernetes) {
    for machine in kubernetes.deleting_asg_machines() {
        if !is_orphan(kubernetes, &machine) {
            continue;
        }
        if let Err(error) = release(kubernetes, &machine).await {
            let key = ObjectKey::of(machine.as_ref());
            tracing::warn!(%error, machine = %key, "failed to remove the finalizer of an orphaned ASGMachine");
        }
    }
}

fn is_orphan(kubernetes: &dyn Kubernetes, machine: &ASGMachine) -> bool {
    if !machine.finalizers().iter().any(|finalizer| finalizer == finalizers::MACHINE) {
        return false;
    }
    let key = ObjectKey::of(machine);
    let cluster = machine.labels().get(labels::CLUSTER_NAME);
    let cluster = cluster.and_then(|name| kubernetes.cluster(&key.sibling(name)));
    let paused = pause_state(cluster.as_deref(), machine.annotations()).is_paused();
    !paused && pool_of(kubernetes, machine).is_none_or(|pool| kubernetes.pool(&pool).is_none())
}

/// The caches may be behind, so a pool that its machine references is read from the API server before the machine is
/// released.
async fn release(kubernetes: &dyn Kubernetes, machine: &ASGMachine) -> Result<()> {
    if let Some(pool) = pool_of(kubernetes, machine)
        && kubernetes.pool_exists(&pool).await?
    {
        return Ok(());
    }
    let write = KubeWrite::RemoveAsgMachineFinalizer {
        machine: ObjectKey::of(machine),
        uid: machine.uid().unwrap_or_default(),
        instance: machine.spec.instance_id.clone(),
        terminated: false,
    };
    kubernetes.write(&write).await.map(drop)
}

fn pool_of(kubernetes: &dyn Kubernetes, machine: &ASGMachine) -> Option<ObjectKey> {
    pools_of_asg_machine(machine, |namespace| kubernetes.pools_of(namespace)).into_iter().next()
}
